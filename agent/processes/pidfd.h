// SPDX-License-Identifier: Apache-2.0
// The kernel's process handles, with what system headers of 2022 do not have yet.
//
// A pidfd names one process for good: its number may be used again, the handle never turns to
// another. All of this is missing in old kernels and forbidden in some sandboxes; callers fall
// back to /proc then.
#pragma once

#include <sys/types.h>

#include <optional>

#include "absl/status/statusor.h"

namespace rollcall {

// Unimplemented where the kernel has none or forbids it, NotFound if there is no such process.
absl::StatusOr<int> OpenPidfd(pid_t pid);

// Whether the process (all of its threads) has ended. Does not wait.
bool PidfdEnded(int pidfd);

// How it ended, as waitpid() would give it. Linux 6.15 and newer, once its parent has collected it.
std::optional<int> PidfdWaitStatus(int pidfd);

}  // namespace rollcall
