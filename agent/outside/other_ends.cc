// SPDX-License-Identifier: Apache-2.0
#include "agent/outside/other_ends.h"

#include <dirent.h>

#include <algorithm>
#include <memory>
#include <unordered_map>
#include <utility>

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
  Links(const std::string& proc_root, int64_t deadline_ns)
      : proc_root_(proc_root), deadline_ns_(deadline_ns) {}

  void Add(pid_t pid, int fd, OtherEnd* waits) {
    const std::string link = ReadLink(ProcPath(proc_root_, pid, absl::StrCat("fd/", fd)));
    if (link == "anon_inode:[pidfd]" || absl::StartsWith(link, "pidfd:[")) {
      AddProcess(pid, fd, waits);
    }
    const uint64_t pipe = InodeIn(link, kPipe);
    if (pipe != 0 && waits->kind.empty()) waits->kind = "pipe";
    const uint64_t peer = pipe != 0 ? pipe : PeerOf(pid, InodeIn(link, kSocket), waits);
    if (peer != 0) waiting_[peer].push_back({pid, waits});
  }

  // Reads no more than it looks at: a process may have millions of descriptors.
  void LookIn(pid_t other) {
    const std::string path = ProcPath(proc_root_, other, "fd");
    const std::unique_ptr<DIR, int (*)(DIR*)> folder(opendir(path.c_str()), closedir);
    if (folder == nullptr) return;
    for (size_t i = 0; i < kMostDescriptors && MonotonicNs() <= deadline_ns_; ++i) {
      const dirent* entry = readdir(folder.get());
      if (entry == nullptr) return;
      const std::string link = ReadLink(absl::StrCat(path, "/", entry->d_name));
      const auto found = waiting_.find(std::max(InodeIn(link, kPipe), InodeIn(link, kSocket)));
      if (found == waiting_.end()) continue;
      for (const auto& [pid, waits] : found->second) {
        if (pid != other) AddPid(other, waits);
      }
    }
  }

  bool empty() const { return waiting_.empty(); }

 private:
  void AddProcess(pid_t pid, int fd, OtherEnd* waits) {
    const pid_t process = ProcessOf(proc_root_, pid, fd);
    if (process == 0) return;
    waits->kind = "process";
    AddPid(process, waits);
  }

  uint64_t PeerOf(pid_t pid, uint64_t inode, OtherEnd* waits) {
    if (inode == 0) return 0;
    const SocketTables::Socket socket = SocketsOf(pid)->Find(inode);
    if (socket.known) waits->kind = "socket";
    if (socket.received_bytes != 0 && waits->received.size() < kMostReceived) {
      waits->received.push_back({inode, socket.received_bytes});
    }
    return socket.peer;
  }

  // A process and its children have the same tables, as a rule.
  SocketTables* SocketsOf(pid_t pid) {
    const std::string network = ReadLink(ProcPath(proc_root_, pid, "ns/net"));
    std::unique_ptr<SocketTables>& sockets =
        sockets_[network.empty() ? absl::StrCat(pid) : network];
    if (sockets == nullptr) {
      sockets = std::make_unique<SocketTables>(proc_root_, pid, deadline_ns_);
    }
    return sockets.get();
  }

  const std::string& proc_root_;
  const int64_t deadline_ns_;
  std::unordered_map<std::string, std::unique_ptr<SocketTables>> sockets_;
  // By the inode: the process and its thread.
  std::unordered_map<uint64_t, std::vector<std::pair<pid_t, OtherEnd*>>> waiting_;
};

void AddWaits(const std::string& proc_root, const WaitingThreads& waiting, int64_t deadline_ns,
              std::vector<OtherEnd>* ends, Links* links) {
  for (size_t i = 0; i < waiting.tids.size() && MonotonicNs() <= deadline_ns; ++i) {
    const pid_t tid = waiting.tids[i];
    for (const int fd : FindWaitedDescriptors(proc_root, waiting.pid, tid, waiting.memory)) {
      links->Add(waiting.pid, fd, &(*ends)[i]);
    }
  }
}

}  // namespace

std::vector<std::vector<OtherEnd>> FindOtherEnds(const std::string& proc_root,
                                                 const std::vector<WaitingThreads>& waiting,
                                                 const std::vector<pid_t>& among,
                                                 int64_t deadline_ns) {
  std::vector<std::vector<OtherEnd>> ends;
  for (const WaitingThreads& threads : waiting) ends.emplace_back(threads.tids.size());
  Links links(proc_root, deadline_ns);
  for (size_t i = 0; i < waiting.size(); ++i) {
    AddWaits(proc_root, waiting[i], deadline_ns, &ends[i], &links);
  }
  for (const pid_t other : among) {
    if (links.empty() || MonotonicNs() > deadline_ns) break;
    links.LookIn(other);
  }
  for (std::vector<OtherEnd>& of_process : ends) {
    for (OtherEnd& end : of_process) {
      if (end.pids.empty() && end.received.empty()) end = {};
    }
  }
  return ends;
}

}  // namespace rollcall
