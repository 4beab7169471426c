// SPDX-License-Identifier: Apache-2.0
// Whether the kernel permits this process to read the processes of other users.
#pragma once

namespace rollcall {

// Whether this process has CAP_SYS_PTRACE and CAP_DAC_READ_SEARCH (or CAP_DAC_OVERRIDE). An agent
// needs them to read the maps, the environment and the segments of every user's processes.
bool MaySeeAllProcesses();

}  // namespace rollcall
