// SPDX-License-Identifier: Apache-2.0
// The connections to the gRPC port whose caller the daemon has not identified yet: who they are,
// how long they may take, which of them gRPC serves next, and which of them makes room for a new
// one. A connection leaves the table with the first call of a known caller.
//
// gRPC has a limited number of them at a time, and the others wait for their turn: where all agents
// of a fleet return at once, each handshake is quick, and those that wait cost a descriptor each.
// The last to come has its turn first, since its client is the last to give up; a network with few
// connections in gRPC goes before one with many.
//
// No socket and no clock in here. Not thread-safe: one owner.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

namespace rollcall {

// This machine, as NetworkOf() names it. It has no limit of its own: a proxy on this machine gives
// all hosts of a fleet this address. The acceptor gives other users of this machine names of their
// own.
inline constexpr std::string_view kOwnNetwork = "loopback";

struct PendingLimits {
  size_t all = 16384;
  size_t per_network = 8192;  // as NetworkOf() separates callers
  size_t in_grpc = 256;       // handed over, and no known caller yet: each takes some 100 KiB
  size_t in_grpc_per_network = 128;
  int64_t silent_ns = 5'000'000'000;    // in gRPC, without a byte
  int64_t unknown_ns = 15'000'000'000;  // for its turn; in gRPC, until the first call
  // A connection of this age makes room for another one where a limit is reached: the time that
  // agents give a handshake.
  int64_t replaceable_ns = 5'000'000'000;
  int64_t replaceable_silent_ns = 5'000'000'000;  // in gRPC, without a byte
  // In gRPC, without a call: so long has the daemon waited for the next byte of its handshake. A
  // caller that needs the place still has half of its own time.
  int64_t replaceable_still_ns = 2'500'000'000;
};

// Limits that leave most of a process's `descriptors` to callers that it knows.
PendingLimits PendingLimitsFor(size_t descriptors);

// The key of a peer, "ipv4:10.0.0.7:53214" or "ipv6:[fe80::1%25eth0]:80": without the zone, which
// not everybody writes.
std::string PeerKey(std::string_view peer);

class PendingConnections {
 public:
  struct Connection {
    int fd = -1;
    uint64_t inode = 0;       // of the socket: the system reuses descriptors
    std::string peer;         // PeerKey()
    std::string network;      // NetworkOf()
    int64_t since_ns = 0;     // when it came, or gRPC got it
    bool is_in_grpc = false;  // gRPC owns the descriptor
    // Not known before gRPC has it:
    uint64_t received = 0;    // bytes
    bool has_called = false;  // a call has begun
    int64_t moved_ns = 0;     // when gRPC got it, or there was a new byte, or one that gRPC had not
                              // read

    bool has_spoken() const { return received > 0; }
  };
  // What the system and the guard show of a connection in gRPC.
  struct Progress {
    uint64_t received = 0;  // bytes, so far
    bool has_unread = false;
    bool has_called = false;
  };
  enum class Room { kYes, kReplaces, kNone };
  struct Place {
    Room room = Room::kYes;
    int replaces = -1;  // the descriptor of the connection that makes room
  };

  explicit PendingConnections(PendingLimits limits) : limits_(limits) {}

  // Whether there is room for one more connection.
  Place FindPlace(int64_t now_ns) const;
  // Whether there is room for one more connection of this network.
  Place FindPlaceFor(const std::string& network, int64_t now_ns) const;
  // Returns a replaceable connection of the network that has most: the one that has waited
  // longest. Where all are young, the oldest one of a network other than kOwnNetwork that has more
  // than its share, an eighth. kNone: there is no such network.
  Place FindOldest(int64_t now_ns) const;
  // Whether a quarter of the places is taken, or as many as a quarter of those in gRPC.
  bool IsCrowded() const { return by_fd_.size() >= std::min(limits_.all, limits_.in_grpc) / 4; }

  // Forgets another connection with this descriptor, which must be closed.
  void Add(Connection connection);
  void Saw(int fd, const Progress& progress, int64_t now_ns);
  // The connection whose turn it is, if gRPC has room. From now on gRPC owns the descriptor.
  std::optional<int> TakeTurn(int64_t now_ns);
  bool HasWaiting() const { return !turns_.empty(); }
  void Remove(int fd);
  // The caller of this connection is known; returns the connection. Ignores one that gRPC has not
  // got: the call was one of a former connection with the same address and port.
  std::optional<Connection> RemovePeer(const std::string& peer_key);
  const Connection* Find(int fd) const;
  // Returns the connections that have taken too long.
  std::vector<Connection> Late(int64_t now_ns) const;
  std::vector<Connection> All() const;
  size_t size() const { return by_fd_.size(); }

 private:
  struct Network {
    size_t count = 0, in_grpc = 0;
    std::set<std::pair<int64_t, int>> waiting;  // since, descriptor
  };
  // How many gRPC has, how long ago the newest waiting one came, the network.
  using Turn = std::tuple<size_t, int64_t, std::string>;

  bool IsReplaceable(const Connection& connection, int64_t now_ns) const;
  bool IsInTheWay(const Connection& connection) const;
  Place OldestOf(const std::string& network, int64_t now_ns) const;
  Place OldestOfCrowd() const;
  size_t MostInGrpcOf(std::string_view network) const;
  static Turn TurnOf(const std::string& name, const Network& network);
  template <typename Change>
  void ChangeNetwork(const std::string& name, Change change);

  const PendingLimits limits_;
  std::map<int, Connection> by_fd_;
  std::map<std::string, int> by_peer_;
  std::map<std::string, Network> networks_;
  std::set<Turn> turns_;  // of the networks with waiting connections
  size_t in_grpc_ = 0;
};

}  // namespace rollcall
