// SPDX-License-Identifier: Apache-2.0
// What the kernel permits this process to see of the processes of others.
#pragma once

namespace rollcall {

// Whether it has CAP_SYS_PTRACE and CAP_DAC_READ_SEARCH (or CAP_DAC_OVERRIDE): with them an agent
// reads the maps, the environment and the segments of every user's processes.
bool MaySeeAllProcesses();

}  // namespace rollcall
