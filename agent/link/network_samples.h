// SPDX-License-Identifier: Apache-2.0
// Reads from a segment what the transfers of a process over the network wait for, as the messages
// that the wire uses.
#pragma once

#include <cstdint>
#include <vector>

#include "agent/collector/served_segments.h"
#include "agent/segments/segment_network.h"
#include "rollcall/v1/incident.pb.h"

namespace rollcall {

// `now_ns`: by the clock of the times in `read`.
v1::NetworkSample ToProto(const NetworkSnapshot& read, int64_t now_ns);

// Reads the samples of these communicators. Leaves out what is unreadable. May block: see
// spare_threads.h.
std::vector<v1::NetworkSample> ReadNetworkSamples(const ServedSegment& segment,
                                                  const std::vector<uint64_t>& network_of);

}  // namespace rollcall
