// SPDX-License-Identifier: Apache-2.0
// Lets a thread sleep for some time, or until it must stop. A change of the wall clock does not
// change the sleep: absl::Mutex waits by the wall clock.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>

namespace rollcall {

class StopSignal {
 public:
  void Stop() {
    const std::lock_guard<std::mutex> lock(mutex_);
    stopped_ = true;
    wake_.notify_all();
  }

  // Returns true as soon as Stop() was called, false after `ns`.
  bool SleepFor(int64_t ns) {
    std::unique_lock<std::mutex> lock(mutex_);
    return wake_.wait_for(lock, std::chrono::nanoseconds(ns), [this] { return stopped_; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable wake_;
  bool stopped_ = false;
};

}  // namespace rollcall
