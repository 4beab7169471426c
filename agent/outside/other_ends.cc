// SPDX-License-Identifier: Apache-2.0
#include "agent/outside/other_ends.h"

#include <dirent.h>

#include <algorithm>
#include <memory>
#include <unordered_map>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "agent/outside/socket_tables.h"
#include "agent/outside/waited_descriptors.h"
#include "agent/processes/proc_files.h"
#include "base/monotonic_clock.h"
#include "base/read_file.h"

namespace rollcall {
namespace {

constexpr size_t kMostDescriptors = 16384;  // of one process
constexpr absl::string_view kPipe = "pipe:[";
constexpr absl::string_view kSocket = "socket:[";

// Of "pipe:[4711]"; 0: the link is of another kind. The kernel numbers pipes and sockets together.
uint64_t InodeIn(absl::string_view link, absl::string_view kind) {
  uint64_t inode = 0;
  const bool fits = absl::ConsumePrefix(&link, kind) && absl::ConsumeSuffix(&link, "]");
  return fits && absl::SimpleAtoi(link, &inode) ? inode : 0;
}

// The process whose end a pidfd waits for; 0: not known.
pid_t ProcessOf(const std::string& proc_root, pid_t pid, int fd) {
  const std::string file = ProcPath(proc_root, pid, absl::StrCat("fdinfo/", fd));
  const std::string text = ReadProcFile(file).value_or("");
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    pid_t process = 0;
    if (absl::ConsumePrefix(&line, "Pid:\t") && absl::SimpleAtoi(line, &process)) {
      return std::max(process, 0);
    }
  }
  return 0;
}

void AddPid(pid_t pid, OtherEnd* found) {
  const auto at = std::lower_bound(found->pids.begin(), found->pids.end(), pid);
  if (at != found->pids.end() && *at == pid) return;
  if (found->pids.size() < kMostOtherEnds) found->pids.insert(at, pid);
}

// The pipes and sockets at the other ends, and the threads that wait for each.
class Links {
 public:
  Links(const std::string& proc_root, pid_t pid, int64_t deadline_ns)
      : proc_root_(proc_root), pid_(pid), sockets_(proc_root, pid, deadline_ns) {}

  void Add(int fd, OtherEnd* waits) {
    const std::string link = ReadLink(ProcPath(proc_root_, pid_, absl::StrCat("fd/", fd)));
    if (link == "anon_inode:[pidfd]" || absl::StartsWith(link, "pidfd:[")) AddProcess(fd, waits);
    const uint64_t pipe = InodeIn(link, kPipe);
    if (pipe != 0 && waits->kind.empty()) waits->kind = "pipe";
    const uint64_t peer = pipe != 0 ? pipe : PeerOf(InodeIn(link, kSocket), waits);
    if (peer != 0) waiting_[peer].push_back(waits);
  }

  // Reads no more than it looks at: a process may have millions of descriptors.
  void LookIn(pid_t other, int64_t deadline_ns) {
    const std::string path = ProcPath(proc_root_, other, "fd");
    const std::unique_ptr<DIR, int (*)(DIR*)> folder(opendir(path.c_str()), closedir);
    if (folder == nullptr) return;
    for (size_t i = 0; i < kMostDescriptors && MonotonicNs() <= deadline_ns; ++i) {
      const dirent* entry = readdir(folder.get());
      if (entry == nullptr) return;
      const std::string link = ReadLink(absl::StrCat(path, "/", entry->d_name));
      const auto found = waiting_.find(std::max(InodeIn(link, kPipe), InodeIn(link, kSocket)));
      if (found == waiting_.end()) continue;
      for (OtherEnd* waits : found->second) AddPid(other, waits);
    }
  }

  bool empty() const { return waiting_.empty(); }

 private:
  void AddProcess(int fd, OtherEnd* waits) {
    const pid_t process = ProcessOf(proc_root_, pid_, fd);
    if (process == 0) return;
    waits->kind = "process";
    AddPid(process, waits);
  }

  uint64_t PeerOf(uint64_t inode, OtherEnd* waits) {
    if (inode == 0) return 0;
    const SocketTables::Socket socket = sockets_.Find(inode);
    if (socket.known) waits->kind = "socket";
    if (socket.received_bytes != 0 && waits->received.size() < kMostReceived) {
      waits->received.push_back({inode, socket.received_bytes});
    }
    return socket.peer;
  }

  const std::string& proc_root_;
  const pid_t pid_;
  SocketTables sockets_;
  std::unordered_map<uint64_t, std::vector<OtherEnd*>> waiting_;  // by the inode
};

}  // namespace

std::vector<OtherEnd> FindOtherEnds(const std::string& proc_root, pid_t pid,
                                    const std::vector<pid_t>& tids, const std::vector<pid_t>& among,
                                    int64_t deadline_ns, ProcessMemory* memory) {
  std::vector<OtherEnd> ends(tids.size());
  Links links(proc_root, pid, deadline_ns);
  for (size_t i = 0; i < tids.size() && MonotonicNs() <= deadline_ns; ++i) {
    for (const int fd : FindWaitedDescriptors(proc_root, pid, tids[i], memory)) {
      links.Add(fd, &ends[i]);
    }
  }
  for (const pid_t other : among) {
    if (links.empty() || MonotonicNs() > deadline_ns) break;
    if (other != pid) links.LookIn(other, deadline_ns);
  }
  for (OtherEnd& end : ends) {
    if (end.pids.empty() && end.received.empty()) end = {};
  }
  return ends;
}

}  // namespace rollcall
