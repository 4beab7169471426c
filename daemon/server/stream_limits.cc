// SPDX-License-Identifier: Apache-2.0
#include "daemon/server/stream_limits.h"

#include "absl/strings/match.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"

namespace rollcall {
namespace {

bool IsOfThisMachine(const std::string& address) {
  return absl::StartsWith(address, "ipv4:127.") || address == "ipv6:[::1]" ||
         absl::StartsWith(address, "ipv6:[::ffff:127.");
}

}  // namespace

std::string PeerHost(const std::string& grpc_peer) {
  const bool is_remote =
      absl::StartsWith(grpc_peer, "ipv4:") || absl::StartsWith(grpc_peer, "ipv6:");
  if (!is_remote) return "";
  const std::string peer = absl::StrReplaceAll(grpc_peer, {{"%5B", "["}, {"%5D", "]"}});
  std::string address = peer.substr(0, peer.rfind(':'));
  return IsOfThisMachine(address) ? "" : address;
}

StreamRefusal OpenStreams::Add(const std::string& peer_address) {
  if (all_ >= limits_.streams) return StreamRefusal::kTooMany;
  if (!peer_address.empty()) {
    const auto known = by_peer_.find(peer_address);
    if (known != by_peer_.end() && known->second >= limits_.per_peer) {
      return StreamRefusal::kTooManyOfPeer;
    }
    ++by_peer_[peer_address];
  }
  ++all_;
  return StreamRefusal::kNone;
}

void OpenStreams::Remove(const std::string& peer_address) {
  --all_;
  const auto known = by_peer_.find(peer_address);
  if (known != by_peer_.end() && --known->second == 0) by_peer_.erase(known);
}

}  // namespace rollcall
