// SPDX-License-Identifier: Apache-2.0
// The libraries by which a process talks with other ranks, by what it has mapped.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace rollcall {

// As LibraryOf(), each once. Reads /proc for 200 ms at most, and may block: see spare_threads.h.
std::vector<std::string> ReadLibraries(const std::string& proc_root, pid_t pid);

}  // namespace rollcall
