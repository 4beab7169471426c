// SPDX-License-Identifier: Apache-2.0
// The looks of `rollcall doctor` at agent and daemon. gather.h runs them with a deadline.
#pragma once

#include <string>

#include "agent/link/daemon_channel.h"
#include "cli/doctor/facts.h"

namespace rollcall::doctor {

// The agent of this host that reports to that daemon. `folder`: of the segments, where agents
// publish, too.
AgentFacts ProbeAgent(const std::string& daemon_address, const std::string& folder);

// Asks the daemon for its state, twice. `is_chosen`: the user named the address.
DaemonFacts ProbeDaemon(const DaemonAddress& daemon, bool is_chosen);

}  // namespace rollcall::doctor
