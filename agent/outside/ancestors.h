// SPDX-License-Identifier: Apache-2.0
// The processes that have started a process: who waits for its input waits for one of them. Reads
// may block: see spare_threads.h.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <string>
#include <vector>

namespace rollcall {

inline constexpr size_t kMostAncestors = 4;

// Its parent first, as far as they are of the same user: those above belong to the host.
std::vector<pid_t> FindAncestors(const std::string& proc_root, pid_t pid);

}  // namespace rollcall
