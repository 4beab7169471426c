// SPDX-License-Identifier: Apache-2.0
// What the uplink thread of an agent waits for: an answer that it must send, a wish for a tick, a
// change of its stream, and the stop of the agent.
//
// It holds one answer: so a daemon that does not read costs no memory. Thread-safe.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <utility>

#include "base/mutex.h"
#include "rollcall/v1/agent.pb.h"

namespace rollcall {

class UplinkInbox {
 public:
  // Waits until the uplink has taken the previous answer. `stream`: that asked. False if the agent
  // stops, or that stream has ended.
  bool Put(uint64_t stream, v1::AgentMessage answer) ABSL_LOCKS_EXCLUDED(mutex_) {
    const MutexLock lock(mutex_);
    while (answer_.has_value() && !stopping_ && stream == stream_) changed_.Wait(mutex_);
    if (stopping_ || stream != stream_) return false;
    answer_ = std::move(answer);
    changed_.NotifyAll();
    return true;
  }
  // nullopt if the deadline has passed, a tick is wanted now, the agent stops, or `is_over`.
  std::optional<v1::AgentMessage> Take(std::chrono::steady_clock::time_point deadline,
                                       const std::function<bool()>& is_over)
      ABSL_LOCKS_EXCLUDED(mutex_) {
    const MutexLock lock(mutex_);
    while (!stopping_ && !tick_soon_ && !is_over() && !answer_.has_value() &&
           changed_.WaitUntil(mutex_, deadline)) {
    }
    tick_soon_ = false;
    if (answer_.has_value()) changed_.NotifyAll();
    return std::exchange(answer_, std::nullopt);
  }

  void TickSoon() ABSL_LOCKS_EXCLUDED(mutex_) {
    const MutexLock lock(mutex_);
    tick_soon_ = true;
    changed_.NotifyAll();
  }
  // What the conditions of Take() and WaitFor() ask has changed.
  void Wake() ABSL_LOCKS_EXCLUDED(mutex_) {
    const MutexLock lock(mutex_);
    changed_.NotifyAll();
  }
  // Returns once `is_so`, or when the agent stops.
  void WaitFor(const std::function<bool()>& is_so) ABSL_LOCKS_EXCLUDED(mutex_) {
    const MutexLock lock(mutex_);
    while (!is_so() && !stopping_) changed_.Wait(mutex_);
  }

  // Returns the number of the newest stream.
  uint64_t stream() const ABSL_LOCKS_EXCLUDED(mutex_) {
    const MutexLock lock(mutex_);
    return stream_;
  }
  // The stream has ended, and no caller waits for its answers any more.
  void EndStream() ABSL_LOCKS_EXCLUDED(mutex_) {
    const MutexLock lock(mutex_);
    ++stream_;
    changed_.NotifyAll();
  }
  void DropAnswer() ABSL_LOCKS_EXCLUDED(mutex_) {
    const MutexLock lock(mutex_);
    answer_.reset();
    changed_.NotifyAll();
  }

  void Stop() ABSL_LOCKS_EXCLUDED(mutex_) {
    const MutexLock lock(mutex_);
    stopping_ = true;
    changed_.NotifyAll();
  }
  bool stopping() const ABSL_LOCKS_EXCLUDED(mutex_) {
    const MutexLock lock(mutex_);
    return stopping_;
  }
  void SleepUnlessStopping(int64_t ns) ABSL_LOCKS_EXCLUDED(mutex_) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::nanoseconds(ns);
    const MutexLock lock(mutex_);
    while (!stopping_ && changed_.WaitUntil(mutex_, deadline)) {
    }
  }

 private:
  mutable Mutex mutex_;
  Condition changed_;  // any of the next
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  bool tick_soon_ ABSL_GUARDED_BY(mutex_) = false;
  uint64_t stream_ ABSL_GUARDED_BY(mutex_) = 0;
  std::optional<v1::AgentMessage> answer_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace rollcall
