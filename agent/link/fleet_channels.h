// SPDX-License-Identifier: Apache-2.0
// The options of a FleetAgent whose daemons --daemon names.
#pragma once

#include <memory>

#include "agent/link/daemon_channel.h"
#include "agent/link/daemon_names.h"
#include "agent/link/fleet_agent.h"

namespace rollcall {

FleetAgentOptions MakeFleetAgentOptions(AgentOptions agent,
                                        const std::shared_ptr<DaemonChannels>& channels,
                                        const HostResolver& resolve = ResolveHost);

}  // namespace rollcall
