// SPDX-License-Identifier: Apache-2.0
// Threads that a process does not wait for when it ends, because they may stand for good in a call
// to a dead file server or receiver.
//
// After main() has returned, what such a thread still uses is destroyed under it (loggers, tables of
// libraries), and the process would die of a signal instead of exiting with its code. So programs
// that have them end by LeaveProcess().
#pragma once

#include <stdio.h>
#include <unistd.h>

#include <atomic>

namespace rollcall {

inline std::atomic<int> live_loose_threads{0};

// Stands in the body of such a thread, from before it is started until it has done all.
class LooseThreadMark {
 public:
  LooseThreadMark() { ++live_loose_threads; }
  ~LooseThreadMark() { --live_loose_threads; }
  LooseThreadMark(const LooseThreadMark&) = delete;
  LooseThreadMark& operator=(const LooseThreadMark&) = delete;
};

// The last call of main(): returns `code`, or ends the process with it where such threads live.
inline int LeaveProcess(int code) {
  if (live_loose_threads.load() == 0) return code;
  fflush(stdout);
  _exit(code);
}

}  // namespace rollcall
