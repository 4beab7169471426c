// SPDX-License-Identifier: Apache-2.0
// Why the kernel did not let us trace a process, in words for people.
#pragma once

#include <sys/types.h>

#include <string>

namespace rollcall {

// The reason, as far as it shows below `proc_root`: another user, a process that does not permit
// it, ptrace_scope, another user namespace, a seccomp filter; and what to type.
std::string TraceRefusedMessage(const std::string& proc_root, pid_t pid);

}  // namespace rollcall
