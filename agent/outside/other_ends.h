// SPDX-License-Identifier: Apache-2.0
// Which processes of this host are at the other end of the pipe or socket that a thread waits for:
// a rank that waits for an answer of another rank, or for what its child writes.
//
// Looks for the other end among few processes, because it reads all their descriptors, once. Reads
// may block: see spare_threads.h.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "agent/outside/descendants.h"
#include "agent/processes/process_memory.h"

namespace rollcall {

// What a TCP connection has received so far.
struct Received {
  uint64_t inode = 0;  // of its socket
  uint64_t bytes = 0;
};

struct OtherEnd {
  // "pipe", "socket", "process" (for its end); empty if it waits for none, or none is known
  std::string kind;
  std::vector<pid_t> pids;         // at most kMostOtherEnds, ascending
  std::vector<std::string> names;  // of these, in their order; empty for one that has ended
  std::vector<pid_t> called;       // those of these that have accepted its connections, ascending
  bool listens = false;            // also at a TCP port without a connection
  std::vector<Received> received;  // at most kMostReceived
};

inline constexpr size_t kMostOtherEnds = 8;
inline constexpr size_t kMostReceived = 16;
inline constexpr size_t kMostLookedIn = 256;  // processes

// Threads of one process.
struct WaitingThreads {
  pid_t pid = 0;
  std::vector<pid_t> tids;
  ProcessMemory* memory = nullptr;  // of the process
};

// Where other ends may be, without the same process twice.
struct Among {
  std::vector<pid_t> first;
  // Further ones, which cost more to list: asked only if some end is at none of the first.
  std::function<std::vector<pid_t>()> further = nullptr;
  // The start times that are known. An ended process waits for nothing and is at no end, whatever
  // process has its pid now.
  Starts starts = {};
};

// Returns for each of these processes the ends of its threads, in their order. The process itself
// is never at the other end. A process for whose end a thread waits is one of the first, or of the
// same user. `deadline_ns`: of the monotonic clock; what was not looked at by then is not known.
std::vector<std::vector<OtherEnd>> FindOtherEnds(const std::string& proc_root,
                                                 const std::vector<WaitingThreads>& waiting,
                                                 const Among& among, int64_t deadline_ns);

}  // namespace rollcall
