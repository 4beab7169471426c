// SPDX-License-Identifier: Apache-2.0
// Waiting for what other threads or processes do.
#pragma once

#include <chrono>
#include <functional>
#include <thread>

#include "proto/loose_threads.h"

namespace rollcall {

// False: it does not hold within ten seconds.
inline bool Eventually(const std::function<bool()>& holds) {
  for (int i = 0; i < 500; ++i) {
    if (holds()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  return false;
}

// Made first in a test whose threads may outlive their owners: waits for their end, lest they use
// what the end of the process destroys.
struct AllThreadsEnd {
  ~AllThreadsEnd() {
    Eventually([] { return live_loose_threads.load() == 0; });
  }
};

}  // namespace rollcall
