// SPDX-License-Identifier: Apache-2.0
// The kernel's process handles (pidfds), with the definitions that system headers of 2022 lack.
//
// A pidfd refers to one process forever: the kernel may reuse the pid, but the pidfd never refers
// to another process. Old kernels have no pidfds and some sandboxes forbid them; callers then fall
// back to /proc.
#pragma once

#include <sys/types.h>

#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "base/unique_fd.h"

namespace rollcall {

// Errors: kUnimplemented (the kernel has no pidfds, or a sandbox forbids them), kNotFound (no such
// process), kUnavailable.
absl::StatusOr<int> OpenPidfd(pid_t pid);

// Returns those of `pidfds` whose process (all of its threads) has ended, in the same order, by one
// system call. Does not block.
std::vector<int> FindEndedPidfds(const std::vector<int>& pidfds);

// The wait status, as waitpid() returns it. nullopt if unknown. Needs Linux 6.15; the status is
// available after the parent has collected the process.
std::optional<int> PidfdWaitStatus(int pidfd);

// The namespace that the process is in. Answers at once, whatever the process does: a link in its
// /proc/PID/ns may block. Not valid: not permitted, or not possible, which needs Linux 6.11.
UniqueFd PidfdUserNamespace(int pidfd);
UniqueFd PidfdPidNamespace(int pidfd);

}  // namespace rollcall
