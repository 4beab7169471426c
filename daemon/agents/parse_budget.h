// SPDX-License-Identifier: Apache-2.0
// Limits the memory of messages that are parsed and not applied. A parsed tick takes about ten
// times the memory of its bytes, and each of thousands of streams has one when the daemon is late.
// So a message waits as bytes until there is room. All sizes are those of the parsed message
// (parsed_size.h).
//
// Thread-safe. Holds no lock while it calls back.
#pragma once

#include <cstddef>
#include <deque>
#include <functional>

#include "base/mutex.h"

namespace rollcall {

class ParseBudget {
 public:
  // A message of at most this size takes nothing, so that the ticks of small jobs never wait.
  static constexpr size_t kSmallBytes = 64 << 10;
  static constexpr size_t kBytes = 160 << 20;

  explicit ParseBudget(size_t bytes = kBytes) : bytes_(bytes) {}

  // Calls `parse` once there is room for a message of this size: now, or on the thread that gives
  // back. One message always has room, whatever its size. A prompt message goes before all that are
  // not: the last one of its stream was applied at once, so its jobs are not late.
  void Take(size_t bytes, bool is_prompt, std::function<void()> parse) ABSL_LOCKS_EXCLUDED(mutex_);
  // The message of this size is applied.
  void GiveBack(size_t bytes) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Waiting {
    size_t bytes = 0;
    std::function<void()> parse;
  };

  bool HasRoom(size_t bytes) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return taken_ == 0 || taken_ + bytes <= bytes_;
  }
  bool NoneWaits() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return prompt_.empty() && waiting_.empty();
  }
  std::function<void()> Next() ABSL_LOCKS_EXCLUDED(mutex_);

  const size_t bytes_;
  Mutex mutex_;  // taken last
  size_t taken_ ABSL_GUARDED_BY(mutex_) = 0;
  // In each, the first one waits longest.
  std::deque<Waiting> prompt_ ABSL_GUARDED_BY(mutex_);
  std::deque<Waiting> waiting_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace rollcall
