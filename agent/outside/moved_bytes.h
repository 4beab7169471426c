// SPDX-License-Identifier: Apache-2.0
// How much a process has read and written so far, by files, pipes and the like, and by sockets with
// read() and write(). With what its children had that have ended and that it has waited for.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>

namespace rollcall {

// nullopt if the kernel does not show it, or does not permit it. May block: see spare_threads.h.
std::optional<uint64_t> ReadMovedBytes(const std::string& proc_root, pid_t pid);

}  // namespace rollcall
