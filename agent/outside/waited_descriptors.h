// SPDX-License-Identifier: Apache-2.0
// The descriptors that a sleeping thread waits for, by its system call as
// /proc/PID/task/TID/syscall shows it: read(), recv(), connect(), poll(), select(), epoll_wait()
// and the like.
//
// Needs the permission to trace the process, and does not touch it. Reads may block: see
// spare_threads.h.
#pragma once

#include <sys/types.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "agent/processes/process_memory.h"

namespace rollcall {

struct SystemCall {
  int64_t number = 0;
  std::array<uint64_t, 6> arguments = {};
};

// The text of that file. nullopt if the thread runs, or is in no call. Pure.
std::optional<SystemCall> ParseSystemCall(const std::string& text);

// Reads the call of a thread.
std::optional<SystemCall> ReadSystemCall(const std::string& proc_root, pid_t pid, pid_t tid);

inline constexpr size_t kMostWaitedDescriptors = 16;   // of one thread
inline constexpr size_t kMostWatchedDescriptors = 64;  // of one epoll descriptor

// Empty if the thread waits for none, or that cannot be read.
std::vector<int> FindWaitedDescriptors(const std::string& proc_root, pid_t pid, pid_t tid,
                                       ProcessMemory* memory);

// The descriptors that an epoll descriptor of the process waits for.
std::vector<int> ListWatched(const std::string& proc_root, pid_t pid, int epoll);

}  // namespace rollcall
