// SPDX-License-Identifier: Apache-2.0
// Waits for other threads or processes.
#pragma once

#include <chrono>
#include <functional>
#include <thread>

#include "base/loose_threads.h"

namespace rollcall {

// False: it does not hold within ten seconds.
inline bool Eventually(const std::function<bool()>& holds) {
  for (int i = 0; i < 500; ++i) {
    if (holds()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  return false;
}

// Create this first in a test whose threads may outlive their owners. It waits for their end, so
// that they do not use objects that the end of the process destroys.
struct AllThreadsEnd {
  ~AllThreadsEnd() {
    Eventually([] { return live_loose_threads.load() == 0; });
  }
};

}  // namespace rollcall
