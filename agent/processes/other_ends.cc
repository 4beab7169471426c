// SPDX-License-Identifier: Apache-2.0
#include "agent/processes/other_ends.h"

#include <limits.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "agent/processes/proc_files.h"
#include "agent/processes/tcp_table.h"
#include "agent/processes/unix_peers.h"
#include "agent/processes/waited_descriptors.h"

namespace rollcall {
namespace {

constexpr size_t kTcpTableBytes = 8 << 20;
constexpr size_t kMostDescriptors = 16384;  // of one process
constexpr absl::string_view kPipe = "pipe:[";
constexpr absl::string_view kSocket = "socket:[";

// "pipe:[4711]"; "": it cannot be read.
std::string ReadLink(const std::string& path) {
  char target[PATH_MAX];
  const ssize_t size = readlink(path.c_str(), target, sizeof(target));
  return size > 0 ? std::string(target, static_cast<size_t>(size)) : "";
}

uint64_t InodeIn(absl::string_view link, absl::string_view kind) {
  uint64_t inode = 0;
  const bool fits = absl::ConsumePrefix(&link, kind) && absl::ConsumeSuffix(&link, "]");
  return fits && absl::SimpleAtoi(link, &inode) ? inode : 0;
}

bool HasOpen(const std::string& proc_root, pid_t pid, const std::set<std::string>& links) {
  const std::string folder = ProcPath(proc_root, pid, "fd");
  std::vector<int> fds = ListNumbers(folder).value_or(std::vector<int>());
  if (fds.size() > kMostDescriptors) fds.resize(kMostDescriptors);
  return std::any_of(fds.begin(), fds.end(), [&](int fd) {
    return links.count(ReadLink(absl::StrCat(folder, "/", fd))) != 0;
  });
}

bool SharesNetwork(const std::string& proc_root, pid_t pid) {
  const std::string own = ReadLink(absl::StrCat(proc_root, "/self/ns/net"));
  return !own.empty() && own == ReadLink(ProcPath(proc_root, pid, "ns/net"));
}

uint64_t FindPeerSocket(const std::string& proc_root, pid_t pid, uint64_t inode) {
  const std::string net = ProcPath(proc_root, pid, "net/");
  // A server that listens with IPv6 takes connections of IPv4, too.
  const std::string text =
      absl::StrCat(ReadProcFile(net + "tcp", kTcpTableBytes).value_or(""), "\n",
                   ReadProcFile(net + "tcp6", kTcpTableBytes).value_or(""));
  const uint64_t other = FindOtherSocket(ParseTcpTable(text), inode);
  if (other != 0 || !SharesNetwork(proc_root, pid)) return other;
  return FindUnixPeer(inode);
}

// The links of the descriptors that other processes have at the other end.
std::set<std::string> FindLinks(const std::string& proc_root, pid_t pid,
                                const std::vector<int>& fds, OtherEnd* found) {
  std::set<std::string> links;
  for (const int fd : fds) {
    const std::string link = ReadLink(ProcPath(proc_root, pid, absl::StrCat("fd/", fd)));
    const uint64_t inode = InodeIn(link, kSocket);
    const uint64_t peer = inode == 0 ? 0 : FindPeerSocket(proc_root, pid, inode);
    if (absl::StartsWith(link, kPipe)) links.insert(link);
    if (peer != 0) links.insert(absl::StrCat(kSocket, peer, "]"));
    if (peer != 0 || (found->kind.empty() && absl::StartsWith(link, kPipe))) {
      found->kind = peer != 0 ? "socket" : "pipe";
    }
  }
  return links;
}

}  // namespace

OtherEnd FindOtherEnd(const std::string& proc_root, pid_t pid, pid_t tid,
                      const std::vector<pid_t>& among, ProcessMemory* memory) {
  OtherEnd found;
  const std::vector<int> fds = FindWaitedDescriptors(proc_root, pid, tid, memory);
  const std::set<std::string> links = FindLinks(proc_root, pid, fds, &found);
  for (const pid_t other : among) {
    if (links.empty() || found.pids.size() == kMostOtherEnds) break;
    if (other != pid && HasOpen(proc_root, other, links)) found.pids.push_back(other);
  }
  if (found.pids.empty()) return {};
  std::sort(found.pids.begin(), found.pids.end());
  return found;
}

}  // namespace rollcall
