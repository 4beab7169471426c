// SPDX-License-Identifier: Apache-2.0
// The connections from this host that gRPC may have: at which of this host's addresses each
// arrived. With both addresses the kernel can name the process at the other end
// (security/loopback_peer.h).
//
// gRPC does not report when it closes a connection. So an entry counts as open as long as its
// descriptor still belongs to the same socket. Not thread-safe: one owner.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>

namespace rollcall {

class LoopbackConnections {
 public:
  // Returns the inode of the socket with this descriptor; 0 if not a socket, or not open.
  using InodeSource = std::function<uint64_t(int fd)>;

  explicit LoopbackConnections(InodeSource inode_of) : inode_of_(std::move(inode_of)) {}

  // A new connection. False if another one of the same peer is open; the caller must close this
  // one.
  bool Add(int fd, const std::string& peer_key, const std::string& local);
  // Empty if there is no open connection of this peer.
  std::string LocalAddressOf(const std::string& peer_key) const;

 private:
  struct Connection {
    int fd = -1;
    uint64_t inode = 0;
    std::string local;
  };
  bool IsOpen(const Connection& connection) const {
    return inode_of_(connection.fd) == connection.inode;
  }

  const InodeSource inode_of_;
  std::map<std::string, Connection> by_peer_;
  std::map<int, std::string> peers_;  // by descriptor: as many as this process may have
};

}  // namespace rollcall
