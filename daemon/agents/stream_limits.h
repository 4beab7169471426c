// SPDX-License-Identifier: Apache-2.0
// How many streams of agents are open, in all and from each peer address. No lock: one owner.
#pragma once

#include <cstddef>
#include <map>
#include <string>

#include "daemon/model/client_limits.h"

namespace rollcall {

struct StreamLimits {
  size_t streams = limits::kStreams;
  size_t per_peer = limits::kStreamsOfPeer;
  size_t unparsed_bytes = limits::kUnparsedBytes;
};

// The address of a peer as gRPC writes it ("ipv4:10.0.0.7:53214"), without the port. Empty means a
// peer of this machine (loopback, a unix socket, this process): only the limit of all streams
// applies to it.
std::string PeerHost(const std::string& grpc_peer);

enum class StreamRefusal { kNone, kTooMany, kTooManyOfPeer };

class OpenStreams {
 public:
  explicit OpenStreams(StreamLimits limits) : limits_(limits) {}

  // Counts a new stream, unless a limit refuses it.
  StreamRefusal Add(const std::string& peer_address);
  // A counted stream has ended.
  void Remove(const std::string& peer_address);

  size_t all() const { return all_; }
  size_t peers() const { return by_peer_.size(); }

 private:
  const StreamLimits limits_;
  size_t all_ = 0;
  std::map<std::string, size_t> by_peer_;  // only peers with an open stream
};

}  // namespace rollcall
