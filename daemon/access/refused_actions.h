// SPDX-License-Identifier: Apache-2.0
// Which refused actions the audit records: a caller without the right can ask without end, and must
// not fill the log and the history. Thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "base/mutex.h"
#include "base/throttle.h"

namespace rollcall {

class RefusedActions {
 public:
  static constexpr size_t kMost = 100;  // different ones within a minute

  // As Throttle::Take(), once a minute for the same action of the same person.
  std::optional<uint64_t> Take(const std::string& who, const std::string& action, int64_t now_ns)
      ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  void DropOld(int64_t now_ns) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  Mutex mutex_;
  std::map<std::pair<std::string, std::string>, Throttle> told_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace rollcall
