// SPDX-License-Identifier: Apache-2.0
// Where a process's own view of itself differs from this agent's: pid and time namespaces.
//
// May block: see spare_threads.h. What the kernel does not show (no permission, an old
// kernel) is 0 or nullopt, never guessed.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>

namespace rollcall {

// The process's number as it sees it itself; 0: not known.
pid_t ReadOwnPid(const std::string& proc_root, pid_t pid);

// The inode of its pid namespace, as in segment::SegmentHeader; 0: not known.
uint64_t ReadPidNamespace(const std::string& proc_root, pid_t pid);

// That of the processes which `proc_root` lists by their own numbers; 0: not known.
uint64_t ReadProcPidNamespace(const std::string& proc_root);

// From the numbers that its threads have for themselves to those that this agent knows.
std::map<pid_t, pid_t> TranslateThreads(const std::string& proc_root, pid_t pid);

// How far its CLOCK_MONOTONIC is ahead of this process's, in nanoseconds.
std::optional<int64_t> MonotonicAhead(const std::string& proc_root, pid_t pid);

}  // namespace rollcall
