// SPDX-License-Identifier: Apache-2.0
// The loops in which the threads of servers wait for requests: wait_frames.def has the names. Pure.
#pragma once

#include <string>

#include "daemon/model/waits/wait_frames.h"

namespace rollcall {

// The loop of a server, in which the thread with these functions (StackPlace) waits for a request
// or a connection; nullptr if it does not.
const WaitFrame* FindIdleLoop(const std::string& functions);

}  // namespace rollcall
