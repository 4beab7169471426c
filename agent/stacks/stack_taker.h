// SPDX-License-Identifier: Apache-2.0
// Takes samples of a process: the registers and a copy of the top of every thread's stack.
//
// Take() never throws. Its limits bound its time, with one exception: a read of /proc/PID/maps
// waits in the kernel while a thread of the process holds its memory lock. So call it on a spare
// thread. Any thread may call it, one at a time for one taker.
#pragma once

#include <sys/types.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "agent/processes/stack_sample.h"

namespace rollcall {

struct TakeLimits {
  size_t stack_bytes = 1 << 20;       // copied per thread, from the stack pointer upwards
  size_t all_stack_bytes = 24 << 20;  // copied of all threads together (base/fair_parts.h)
  size_t max_threads = 16384;         // further threads are only counted
  // Takes the main thread and those with Python frames, at most so many; 0 means all.
  size_t program_threads = 0;
  size_t max_frames = 32768;                 // unwound per thread
  size_t kept_frames = 256;                  // of these; the middle of a longer stack is cut out
  size_t all_frame_bytes = 28 << 20;         // that the frames of all threads take, with names
  int64_t thread_timeout_ns = 100'000'000;   // for one thread to stop
  int64_t total_timeout_ns = 2'000'000'000;  // threads not reached by then are only listed
  int64_t more_timeout_ns = 2'000'000;       // added to the total for each thread
  int64_t most_timeout_ns = 8'000'000'000;   // however many threads there are

  int64_t TotalTimeoutNs(size_t threads) const {
    return std::min(total_timeout_ns + more_timeout_ns * static_cast<int64_t>(threads),
                    most_timeout_ns);
  }
};

class StackTaker {
 public:
  virtual ~StackTaker() = default;

  // Never fails as a whole: `error` of the sample or of a thread reports what is missing and why.
  virtual RawSample Take(pid_t pid, const TakeLimits& limits) = 0;
};

}  // namespace rollcall
