// SPDX-License-Identifier: Apache-2.0
#include "daemon/agents/stream_limits.h"

#include "absl/strings/match.h"
#include "absl/strings/str_replace.h"
#include "base/peer_address.h"

namespace rollcall {

std::string PeerHost(const std::string& grpc_peer) {
  const bool is_remote =
      absl::StartsWith(grpc_peer, "ipv4:") || absl::StartsWith(grpc_peer, "ipv6:");
  if (!is_remote || IsPeerOnThisHost(grpc_peer)) return "";
  const std::string peer = absl::StrReplaceAll(grpc_peer, {{"%5B", "["}, {"%5D", "]"}});
  return peer.substr(0, peer.rfind(':'));
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
