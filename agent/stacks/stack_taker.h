// SPDX-License-Identifier: Apache-2.0
// Taking the stacks of a process: registers and a copy of the top of every thread's stack.
//
// Take() never throws and is bounded by its limits, with one exception: reading /proc/PID/maps
// waits in the kernel where a thread of the process holds its memory lock there. So call it from a
// thread that the agent can spare. Any thread may call, one at a time for one taker.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>

#include "agent/processes/stack_sample.h"

namespace rollcall {

struct TakeLimits {
  size_t stack_bytes = 1 << 20;              // copied per thread, from the stack pointer upwards
  size_t max_threads = 16384;                // the others are counted, not taken
  size_t max_frames = 32768;                 // unwound per thread
  size_t kept_frames = 256;                  // of these; more are cut out of the middle
  int64_t thread_timeout_ns = 100'000'000;   // for one thread to stop
  int64_t total_timeout_ns = 2'000'000'000;  // threads not reached by then are listed, not taken
  int64_t more_timeout_ns = 2'000'000;       // added to it for each thread

  int64_t TotalTimeoutNs(size_t threads) const {
    return total_timeout_ns + more_timeout_ns * static_cast<int64_t>(threads);
  }
};

class StackTaker {
 public:
  virtual ~StackTaker() = default;

  // Never fails as a whole: what could not be had is said in `error`, of the sample or a thread.
  virtual RawSample Take(pid_t pid, const TakeLimits& limits) = 0;
};

}  // namespace rollcall
