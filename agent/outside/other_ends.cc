// SPDX-License-Identifier: Apache-2.0
#include "agent/outside/other_ends.h"

#include <dirent.h>
#include <limits.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "agent/outside/tcp_counters.h"
#include "agent/outside/tcp_table.h"
#include "agent/outside/unix_peers.h"
#include "agent/outside/waited_descriptors.h"
#include "agent/processes/proc_files.h"
#include "base/monotonic_clock.h"

namespace rollcall {
namespace {

constexpr size_t kTcpTableBytes = 8 << 20;
constexpr size_t kMostDescriptors = 16384;  // of one process
constexpr absl::string_view kPipe = "pipe:[";
constexpr absl::string_view kSocket = "socket:[";
constexpr absl::string_view kProcess = "anon_inode:[pidfd]";

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

// Reads no more than it looks at: a process may have millions of descriptors.
bool HasOpen(const std::string& proc_root, pid_t pid, const std::set<std::string>& links) {
  const std::string path = ProcPath(proc_root, pid, "fd");
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(opendir(path.c_str()), closedir);
  if (folder == nullptr) return false;
  for (size_t i = 0; i < kMostDescriptors; ++i) {
    const dirent* entry = readdir(folder.get());
    if (entry == nullptr) return false;
    if (links.count(ReadLink(absl::StrCat(path, "/", entry->d_name))) != 0) return true;
  }
  return false;
}

bool SharesNetwork(const std::string& proc_root, pid_t pid) {
  const std::string own = ReadLink(absl::StrCat(proc_root, "/self/ns/net"));
  return !own.empty() && own == ReadLink(ProcPath(proc_root, pid, "ns/net"));
}

std::vector<TcpSocket> ReadTcpTable(const std::string& proc_root, pid_t pid) {
  const std::string net = ProcPath(proc_root, pid, "net/");
  // A server that listens with IPv6 takes connections of IPv4, too.
  return ParseTcpTable(absl::StrCat(ReadProcFile(net + "tcp", kTcpTableBytes).value_or(""), "\n",
                                    ReadProcFile(net + "tcp6", kTcpTableBytes).value_or("")));
}

// The links of the descriptors that other processes have at the other end.
class Links {
 public:
  Links(const std::string& proc_root, pid_t pid) : proc_root_(proc_root), pid_(pid) {}

  void Add(int fd, OtherEnd* found) {
    const std::string link = ReadLink(ProcPath(proc_root_, pid_, absl::StrCat("fd/", fd)));
    const uint64_t inode = InodeIn(link, kSocket);
    if (inode != 0) AddSocket(inode, found);
    if (link == kProcess || absl::StartsWith(link, "pidfd:[")) AddProcess(fd, found);
    if (!absl::StartsWith(link, kPipe)) return;
    links_.insert(link);
    if (found->kind.empty()) found->kind = "pipe";
  }
  const std::set<std::string>& links() const { return links_; }

 private:
  // A descriptor of a process, whose end the thread waits for.
  void AddProcess(int fd, OtherEnd* found) {
    const std::string file = ProcPath(proc_root_, pid_, absl::StrCat("fdinfo/", fd));
    const std::string text = ReadProcFile(file).value_or("");
    for (absl::string_view line : absl::StrSplit(text, '\n')) {
      pid_t process = 0;
      if (!absl::ConsumePrefix(&line, "Pid:\t") || !absl::SimpleAtoi(line, &process)) continue;
      if (process > 0 && found->pids.size() < kMostOtherEnds) found->pids.push_back(process);
      found->kind = "process";
    }
  }

  void AddSocket(uint64_t inode, OtherEnd* found) {
    if (!tcp_.has_value()) tcp_ = ReadTcpTable(proc_root_, pid_);
    const TcpSocket* connection = FindConnection(*tcp_, inode);
    const bool shares_network = SharesNetwork(proc_root_, pid_);
    if (connection != nullptr && shares_network) {
      found->received_bytes += ReadReceivedBytes(*connection);
    }
    uint64_t peer = FindOtherSocket(*tcp_, inode);
    if (connection == nullptr && shares_network) peer = FindUnixPeer(inode);
    if (connection != nullptr || peer != 0) found->kind = "socket";
    if (peer != 0) links_.insert(absl::StrCat(kSocket, peer, "]"));
  }

  const std::string& proc_root_;
  const pid_t pid_;
  std::optional<std::vector<TcpSocket>> tcp_;
  std::set<std::string> links_;
};

}  // namespace

OtherEnd FindOtherEnd(const std::string& proc_root, pid_t pid, pid_t tid,
                      const std::vector<pid_t>& among, int64_t deadline_ns, ProcessMemory* memory) {
  OtherEnd found;
  if (MonotonicNs() > deadline_ns) return found;
  const std::vector<int> fds = FindWaitedDescriptors(proc_root, pid, tid, memory);
  Links at_the_other_end(proc_root, pid);
  for (const int fd : fds) at_the_other_end.Add(fd, &found);
  const std::set<std::string>& links = at_the_other_end.links();
  for (const pid_t other : among) {
    if (links.empty() || found.pids.size() == kMostOtherEnds) break;
    if (MonotonicNs() > deadline_ns) break;
    if (other != pid && HasOpen(proc_root, other, links)) found.pids.push_back(other);
  }
  if (found.pids.empty() && found.received_bytes == 0) return {};
  std::sort(found.pids.begin(), found.pids.end());
  found.pids.erase(std::unique(found.pids.begin(), found.pids.end()), found.pids.end());
  return found;
}

}  // namespace rollcall
