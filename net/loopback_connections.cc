// SPDX-License-Identifier: Apache-2.0
#include "net/loopback_connections.h"

namespace rollcall {

bool LoopbackConnections::Add(int fd, const std::string& peer_key, const std::string& local) {
  // The former connection with this descriptor is closed: the system has given it out again.
  const auto former = peers_.find(fd);
  if (former != peers_.end()) {
    const auto at = by_peer_.find(former->second);
    if (at != by_peer_.end() && at->second.fd == fd) by_peer_.erase(at);
    peers_.erase(former);
  }
  const auto same = by_peer_.find(peer_key);
  if (same != by_peer_.end() && IsOpen(same->second)) return false;
  by_peer_[peer_key] = {fd, inode_of_(fd), local};
  peers_[fd] = peer_key;
  return true;
}

std::string LoopbackConnections::LocalAddressOf(const std::string& peer_key) const {
  const auto at = by_peer_.find(peer_key);
  return at == by_peer_.end() || !IsOpen(at->second) ? "" : at->second.local;
}

}  // namespace rollcall
