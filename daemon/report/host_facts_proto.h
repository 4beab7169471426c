// SPDX-License-Identifier: Apache-2.0
// Facts about hosts as messages.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "daemon/model/host_facts.h"
#include "rollcall/v1/incident.pb.h"

namespace rollcall {

inline constexpr int kMostHostsInIncident = 256;
inline constexpr int kMostFactsInIncident = 32;  // of a host

// What an agent has sent, within the limits. `now_ns`: when it came.
HostFacts FromProto(const v1::HostFacts& facts, int64_t now_ns);

// What an incident keeps: facts that may interest people, and looks that failed. `wall_ns`: the
// time of the look, by the wall clock.
v1::HostFacts WorthALook(const std::string& host, const HostFacts& facts, int64_t wall_ns);

// Adds a host to an incident, in place of what it showed before.
void AddToIncident(const v1::HostFacts& host, v1::Incident* incident);

// Returns a line for each fact of an incident's hosts: "node-17: mlx5_2 port 1 went DOWN, 21 s
// before the look"; and one for the hosts that show nothing.
std::vector<std::string> HostFactLines(const v1::Incident& incident);

}  // namespace rollcall
