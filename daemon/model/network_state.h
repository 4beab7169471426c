// SPDX-License-Identifier: Apache-2.0
// What the transfers of a collective wait for, and the way from a waiting rank to the first one
// that does not move. Plain values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "interpose/network_wait.h"

namespace rollcall {

// One direction of one channel to one peer, as one rank sees it.
struct NetworkState {
  int32_t channel = 0;
  int32_t peer = -1;                      // rank in the communicator
  bool sends = false;                     // to the peer; false: receives from it
  uint64_t begun = 0;                     // steps of the newest operation that have begun
  uint64_t ended = 0;                     // of them, those that have ended
  NetworkWait wait = NetworkWait::kNone;  // of the oldest step that has not ended
  int64_t since_ns = 0;  // when this wait began, by the reader's clock; 0 if unknown
};

// All states of one rank of one communicator, read at one moment.
struct NetworkSample {
  uint64_t communicator = 0;
  int32_t rank = -1;     // in the communicator
  int32_t process = -1;  // index into JobState::processes
  bool is_whole = true;  // false: the library had no room for all states
  std::vector<NetworkState> states;
};

enum class NetworkFault : uint8_t {
  kNone,  // the states name no culprit
#define NETWORK_FAULT(name, ...) name,
#include "proto/network_faults.def"
};

// A rank on the way, what its transfer waits for, and with whom.
struct NetworkHop {
  int32_t rank = -1;  // in the communicator
  int32_t peer = -1;  // in the communicator, or -1
  int32_t channel = 0;
  NetworkWait wait = NetworkWait::kNone;
  int64_t since_ns = 0;
};

// From a rank that waits for data, upstream to the first one that does not.
struct NetworkWalk {
  NetworkFault fault = NetworkFault::kNone;
  int32_t culprit = -1;  // rank in the communicator
  int32_t peer = -1;     // the other end of its link, in the communicator, or -1
  // The channels with a wait, and those of them that lead to this culprit by this fault.
  int32_t channels = 0, agreeing = 0;
  // Of the first such channel; the culprit is the last. Of a long way the first and the last ones
  // (ShortenWay()).
  std::vector<NetworkHop> hops;
  int32_t left_out =
      0;  // hops that are missing between hops[kMostNetworkHops / 2 - 1] and the next
};

inline constexpr size_t kMostNetworkHops = 64;

// Leaves out hops from the middle of a way with more than kMostNetworkHops.
inline void ShortenWay(NetworkWalk* walk) {
  constexpr size_t kEach = kMostNetworkHops / 2;  // at each end
  if (walk->hops.size() <= kMostNetworkHops) return;
  const size_t extra = walk->hops.size() - kMostNetworkHops;
  const auto first = walk->hops.begin() + static_cast<std::ptrdiff_t>(kEach);
  walk->hops.erase(first, first + static_cast<std::ptrdiff_t>(extra));
  walk->left_out += static_cast<int32_t>(extra);
}

}  // namespace rollcall
