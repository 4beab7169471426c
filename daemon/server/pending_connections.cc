// SPDX-License-Identifier: Apache-2.0
#include "daemon/server/pending_connections.h"

#include <algorithm>
#include <utility>

namespace rollcall {
namespace {

constexpr size_t kShareOfDescriptors = 4;
constexpr size_t kFewest = 32;

}  // namespace

PendingLimits PendingLimitsFor(size_t descriptors) {
  PendingLimits limits;
  limits.all = std::clamp(descriptors / kShareOfDescriptors, kFewest, limits.all);
  limits.per_network = limits.all / 2;
  return limits;
}

std::string PeerKey(std::string_view peer) {
  const size_t zone = peer.find('%'), end = peer.find(']');
  if (zone == std::string_view::npos || end == std::string_view::npos || zone > end) {
    return std::string(peer);
  }
  return std::string(peer.substr(0, zone)) + std::string(peer.substr(end));
}

bool PendingConnections::IsReplaceable(const Connection& connection, int64_t now_ns) const {
  return now_ns - connection.since_ns >= (connection.has_spoken ? limits_.replaceable_unknown_ns
                                                                : limits_.replaceable_silent_ns);
}

PendingConnections::Place PendingConnections::OldestOf(const std::string& network,
                                                       int64_t now_ns) const {
  const Connection* oldest = nullptr;
  for (const auto& [fd, connection] : by_fd_) {
    if (connection.network != network || !IsReplaceable(connection, now_ns)) continue;
    if (oldest == nullptr || connection.since_ns < oldest->since_ns) oldest = &connection;
  }
  return oldest == nullptr ? Place{Room::kNone, -1} : Place{Room::kReplaces, oldest->fd};
}

PendingConnections::Place PendingConnections::FindOldest(int64_t now_ns) const {
  const Connection* oldest = nullptr;
  size_t most = 0;
  for (const auto& [fd, connection] : by_fd_) {
    if (!IsReplaceable(connection, now_ns)) continue;
    const size_t count = by_network_.at(connection.network);
    if (count < most || (count == most && connection.since_ns >= oldest->since_ns)) continue;
    oldest = &connection;
    most = count;
  }
  return oldest == nullptr ? Place{Room::kNone, -1} : Place{Room::kReplaces, oldest->fd};
}

PendingConnections::Place PendingConnections::FindPlace(int64_t now_ns) const {
  return by_fd_.size() < limits_.all ? Place() : FindOldest(now_ns);
}

PendingConnections::Place PendingConnections::FindPlaceFor(const std::string& network,
                                                           int64_t now_ns) const {
  const auto known = by_network_.find(network);
  if (known == by_network_.end() || known->second < limits_.per_network) return {};
  return OldestOf(network, now_ns);
}

void PendingConnections::Add(Connection connection) {
  Remove(connection.fd);
  ++by_network_[connection.network];
  by_peer_[connection.peer] = connection.fd;
  by_fd_[connection.fd] = std::move(connection);
}

void PendingConnections::Spoke(int fd) {
  const auto at = by_fd_.find(fd);
  if (at != by_fd_.end()) at->second.has_spoken = true;
}

void PendingConnections::Remove(int fd) {
  const auto at = by_fd_.find(fd);
  if (at == by_fd_.end()) return;
  const auto network = by_network_.find(at->second.network);
  if (--network->second == 0) by_network_.erase(network);
  const auto peer = by_peer_.find(at->second.peer);
  if (peer != by_peer_.end() && peer->second == fd) by_peer_.erase(peer);
  by_fd_.erase(at);
}

void PendingConnections::RemovePeer(const std::string& peer_key) {
  const auto at = by_peer_.find(peer_key);
  if (at != by_peer_.end()) Remove(at->second);
}

const PendingConnections::Connection* PendingConnections::Find(int fd) const {
  const auto at = by_fd_.find(fd);
  return at == by_fd_.end() ? nullptr : &at->second;
}

std::vector<PendingConnections::Connection> PendingConnections::Late(int64_t now_ns) const {
  std::vector<Connection> late;
  for (const auto& [fd, connection] : by_fd_) {
    const int64_t limit_ns = connection.has_spoken ? limits_.unknown_ns : limits_.silent_ns;
    if (now_ns - connection.since_ns >= limit_ns) late.push_back(connection);
  }
  return late;
}

std::vector<PendingConnections::Connection> PendingConnections::All() const {
  std::vector<Connection> all;
  for (const auto& [fd, connection] : by_fd_) all.push_back(connection);
  return all;
}

}  // namespace rollcall
