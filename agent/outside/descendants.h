// SPDX-License-Identifier: Apache-2.0
// The processes that a process has started, and theirs, with what they have used. A rank that waits
// for them waits for something that moves while they do.
//
// Reads the lists of children that the kernel keeps for each thread: it costs a file for each
// thread, whatever else runs on the host. A kernel without them (CONFIG_PROC_CHILDREN) shows none.
// Every read may block: see spare_threads.h.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace rollcall {

struct Descendant {
  pid_t pid = 0;
  pid_t parent = 0;
  uint64_t start_time = 0;  // in clock ticks since the boot
  std::string name;
  char state = '?';
  uint64_t cpu_ns = 0;       // used so far, with that of its own children that have ended
  uint64_t moved_bytes = 0;  // read and written so far; 0 also if that is not permitted
  uint64_t age_ns = 0;       // since its start
  bool own_session = false;  // it is the first process of its session
};

struct Descendants {
  std::vector<Descendant> processes;  // children before grandchildren
  uint64_t ended_cpu_ns = 0;          // used by children that have ended
};

// When processes have started, by pid: a later one with the same pid is another process.
using Starts = std::map<pid_t, uint64_t>;

inline constexpr size_t kMostDescendants = 64;

Descendants FindDescendants(const std::string& proc_root, pid_t pid);

// Describes any process. nullopt if it has ended.
std::optional<Descendant> DescribeProcess(const std::string& proc_root, pid_t pid);

// Their pids only, at most kMostDescendants. One may have ended, and its pid be another process's.
std::vector<pid_t> ListDescendants(const std::string& proc_root, pid_t pid);

}  // namespace rollcall
