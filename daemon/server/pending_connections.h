// SPDX-License-Identifier: Apache-2.0
// The connections to the gRPC port whose caller the daemon does not know yet: who they are, how long
// they may take, and which of them makes room for a new one. A connection leaves the table with the
// first call of a known caller.
//
// No socket and no clock in here. Not thread-safe: one owner.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace rollcall {

struct PendingLimits {
  size_t all = 4096;
  size_t per_network = 2048;  // as NetworkOf() separates callers
  int64_t silent_ns = 5'000'000'000;    // until the first byte
  int64_t unknown_ns = 15'000'000'000;  // until the first call of a known caller
  // A connection of this age makes room for a new one where a limit is reached. Clients need some
  // milliseconds for their first byte, and give up a handshake after five seconds.
  int64_t replaceable_silent_ns = 1'000'000'000;
  int64_t replaceable_unknown_ns = 5'000'000'000;
};

// Limits that leave most of a process's `descriptors` to callers that it knows.
PendingLimits PendingLimitsFor(size_t descriptors);

// The key of a peer, "ipv4:10.0.0.7:53214" or "ipv6:[fe80::1%25eth0]:80": without the zone, which not
// everybody writes.
std::string PeerKey(std::string_view peer);

class PendingConnections {
 public:
  struct Connection {
    int fd = -1;
    uint64_t inode = 0;    // of the socket: the system reuses descriptors
    std::string peer;      // PeerKey()
    std::string network;   // NetworkOf()
    int64_t since_ns = 0;
    bool has_spoken = false;  // gRPC owns the descriptor
  };
  enum class Room { kYes, kReplaces, kNone };
  struct Place {
    Room room = Room::kYes;
    int replaces = -1;  // the descriptor of the connection that makes room
  };

  explicit PendingConnections(PendingLimits limits) : limits_(limits) {}

  // Whether there is room for one more connection of anybody.
  Place FindPlace(int64_t now_ns) const;
  // Whether there is room for one more connection of this network.
  Place FindPlaceFor(const std::string& network, int64_t now_ns) const;
  // Of those that may be replaced, one of the network that has most: the one that has waited longest.
  // kNone: all are young.
  Place FindOldest(int64_t now_ns) const;

  // Forgets another connection with this descriptor, which must be closed.
  void Add(Connection connection);
  void Spoke(int fd);
  void Remove(int fd);
  void RemovePeer(const std::string& peer_key);
  const Connection* Find(int fd) const;
  // Those that have taken too long.
  std::vector<Connection> Late(int64_t now_ns) const;
  std::vector<Connection> All() const;
  size_t size() const { return by_fd_.size(); }

 private:
  bool IsReplaceable(const Connection& connection, int64_t now_ns) const;
  Place OldestOf(const std::string& network, int64_t now_ns) const;

  const PendingLimits limits_;
  std::map<int, Connection> by_fd_;
  std::map<std::string, int> by_peer_;
  std::map<std::string, size_t> by_network_;  // how many
};

}  // namespace rollcall
