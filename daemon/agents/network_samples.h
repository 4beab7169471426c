// SPDX-License-Identifier: Apache-2.0
// Reads what a process reports about its transfers over the network. An agent may be wrong, or
// hostile: numbers that cannot be are dropped, and what the daemon did not ask for. Pure.
#pragma once

#include <cstdint>
#include <vector>

#include "daemon/model/network_state.h"

namespace rollcall {

namespace v1 {
class ProcessStack;
}

// `asked`: the communicators of the request. `process`: index into JobState::processes. `read_ns`:
// when they were read, by the daemon's clock, as are the times in the result.
std::vector<NetworkSample> ReadNetworkSamples(const v1::ProcessStack& stack,
                                              const std::vector<uint64_t>& asked, int32_t process,
                                              int64_t read_ns);

}  // namespace rollcall
