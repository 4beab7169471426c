// SPDX-License-Identifier: Apache-2.0
#include "agent/outside/socket_tables.h"

#include <cstddef>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "agent/outside/tcp_counters.h"
#include "agent/processes/proc_files.h"
#include "base/read_file.h"

namespace rollcall {
namespace {

constexpr size_t kTcpTableBytes = 8 << 20;

}  // namespace

uint64_t SocketIn(absl::string_view link) {
  uint64_t inode = 0;
  const bool fits = absl::ConsumePrefix(&link, "socket:[") && absl::ConsumeSuffix(&link, "]");
  return fits && absl::SimpleAtoi(link, &inode) ? inode : 0;
}

std::vector<TcpSocket> ReadTcpTable(const std::string& proc_root, pid_t pid) {
  const std::string net = ProcPath(proc_root, pid, "net/");
  // A server that listens with IPv6 takes connections of IPv4, too.
  return ParseTcpTable(absl::StrCat(ReadProcFile(net + "tcp", kTcpTableBytes).value_or(""), "\n",
                                    ReadProcFile(net + "tcp6", kTcpTableBytes).value_or("")));
}

SocketTables::Socket SocketTables::Find(uint64_t inode) {
  Socket found;
  const TcpSocket* connection = FindConnection(tcp(), inode);
  if (connection != nullptr) {
    found.peer = FindOtherSocket(tcp(), inode);
    found.called = LeadsToAListener(tcp(), *connection);
    if (SharesNetwork()) found.received_bytes = ReadReceivedBytes(*connection);
  } else if (ListensToNobody(tcp(), inode)) {
    found.listens = true;
  } else if (SharesNetwork()) {
    const auto peer = unix_peers().find(inode);
    if (peer != unix_peers().end()) found.peer = peer->second;
  }
  found.known = connection != nullptr || found.peer != 0;
  return found;
}

const std::vector<TcpSocket>& SocketTables::tcp() {
  if (!tcp_.has_value()) tcp_ = ReadTcpTable(proc_root_, pid_);
  return *tcp_;
}

const UnixPeers& SocketTables::unix_peers() {
  if (!unix_peers_.has_value()) unix_peers_ = ReadUnixPeers(deadline_ns_);
  return *unix_peers_;
}

bool SocketTables::SharesNetwork() {
  if (!shares_network_.has_value()) {
    const std::string own = ReadLink(absl::StrCat(proc_root_, "/self/ns/net"));
    shares_network_ = !own.empty() && own == ReadLink(ProcPath(proc_root_, pid_, "ns/net"));
  }
  return *shares_network_;
}

}  // namespace rollcall
