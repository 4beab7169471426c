// SPDX-License-Identifier: Apache-2.0
#include "agent/outside/connections.h"

#include <dirent.h>

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <unordered_map>

#include "absl/strings/str_cat.h"
#include "agent/outside/socket_tables.h"
#include "agent/outside/tcp_table.h"
#include "agent/processes/proc_files.h"
#include "base/monotonic_clock.h"
#include "base/read_file.h"

namespace rollcall {
namespace {

constexpr size_t kMostDescriptorsRead = 16384;  // of one process

// Ascending, without 0.
std::vector<uint64_t> SocketsHeldBy(const std::string& proc_root, pid_t pid, int64_t deadline_ns) {
  std::vector<uint64_t> sockets;
  const std::string path = ProcPath(proc_root, pid, "fd");
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(opendir(path.c_str()), closedir);
  if (folder == nullptr) return sockets;
  for (size_t i = 0; i < kMostDescriptorsRead && MonotonicNs() <= deadline_ns; ++i) {
    const dirent* entry = readdir(folder.get());
    if (entry == nullptr) break;
    const uint64_t inode = SocketIn(ReadLink(absl::StrCat(path, "/", entry->d_name)));
    if (inode != 0) sockets.push_back(inode);
  }
  return sockets;
}

// By socket: the first of the processes that holds it.
using Holders = std::unordered_map<uint64_t, pid_t>;

void AddPairs(const std::string& proc_root, const Holders& holders, int64_t deadline_ns,
              std::set<ConnectedPair>* pairs) {
  std::map<std::string, std::vector<TcpSocket>> tables;  // by network
  for (const auto& [inode, pid] : holders) {
    if (MonotonicNs() > deadline_ns) return;
    const std::string network = ReadLink(ProcPath(proc_root, pid, "ns/net"));
    const auto [table, is_new] = tables.try_emplace(network.empty() ? absl::StrCat(pid) : network);
    if (is_new) table->second = ReadTcpTable(proc_root, pid);
    if (FindConnection(table->second, inode) == nullptr) continue;
    const auto other = holders.find(FindOtherSocket(table->second, inode));
    if (other == holders.end() || other->second == pid) continue;
    pairs->insert(std::minmax(pid, other->second));
  }
}

}  // namespace

std::vector<ConnectedPair> FindConnections(const std::string& proc_root,
                                           const std::vector<pid_t>& pids, int64_t deadline_ns) {
  Holders holders;
  for (size_t i = 0; i < std::min(pids.size(), kMostConnected); ++i) {
    for (const uint64_t inode : SocketsHeldBy(proc_root, pids[i], deadline_ns))
      holders.emplace(inode, pids[i]);
  }
  std::set<ConnectedPair> pairs;
  AddPairs(proc_root, holders, deadline_ns, &pairs);
  return {pairs.begin(), pairs.end()};
}

}  // namespace rollcall
