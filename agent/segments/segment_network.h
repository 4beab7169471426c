// SPDX-License-Identifier: Apache-2.0
// The states of NCCL's transfers over the network, as SegmentReader::ReadNetwork() returns them.
// Plain values, of one moment: a transfer that moves may have moved on since.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "agent/segments/tick_clock.h"
#include "interpose/network_wait.h"

namespace rollcall {

inline constexpr size_t kMostNetworkComms = 64;     // of a segment
inline constexpr size_t kMostNetworkStates = 1024;  // of a communicator

// One direction of one channel to one peer.
struct NetworkStateSnapshot {
  int32_t channel = 0;
  int32_t peer = -1;   // rank in the communicator
  bool sends = false;  // to the peer; false: receives from it
  // Steps of the newest operation that have begun and that have ended. If some are under way and
  // `wait` is kNone, NCCL has posted nothing for the oldest of them.
  uint64_t begun = 0, ended = 0;
  NetworkWait wait = NetworkWait::kNone;  // of the oldest step that has not ended
  int64_t since_ns = 0;                   // of the newest change; clock as for Read()
};

// The states of one communicator in this process, by channel, direction and peer.
struct NetworkSnapshot {
  uint32_t comm = 0;          // index: CommSnapshot::index
  uint64_t communicator = 0;  // id
  int32_t rank = -1;          // in the communicator
  bool is_whole = true;       // false: there was no room for all states
  std::vector<NetworkStateSnapshot> states;
};

// The words of a segment::NetworkEntry.
struct NetworkEntryCopy {
  uint64_t key, generation, began, begun, ended, waits, changed, reserved;
};

// What the states of a communicator are checked against.
struct NetworkComm {
  uint64_t id = 0;
  uint64_t generation = 0;  // CommEntry::init_entered
  int32_t rank = -1, size = 0;
};

// The states in `entries`, whatever these hold. Leaves out those of other communicators than
// `comms` (by index), and those that are inconsistent.
std::vector<NetworkSnapshot> ToNetworkSnapshots(const std::vector<NetworkEntryCopy>& entries,
                                                const std::map<uint32_t, NetworkComm>& comms,
                                                const TickClock& clock);

}  // namespace rollcall
