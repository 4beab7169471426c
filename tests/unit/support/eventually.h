// SPDX-License-Identifier: Apache-2.0
// Waits for other threads or processes.
#pragma once

#include <chrono>
#include <functional>
#include <thread>

#include "base/threads.h"

namespace rollcall {

// How long a test waits for what comes at once on a quiet machine: a busy machine is slow, not
// wrong. What a test says must not be waited for takes longer than this.
inline constexpr std::chrono::milliseconds kPatience = std::chrono::minutes(1);

// Returns false if it does not hold in time.
inline bool Eventually(const std::function<bool()>& holds) {
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  while (!holds()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return true;
}

// Create this first in a test whose threads may outlive their owners. It waits for their end, so
// that they do not use objects that the end of the process destroys.
struct AllThreadsEnd {
  ~AllThreadsEnd() {
    Eventually([] { return live_loose_threads.load() == 0; });
  }
};

}  // namespace rollcall
