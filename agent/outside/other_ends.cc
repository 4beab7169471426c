// SPDX-License-Identifier: Apache-2.0
#include "agent/outside/other_ends.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

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
#include "agent/processes/payer.h"
#include "agent/processes/proc_files.h"
#include "agent/processes/proc_stat.h"
#include "base/monotonic_clock.h"
#include "base/read_file.h"

namespace rollcall {
namespace {

constexpr size_t kMostDescriptors = 16384;  // of one process

using FileId = std::pair<uint64_t, uint64_t>;  // device, inode
constexpr FileId kNoFile = {0, 0};

// Of a pipe with a name; kNoFile: the descriptor is of another kind. Asks no file server.
FileId NamedPipeOf(const std::string& descriptor) {
  struct statx about;
  const unsigned wanted = STATX_TYPE | STATX_INO;
  if (statx(AT_FDCWD, descriptor.c_str(), AT_STATX_DONT_SYNC, wanted, &about) != 0) return kNoFile;
  if (!S_ISFIFO(about.stx_mode)) return kNoFile;
  return {uint64_t{about.stx_dev_major} << 32 | about.stx_dev_minor, about.stx_ino};
}

// The process whose end a pidfd waits for; 0 if unknown.
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

void AddPid(pid_t pid, std::vector<pid_t>* pids) {
  const auto at = std::lower_bound(pids->begin(), pids->end(), pid);
  if (at != pids->end() && *at == pid) return;
  if (pids->size() < kMostOtherEnds) pids->insert(at, pid);
}

// Whether the descriptor can be read (S_IRUSR) or written (S_IWUSR); 0 if unknown.
mode_t ModeOf(const std::string& descriptor) {
  struct stat about;
  if (lstat(descriptor.c_str(), &about) != 0) return 0;
  return about.st_mode & (S_IRUSR | S_IWUSR);
}

// A thread that waits for a pipe or socket.
struct Wait {
  pid_t pid = 0;
  OtherEnd* end = nullptr;
  mode_t other_mode = 0;   // of a pipe: what its other end can do; 0 means anything
  FileId named = kNoFile;  // in another mount namespace its path may be another file's
  bool called = false;     // a connection that it has made
};

// 0 if there is no such process.
uint64_t StartOf(const std::string& proc_root, pid_t pid) {
  const absl::StatusOr<ProcStat> stat = ReadProcStat(proc_root, pid);
  return stat.ok() ? stat->start_time : 0;
}

// The pipes and sockets at the other ends, and the threads that wait for each.
class Links {
 public:
  Links(const std::string& proc_root, const Among& among, int64_t deadline_ns)
      : proc_root_(proc_root), among_(among), deadline_ns_(deadline_ns), starts_(among.starts) {}

  // `depth`: an epoll descriptor can be among those of another one.
  void Add(pid_t pid, int fd, int depth, OtherEnd* waits) {
    if (MonotonicNs() > deadline_ns_) return;
    const std::string descriptor = ProcPath(proc_root_, pid, absl::StrCat("fd/", fd));
    const std::string link = ReadLink(descriptor);
    if (link == "anon_inode:[pidfd]" || absl::StartsWith(link, "pidfd:[")) {
      return AddProcess(pid, fd, waits);
    }
    if (link == "anon_inode:[eventpoll]") return AddWatched(pid, fd, depth, waits);
    const FileId named = absl::StartsWith(link, "/") ? NamedPipeOf(descriptor) : kNoFile;
    if (named != kNoFile || absl::StartsWith(link, "pipe:[")) {
      return AddPipe({pid, waits, ModeOf(descriptor), named}, link);
    }
    AddSocket({pid, waits}, SocketIn(link));
  }

  // Reads no more than it looks at: a process may have millions of descriptors.
  void LookIn(pid_t other) {
    const uint64_t start = StartOf(proc_root_, other);
    if (start != starts_.emplace(other, start).first->second) return;
    const std::string path = ProcPath(proc_root_, other, "fd");
    const std::unique_ptr<DIR, int (*)(DIR*)> folder(opendir(path.c_str()), closedir);
    if (folder == nullptr) return;
    for (size_t i = 0; i < kMostDescriptors && MonotonicNs() <= deadline_ns_; ++i) {
      const dirent* entry = readdir(folder.get());
      if (entry == nullptr) return;
      const std::string descriptor = absl::StrCat(path, "/", entry->d_name);
      const auto found = waiting_.find(ReadLink(descriptor));
      if (found != waiting_.end()) AddOther(other, descriptor, &found->second);
    }
  }

  // Whether it is still the process that was looked at.
  bool IsSame(pid_t pid) const {
    const auto known = starts_.find(pid);
    return known == starts_.end() || known->second == StartOf(proc_root_, pid);
  }

  std::string NameOf(pid_t pid) const {
    const absl::StatusOr<ProcStat> stat = ReadProcStat(proc_root_, pid);
    const auto known = starts_.find(pid);
    const bool is_same = known == starts_.end() || (stat.ok() && known->second == stat->start_time);
    return stat.ok() && is_same ? stat->name : "";
  }

  bool empty() const { return waiting_.empty(); }
  bool AreAllFound() const {
    return std::all_of(waiting_.begin(), waiting_.end(),
                       [](const auto& link) { return link.second.is_found; });
  }

 private:
  static constexpr int kMostNested = 2;
  struct Link {
    std::vector<Wait> waits;
    bool is_found = false;
  };

  void AddProcess(pid_t pid, int fd, OtherEnd* waits) {
    const pid_t process = ProcessOf(proc_root_, pid, fd);
    if (process == 0) return;
    starts_.emplace(process, StartOf(proc_root_, process));
    // Any user may have a handle of any process.
    if (!IsAmongTheFirst(process) && !HaveSameUser(proc_root_, pid, process)) return;
    waits->kind = "process";
    AddPid(process, &waits->pids);
  }

  bool IsAmongTheFirst(pid_t pid) const {
    return std::find(among_.first.begin(), among_.first.end(), pid) != among_.first.end();
  }

  void AddWatched(pid_t pid, int epoll, int depth, OtherEnd* waits) {
    if (depth == kMostNested) return;
    for (const int fd : ListWatched(proc_root_, pid, epoll)) Add(pid, fd, depth + 1, waits);
  }

  // Others that read the same pipe are not at its other end.
  void AddPipe(Wait wait, const std::string& link) {
    if (wait.end->kind.empty()) wait.end->kind = "pipe";
    const mode_t own = wait.other_mode;
    wait.other_mode = own == S_IRUSR ? S_IWUSR : own == S_IWUSR ? S_IRUSR : 0;
    waiting_[link].waits.push_back(wait);
  }

  static void AddOther(pid_t other, const std::string& descriptor, Link* link) {
    for (const Wait& wait : link->waits) {
      if (wait.pid == other) continue;
      if (wait.other_mode != 0 && (ModeOf(descriptor) & wait.other_mode) == 0) continue;
      if (wait.named != kNoFile && wait.named != NamedPipeOf(descriptor)) continue;
      AddPid(other, &wait.end->pids);
      if (wait.called) AddPid(other, &wait.end->called);
      link->is_found = true;
    }
  }

  void AddSocket(Wait wait, uint64_t inode) {
    if (inode == 0) return;
    const SocketTables::Socket socket = SocketsOf(wait.pid)->Find(inode);
    if (socket.known || socket.listens) wait.end->kind = "socket";
    wait.end->listens = wait.end->listens || socket.listens;
    if (socket.received_bytes != 0 && wait.end->received.size() < kMostReceived) {
      wait.end->received.push_back({inode, socket.received_bytes});
    }
    wait.called = socket.called;
    if (socket.peer != 0)
      waiting_[absl::StrCat("socket:[", socket.peer, "]")].waits.push_back(wait);
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
  const Among& among_;
  const int64_t deadline_ns_;
  Starts starts_;  // of those that were looked at, before the look
  std::unordered_map<std::string, std::unique_ptr<SocketTables>> sockets_;
  std::unordered_map<std::string, Link> waiting_;  // by the link of their descriptors
};

void AddWaits(const std::string& proc_root, const WaitingThreads& waiting, int64_t deadline_ns,
              std::vector<OtherEnd>* ends, Links* links) {
  for (size_t i = 0; i < waiting.tids.size() && MonotonicNs() <= deadline_ns; ++i) {
    const pid_t tid = waiting.tids[i];
    for (const int fd : FindWaitedDescriptors(proc_root, waiting.pid, tid, waiting.memory)) {
      links->Add(waiting.pid, fd, 0, &(*ends)[i]);
    }
  }
}

void LookAmong(const Among& among, int64_t deadline_ns, Links* links) {
  size_t looked_in = 0;
  const auto look = [&](const std::vector<pid_t>& processes) {
    for (const pid_t other : processes) {
      if (links->empty() || MonotonicNs() > deadline_ns || looked_in == kMostLookedIn) return;
      ++looked_in;
      links->LookIn(other);
    }
  };
  look(among.first);
  if (among.further != nullptr && !links->AreAllFound()) look(among.further());
}

}  // namespace

std::vector<std::vector<OtherEnd>> FindOtherEnds(const std::string& proc_root,
                                                 const std::vector<WaitingThreads>& waiting,
                                                 const Among& among, int64_t deadline_ns) {
  std::vector<std::vector<OtherEnd>> ends;
  for (const WaitingThreads& threads : waiting) ends.emplace_back(threads.tids.size());
  Links links(proc_root, among, deadline_ns);
  for (size_t i = 0; i < waiting.size(); ++i) {
    AddWaits(proc_root, waiting[i], deadline_ns, &ends[i], &links);
  }
  LookAmong(among, deadline_ns, &links);
  for (size_t i = 0; i < waiting.size(); ++i) {
    const bool is_same = links.IsSame(waiting[i].pid);
    for (OtherEnd& end : ends[i]) {
      if (!is_same || (end.pids.empty() && end.received.empty() && !end.listens)) end = {};
      for (const pid_t pid : end.pids) end.names.push_back(links.NameOf(pid));
    }
  }
  return ends;
}

}  // namespace rollcall
