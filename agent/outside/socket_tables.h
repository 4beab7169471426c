// SPDX-License-Identifier: Apache-2.0
// The sockets that a process can be connected with on its host. Each table of the kernel is read
// once, when it is asked for first.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "agent/outside/tcp_table.h"
#include "agent/outside/unix_peers.h"

namespace rollcall {

// The inode in "socket:[4711]", the link of a descriptor; 0: the link is of another kind.
uint64_t SocketIn(absl::string_view link);

// The table of the process's network.
std::vector<TcpSocket> ReadTcpTable(const std::string& proc_root, pid_t pid);

class SocketTables {
 public:
  // `deadline_ns`: of the monotonic clock; the Unix sockets that are not read by then are absent.
  SocketTables(const std::string& proc_root, pid_t pid, int64_t deadline_ns)
      : proc_root_(proc_root), pid_(pid), deadline_ns_(deadline_ns) {}

  struct Socket {
    bool known = false;
    uint64_t peer = 0;            // inode of the other end on this host; 0 if none is known
    uint64_t received_bytes = 0;  // by a TCP connection so far; 0 if there is none, or unknown
    bool called = false;          // LeadsToAListener()
    bool listens = false;         // and its port has no connection
  };
  Socket Find(uint64_t inode);

 private:
  const std::vector<TcpSocket>& tcp();
  const UnixPeers& unix_peers();
  bool SharesNetwork();

  const std::string& proc_root_;
  const pid_t pid_;
  const int64_t deadline_ns_;
  std::optional<std::vector<TcpSocket>> tcp_;
  std::optional<UnixPeers> unix_peers_;
  std::optional<bool> shares_network_;
};

}  // namespace rollcall
