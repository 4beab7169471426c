// SPDX-License-Identifier: Apache-2.0
#include "agent/segments/network_reader.h"

#include <algorithm>
#include <iterator>
#include <set>

#include "agent/segments/segment_copy.h"
#include "agent/segments/word_copies.h"
#include "interpose/segment_network.h"

namespace rollcall {

std::vector<NetworkEntryCopy> ReadNetworkEntries(const SegmentFile& file, uint32_t chunks) {
  static_assert(sizeof(NetworkEntryCopy) == sizeof(segment::NetworkEntry));
  std::vector<NetworkEntryCopy> used;
  std::vector<NetworkEntryCopy> chunk(segment::kNetworkChunkEntries);
  for (uint32_t i = 0; i < segment::kNetworkChunks; ++i) {
    if ((chunks >> i & 1) == 0) continue;
    if (!file.ReadAt(segment::kNetworkOffset + i * segment::kNetworkChunkBytes, chunk.data(),
                     segment::kNetworkChunkBytes)) {
      continue;
    }
    std::copy_if(chunk.begin(), chunk.end(), std::back_inserter(used),
                 [](const NetworkEntryCopy& entry) { return entry.key != 0; });
  }
  return used;
}

std::map<uint32_t, NetworkComm> ReadNetworkComms(const SegmentFile& file,
                                                 const std::vector<NetworkEntryCopy>& entries,
                                                 uint32_t count,
                                                 const std::vector<uint64_t>* wanted) {
  std::set<uint32_t> indexes;
  for (const NetworkEntryCopy& entry : entries) {
    const uint32_t index = segment::NetworkTransferOf(entry.key).comm;
    if (index < count) indexes.insert(index);
  }
  std::map<uint32_t, NetworkComm> comms;
  for (const uint32_t index : indexes) {
    Copy<segment::CommEntry> entry;
    if (comms.size() == kMostNetworkComms) break;
    if (!file.ReadAt(segment::CommBlockOffset(index), &entry)) continue;
    if (HasEnded(static_cast<segment::CommState>(Get(entry->state)))) continue;
    const NetworkComm comm = {Get(entry->id), Get(entry->init_entered), Signed(entry->rank),
                              Signed(entry->size)};
    const bool is_wanted =
        wanted == nullptr || std::find(wanted->begin(), wanted->end(), comm.id) != wanted->end();
    if (!is_wanted) continue;
    if (comm.rank >= 0 && comm.rank < comm.size && comm.size <= kMostRanks) comms[index] = comm;
  }
  return comms;
}

}  // namespace rollcall
