// SPDX-License-Identifier: Apache-2.0
// Converts the way over the network transfers to the message that incident.json has.
#pragma once

#include "daemon/model/verdict.h"
#include "rollcall/v1/incident.pb.h"

namespace rollcall {

// Returns the name that incident.json has: "send", or empty.
const char* NetworkWaitName(NetworkWait wait);

// `now_ns`: when the verdict was made, by the clock of the walk's times.
v1::NetworkWalk ToProto(const NetworkWalk& walk, int64_t now_ns);

}  // namespace rollcall
