// SPDX-License-Identifier: Apache-2.0
// Adds to the stacks of a process what its threads wait for outside of it: the processes that it
// has started, with what they have used, and who is at the other end of a pipe or socket.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "rollcall/v1/incident.pb.h"

namespace rollcall {

// `neighbours`: processes of this host that may be at the other end of a socket. Nothing if the
// sample has no threads.
void AddSurroundings(const std::string& proc_root, const std::vector<pid_t>& neighbours,
                     v1::ProcessStack* stack);

}  // namespace rollcall
