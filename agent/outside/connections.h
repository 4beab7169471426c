// SPDX-License-Identifier: Apache-2.0
// Which processes of this host talk with each other by TCP: ranks of a library whose place in the
// job no variable gives.
//
// Reads all descriptors of each process. May block: see spare_threads.h.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace rollcall {

// Two processes, the smaller pid first.
using ConnectedPair = std::pair<pid_t, pid_t>;

inline constexpr size_t kMostConnected = 256;  // processes that are looked at

// The pairs among the first kMostConnected of `pids` (ascending) with a connection between them,
// each once, ascending. A socket that several of them hold is of the first one: its children have
// inherited it. `deadline_ns`: of the monotonic clock; what was not read by then is left out.
std::vector<ConnectedPair> FindConnections(const std::string& proc_root,
                                           const std::vector<pid_t>& pids, int64_t deadline_ns);

}  // namespace rollcall
