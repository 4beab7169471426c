// SPDX-License-Identifier: Apache-2.0
// Reads the states of NCCL's transfers over the network from a segment.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "agent/segments/segment_file.h"
#include "agent/segments/segment_network.h"

namespace rollcall {

// Returns the used entries. Bit n of `chunks`: chunk n has some.
std::vector<NetworkEntryCopy> ReadNetworkEntries(const SegmentFile& file, uint32_t chunks);

// The wanted communicators of the entries, at most kMostNetworkComms, without those that have
// ended. `count`: of the communicators in the segment. `wanted`: ids; nullptr means all.
std::map<uint32_t, NetworkComm> ReadNetworkComms(const SegmentFile& file,
                                                 const std::vector<NetworkEntryCopy>& entries,
                                                 uint32_t count,
                                                 const std::vector<uint64_t>* wanted);

}  // namespace rollcall
