// SPDX-License-Identifier: Apache-2.0
// Namespaces of a process, and the conversion of its own pids, tids and times to this
// agent's.
//
// May block: see spare_threads.h. A value that the kernel does not show (no permission, an old
// kernel) is 0 or nullopt.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>

namespace rollcall {

// The process's pid in its own pid namespace; 0 if unknown.
pid_t ReadOwnPid(const std::string& proc_root, pid_t pid);

// Returns the inode of its pid namespace, as in segment::SegmentHeader; 0 if unknown.
uint64_t ReadPidNamespace(const std::string& proc_root, pid_t pid);

// The pid namespace of the pids that `proc_root` lists; 0 if unknown.
uint64_t ReadProcPidNamespace(const std::string& proc_root);

// What the kernel calls the network namespace of a process, "net:[4026531840]"; `process`: a pid,
// or "self". Empty if unknown.
std::string ReadNetworkNamespace(const std::string& proc_root, const std::string& process);

// Maps the tids in the process's own pid namespace to those in this agent's.
std::map<pid_t, pid_t> TranslateThreads(const std::string& proc_root, pid_t pid);

// Returns the offset of its CLOCK_MONOTONIC over this process's, in nanoseconds. nullopt if
// unknown.
std::optional<int64_t> MonotonicAhead(const std::string& proc_root, pid_t pid);

}  // namespace rollcall
