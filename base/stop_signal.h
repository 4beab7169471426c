// SPDX-License-Identifier: Apache-2.0
// Lets a thread sleep for some time, or until it must stop. A change of the wall clock does not
// change the sleep.
#pragma once

#include <chrono>
#include <cstdint>

#include "base/mutex.h"

namespace rollcall {

class StopSignal {
 public:
  void Stop() {
    const MutexLock lock(mutex_);
    stopped_ = true;
    wake_.NotifyAll();
  }

  // Returns true as soon as Stop() was called, false after `ns`.
  bool SleepFor(int64_t ns) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::nanoseconds(ns);
    const MutexLock lock(mutex_);
    while (!stopped_ && wake_.WaitUntil(mutex_, deadline)) {
    }
    return stopped_;
  }

 private:
  Mutex mutex_;
  Condition wake_;
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace rollcall
