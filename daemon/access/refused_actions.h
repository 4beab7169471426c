// SPDX-License-Identifier: Apache-2.0
// Which refused actions the audit tells of: whoever may not act can ask without an end, and must not
// fill the log and the history. Thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "base/durations.h"
#include "base/mutex.h"

namespace rollcall {

class RefusedActions {
 public:
  static constexpr int64_t kEveryNs = 60 * kSecond;  // the same action of the same person
  static constexpr size_t kMost = 100;               // different ones within this time

  // Whether to tell of a refusal at `now_ns`, on a clock that never goes back: how many of the same
  // person and action were left out since the last one. nullopt: leave it out.
  std::optional<uint64_t> Take(const std::string& who, const std::string& action, int64_t now_ns)
      ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Told {
    int64_t at_ns = 0;
    uint64_t left_out = 0;
  };

  void DropOld(int64_t now_ns) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  Mutex mutex_;
  std::map<std::pair<std::string, std::string>, Told> told_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace rollcall
