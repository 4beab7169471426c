// SPDX-License-Identifier: Apache-2.0
#include "net/pending_connections.h"

#include <algorithm>
#include <cstdint>
#include <utility>

namespace rollcall {
namespace {

constexpr size_t kShareOfDescriptors = 4;
constexpr size_t kFewest = 32;
constexpr size_t kShareOfNetwork = 8;  // of the places, if all are taken
constexpr size_t kShareInGrpc = 4;     // of the places in gRPC, for others than this machine
// Others wait as long where gRPC has few places, so each of few is free sooner. Most clients have
// sent their first byte by the time gRPC gets the connection.
constexpr int64_t kSilentNsForEachPlace = 5'000'000;
constexpr int64_t kLeastSilentNs = 500'000'000;

}  // namespace

PendingLimits PendingLimitsFor(size_t descriptors) {
  PendingLimits limits;
  limits.all = std::clamp(descriptors / kShareOfDescriptors, kFewest, limits.all);
  limits.per_network = limits.all / 2;
  limits.in_grpc = std::min(limits.in_grpc, limits.all / 2);
  limits.in_grpc_per_network = limits.in_grpc / 2;
  limits.replaceable_silent_ns =
      std::clamp(static_cast<int64_t>(limits.in_grpc) * kSilentNsForEachPlace, kLeastSilentNs,
                 limits.replaceable_silent_ns);
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
  if (now_ns - connection.since_ns >= limits_.replaceable_ns) return true;
  if (!connection.is_in_grpc || connection.has_called) return false;
  return now_ns - connection.moved_ns >=
         (connection.has_spoken() ? limits_.replaceable_still_ns : limits_.replaceable_silent_ns);
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
    const size_t count = networks_.at(connection.network).count;
    if (count < most || (count == most && connection.since_ns >= oldest->since_ns)) continue;
    oldest = &connection;
    most = count;
  }
  return oldest == nullptr ? OldestOfCrowd() : Place{Room::kReplaces, oldest->fd};
}

// Otherwise a few strangers with all places would keep everybody else in the queue of the system.
PendingConnections::Place PendingConnections::OldestOfCrowd() const {
  const std::string* crowd = nullptr;
  size_t most = limits_.all / kShareOfNetwork;
  for (const auto& [name, network] : networks_) {
    if (name == kOwnNetwork || network.count <= most) continue;
    crowd = &name;
    most = network.count;
  }
  return crowd == nullptr ? Place{Room::kNone, -1} : OldestOf(*crowd, INT64_MAX);
}

PendingConnections::Place PendingConnections::FindPlace(int64_t now_ns) const {
  return by_fd_.size() < limits_.all ? Place() : FindOldest(now_ns);
}

PendingConnections::Place PendingConnections::FindPlaceFor(const std::string& network,
                                                           int64_t now_ns) const {
  if (network == kOwnNetwork) return {};
  const auto known = networks_.find(network);
  if (known == networks_.end() || known->second.count < limits_.per_network) return {};
  return OldestOf(network, now_ns);
}

PendingConnections::Turn PendingConnections::TurnOf(const std::string& name,
                                                    const Network& network) {
  return {network.in_grpc, -network.waiting.rbegin()->first, name};
}

// Makes a change to a network, and keeps its place among `turns_`.
template <typename Change>
void PendingConnections::ChangeNetwork(const std::string& name, Change change) {
  Network& network = networks_[name];
  if (!network.waiting.empty()) turns_.erase(TurnOf(name, network));
  change(&network);
  if (!network.waiting.empty()) turns_.insert(TurnOf(name, network));
  if (network.count == 0) networks_.erase(name);
}

// This machine has no limit of its own in the table. In gRPC it leaves a part to others: a proxy on
// it may bring slow strangers.
size_t PendingConnections::MostInGrpcOf(std::string_view network) const {
  return network == kOwnNetwork ? limits_.in_grpc - limits_.in_grpc / kShareInGrpc
                                : limits_.in_grpc_per_network;
}

void PendingConnections::Add(Connection connection) {
  Remove(connection.fd);
  ChangeNetwork(connection.network, [&connection](Network* network) {
    ++network->count;
    network->waiting.emplace(connection.since_ns, connection.fd);
  });
  by_peer_[connection.peer] = connection.fd;
  by_fd_[connection.fd] = std::move(connection);
}

void PendingConnections::Saw(int fd, const Progress& progress, int64_t now_ns) {
  const auto at = by_fd_.find(fd);
  if (at == by_fd_.end()) return;
  Connection& connection = at->second;
  if (progress.has_unread || progress.received != connection.received) {
    connection.moved_ns = now_ns;
  }
  connection.received = progress.received;
  connection.has_called = progress.has_called;
}

std::optional<int> PendingConnections::TakeTurn(int64_t now_ns) {
  if (in_grpc_ >= limits_.in_grpc) return std::nullopt;
  for (const auto& [in_grpc, newest, name] : turns_) {
    if (in_grpc >= MostInGrpcOf(name)) continue;
    const int fd = networks_.at(name).waiting.rbegin()->second;
    Connection& connection = by_fd_.at(fd);
    ChangeNetwork(connection.network, [&](Network* network) {
      network->waiting.erase({connection.since_ns, fd});
      ++network->in_grpc;
    });
    ++in_grpc_;
    connection.is_in_grpc = true;
    connection.since_ns = connection.moved_ns = now_ns;
    return fd;
  }
  return std::nullopt;
}

void PendingConnections::Remove(int fd) {
  const auto at = by_fd_.find(fd);
  if (at == by_fd_.end()) return;
  const Connection& connection = at->second;
  ChangeNetwork(connection.network, [&](Network* network) {
    --network->count;
    if (connection.is_in_grpc) --network->in_grpc;
    network->waiting.erase({connection.since_ns, fd});
  });
  if (connection.is_in_grpc) --in_grpc_;
  const auto peer = by_peer_.find(connection.peer);
  if (peer != by_peer_.end() && peer->second == fd) by_peer_.erase(peer);
  by_fd_.erase(at);
}

std::optional<PendingConnections::Connection> PendingConnections::RemovePeer(
    const std::string& peer_key) {
  const auto at = by_peer_.find(peer_key);
  if (at == by_peer_.end() || !by_fd_.at(at->second).is_in_grpc) return std::nullopt;
  Connection connection = by_fd_.at(at->second);
  Remove(connection.fd);
  return connection;
}

const PendingConnections::Connection* PendingConnections::Find(int fd) const {
  const auto at = by_fd_.find(fd);
  return at == by_fd_.end() ? nullptr : &at->second;
}

// Whether another one waits for its place.
bool PendingConnections::IsInTheWay(const Connection& connection) const {
  if (!connection.is_in_grpc || !HasWaiting()) return false;
  return in_grpc_ >= limits_.in_grpc || !networks_.at(connection.network).waiting.empty();
}

std::vector<PendingConnections::Connection> PendingConnections::Late(int64_t now_ns) const {
  std::vector<Connection> late;
  for (const auto& [fd, connection] : by_fd_) {
    const bool is_silent = connection.is_in_grpc && !connection.has_spoken();
    const int64_t limit_ns = is_silent ? limits_.silent_ns : limits_.unknown_ns;
    if (now_ns - connection.since_ns >= limit_ns ||
        (IsInTheWay(connection) && IsReplaceable(connection, now_ns))) {
      late.push_back(connection);
    }
  }
  return late;
}

std::vector<PendingConnections::Connection> PendingConnections::All() const {
  std::vector<Connection> all;
  for (const auto& [fd, connection] : by_fd_) all.push_back(connection);
  return all;
}

}  // namespace rollcall
