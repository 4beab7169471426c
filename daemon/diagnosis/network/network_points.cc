// SPDX-License-Identifier: Apache-2.0
#include "daemon/diagnosis/network/network_points.h"

#include <algorithm>
#include <tuple>

namespace rollcall {
namespace {

auto KeyOf(const NetworkPoint& p) {
  return std::make_tuple(p.channel, p.node, p.rank, p.peer, p.sends);
}

bool IsRank(int32_t rank, int32_t size) { return rank >= 0 && rank < size; }

// The points whose first keys are these.
template <typename Key, typename KeyOfPoint>
PointRange RangeOf(const std::vector<NetworkPoint>& points, const Key& key, KeyOfPoint key_of) {
  const auto first = std::lower_bound(
      points.begin(), points.end(), key,
      [&](const NetworkPoint& p, const Key& wanted) { return key_of(p) < wanted; });
  const auto end = std::upper_bound(
      first, points.end(), key,
      [&](const Key& wanted, const NetworkPoint& p) { return wanted < key_of(p); });
  return {static_cast<size_t>(first - points.begin()), static_cast<size_t>(end - points.begin())};
}

}  // namespace

NetworkPoints::NetworkPoints(const std::vector<NetworkSample>& samples, int32_t size,
                             const std::vector<NetworkHost>& hosts) {
  for (size_t i = 0; i < samples.size(); ++i) {
    const NetworkSample& sample = samples[i];
    // The numbers of hosts and of ranks without one do not meet.
    const NetworkHost host = i < hosts.size() ? hosts[i] : NetworkHost();
    const int32_t node = host.number >= 0 ? host.number : -2 - sample.rank;
    if (!IsRank(sample.rank, size)) continue;
    const Known known = {node, sample.is_whole, host.is_whole};
    if (!ranks_.emplace(sample.rank, known).second) continue;
    for (const NetworkState& state : sample.states) {
      if (!IsRank(state.peer, size) || state.peer == sample.rank) continue;
      points_.push_back({state.channel, node, sample.rank, state.peer, state.sends, &state});
    }
  }
  std::stable_sort(
      points_.begin(), points_.end(),
      [](const NetworkPoint& a, const NetworkPoint& b) { return KeyOf(a) < KeyOf(b); });
  points_.erase(std::unique(points_.begin(), points_.end(),
                            [](const NetworkPoint& a, const NetworkPoint& b) {
                              return KeyOf(a) == KeyOf(b);
                            }),
                points_.end());
}

int32_t NetworkPoints::NodeOf(int32_t rank) const {
  const auto known = ranks_.find(rank);
  return known == ranks_.end() ? -1 : known->second.node;
}

bool NetworkPoints::IsWhole(int32_t rank) const {
  const auto known = ranks_.find(rank);
  return known != ranks_.end() && known->second.is_whole;
}

bool NetworkPoints::IsHostWhole(int32_t rank) const {
  const auto known = ranks_.find(rank);
  return known != ranks_.end() && known->second.is_host_whole;
}

int NetworkPoints::Find(int32_t channel, int32_t rank, int32_t peer, bool sends) const {
  const auto key = std::make_tuple(channel, NodeOf(rank), rank, peer, sends);
  const auto at =
      std::lower_bound(points_.begin(), points_.end(), key,
                       [](const NetworkPoint& p, const auto& wanted) { return KeyOf(p) < wanted; });
  return at == points_.end() || KeyOf(*at) != key ? -1 : static_cast<int>(at - points_.begin());
}

PointRange NetworkPoints::OfRank(int32_t channel, int32_t rank) const {
  return RangeOf(points_, std::make_tuple(channel, NodeOf(rank), rank),
                 [](const NetworkPoint& p) { return std::make_tuple(p.channel, p.node, p.rank); });
}

PointRange NetworkPoints::OfNode(int32_t channel, int32_t rank) const {
  return RangeOf(points_, std::make_tuple(channel, NodeOf(rank)),
                 [](const NetworkPoint& p) { return std::make_tuple(p.channel, p.node); });
}

}  // namespace rollcall
