// SPDX-License-Identifier: Apache-2.0
// Threads that the system may refuse, and threads that may never end.
//
// Loose threads: threads that the process does not wait for at its end, because they may be blocked
// forever in a call to a dead file server or alert receiver.
//
// After main() has returned, the C++ runtime destroys objects that such a thread may still use
// (loggers, tables of libraries). The process could then die of a signal instead of exiting with
// its code. So a program with loose threads ends by LeaveProcess().
#pragma once

#include <stdio.h>
#include <unistd.h>

#include <atomic>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>

namespace rollcall {

inline std::atomic<int> live_loose_threads{0};

// Counts one loose thread while it exists. Create it before the thread starts; the thread owns it.
class LooseThreadMark {
 public:
  LooseThreadMark() { ++live_loose_threads; }
  ~LooseThreadMark() { --live_loose_threads; }
  LooseThreadMark(const LooseThreadMark&) = delete;
  LooseThreadMark& operator=(const LooseThreadMark&) = delete;
};

// The last call of main(). Returns `code`; if loose threads exist, ends the process with `code`
// instead.
inline int LeaveProcess(int code) {
  if (live_loose_threads.load() == 0) return code;
  fflush(stdout);
  _exit(code);
}

// Runs `run` in a thread. nullopt if the system refuses the thread, at a limit of processes or of
// address space: std::thread would throw, and end the program.
template <typename Run>
std::optional<std::thread> TryThread(Run run) {
  try {
    return std::thread(std::move(run));
  } catch (const std::system_error&) {
    return std::nullopt;
  }
}

}  // namespace rollcall
