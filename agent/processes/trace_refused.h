// SPDX-License-Identifier: Apache-2.0
// Explains to people why the kernel refused to trace a process.
#pragma once

#include <sys/types.h>

#include <string>

namespace rollcall {

// Returns the reason, from the files below `proc_root`, and the command that helps. Reasons:
// another user, a process that forbids it, ptrace_scope, another user namespace, a seccomp filter.
std::string TraceRefusedMessage(const std::string& proc_root, pid_t pid);

}  // namespace rollcall
