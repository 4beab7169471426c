// SPDX-License-Identifier: Apache-2.0
// From the ranks that wait for data over the network, upstream to the first one that does not.
// Pure; safe on any samples, also contradictory ones.
//
// Every wait of a transfer waits for another one: data for the other end's send, a send that lacks
// data for the receives of its GPU, a full buffer for the receiver. A wait that waits for no other
// one is an end: its rank or link is at fault. Each channel with a wait votes for the end to which
// most of its waits lead, and the walk names the end with the most votes.
#pragma once

#include <cstdint>
#include <vector>

#include "daemon/diagnosis/network/network_host.h"
#include "daemon/model/network_state.h"

namespace rollcall {

// `size`: of the communicator. All waits count, however young. O(states).
NetworkWalk WalkNetwork(const std::vector<NetworkSample>& samples, int32_t size);

// `hosts`: by sample. Data that a rank receives from its own host does not pass the network: then
// the waits of the host's other ranks stand in for its own.
NetworkWalk WalkNetwork(const std::vector<NetworkSample>& samples, int32_t size,
                        const std::vector<NetworkHost>& hosts);

}  // namespace rollcall
