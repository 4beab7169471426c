// SPDX-License-Identifier: Apache-2.0
// What the kernel permits this process: to read the processes of other users, and nothing else.
#pragma once

#include "absl/status/status.h"

namespace rollcall {

// Whether this process has CAP_SYS_PTRACE and CAP_DAC_READ_SEARCH (or CAP_DAC_OVERRIDE). An agent
// needs them to read the maps, the environment and the segments of every user's processes.
bool MaySeeAllProcesses();

// Gives up every other capability, for good and for all programs that this one starts; root keeps
// its user id, and no more rights over others' files than to read them. Keeps CAP_SYSLOG, which the
// kernel's log can need, and CAP_CHECKPOINT_RESTORE, which opens what is mapped. CAP_DAC_OVERRIDE
// stays only without CAP_DAC_READ_SEARCH, as in containers. Call it before the first thread starts.
// Errors: kInternal.
absl::Status KeepOnlyReadingCapabilities();

}  // namespace rollcall
