// SPDX-License-Identifier: Apache-2.0
// The states of all samples in an order in which those of a channel, host and rank lie together.
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "daemon/diagnosis/network/network_host.h"
#include "daemon/model/network_state.h"

namespace rollcall {

// One state of one rank.
struct NetworkPoint {
  int32_t channel = 0, node = -1, rank = -1, peer = -1;
  bool sends = false;
  const NetworkState* state = nullptr;
};

// The indices first..end-1 of points().
struct PointRange {
  size_t first = 0, end = 0;
};

// Refers to the samples.
class NetworkPoints {
 public:
  // Leaves out states with a rank or peer that is not one of the `size` ranks, and all but the
  // first sample of a rank. `hosts` as in WalkNetwork(); empty if every rank has a host of its own.
  NetworkPoints(const std::vector<NetworkSample>& samples, int32_t size,
                const std::vector<NetworkHost>& hosts);

  const std::vector<NetworkPoint>& points() const { return points_; }
  // Returns the index of the state, or -1.
  int Find(int32_t channel, int32_t rank, int32_t peer, bool sends) const;
  PointRange OfRank(int32_t channel, int32_t rank) const;
  // Returns the points of all ranks on the host of the rank.
  PointRange OfNode(int32_t channel, int32_t rank) const;
  // Whether a state of the rank that is not here does not exist.
  bool IsWhole(int32_t rank) const;
  // Whether the ranks of its host are known that have transfers over the network.
  bool IsHostWhole(int32_t rank) const;
  // A number that ranks of one host share; -1 if the rank has no sample.
  int32_t NodeOf(int32_t rank) const;

 private:
  struct Known {
    int32_t node = -1;
    bool is_whole = false, is_host_whole = true;
  };

  std::vector<NetworkPoint> points_;
  std::unordered_map<int32_t, Known> ranks_;
};

}  // namespace rollcall
