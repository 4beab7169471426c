// SPDX-License-Identifier: Apache-2.0
#include "cli/diagnose/find.h"

#include <sys/stat.h>

#include <algorithm>
#include <functional>
#include <iterator>
#include <map>
#include <memory>
#include <set>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "agent/collector/mapped_libraries.h"
#include "agent/outside/connections.h"
#include "agent/processes/pod_environment.h"
#include "agent/processes/proc_files.h"
#include "agent/processes/proc_lines.h"
#include "agent/processes/proc_stat.h"
#include "agent/processes/process_namespaces.h"
#include "agent/processes/rank_environment.h"
#include "agent/processes/this_host.h"
#include "base/clean_text.h"
#include "base/monotonic_clock.h"
#include "cli/diagnose/read_each.h"

namespace rollcall {
namespace {

constexpr int64_t kConnectionsTimeoutNs = 600'000'000;
// With named processes: for the stats of all, and for their relatives at least.
constexpr int64_t kStatsTimeoutNs = 1'000'000'000;
constexpr int64_t kLeastOfRelativesNs = 1'000'000'000;
constexpr size_t kMostAbove = 32;
constexpr size_t kMostThreadsNamed = 512;
constexpr size_t kMostCommand = 64 << 10;
constexpr size_t kMostAddress = 256;

// The user whose process it is. Does not block: the folder belongs to the process's user, or to
// root if no user may trace it.
std::optional<uid_t> OwnerOf(const std::string& proc_root, pid_t pid) {
  struct stat about;
  const std::string path = absl::StrCat(proc_root, "/", pid);
  if (stat(path.c_str(), &about) != 0) return std::nullopt;
  return about.st_uid;
}

bool HasThreadOfRank(const std::string& proc_root, pid_t pid) {
  const auto tids = ListNumbers(ProcPath(proc_root, pid, "task"));
  if (!tids.ok()) return false;
  size_t named = 0;
  for (const pid_t tid : *tids) {
    if (++named > kMostThreadsNamed) return false;
    const auto name =
        ReadProcFile(absl::StrCat(ProcPath(proc_root, pid, "task"), "/", tid, "/comm"));
    if (name.ok() && IsThreadOfRank(*name)) return true;
  }
  return false;
}

// The pipe by which this rank's Flight Recorder can be asked. PyTorch appends the rank.
std::string DumpPipeOf(absl::string_view environ, int rank) {
  const absl::string_view prefix = FindInEnviron(environ, "TORCH_NCCL_DEBUG_INFO_PIPE_FILE");
  return prefix.empty() || rank < 0 ? "" : absl::StrCat(prefix, rank, ".pipe");
}

void ReadEnvironment(const std::string& proc_root, const ProcStat& stat, FoundProcess* found) {
  const auto own = ReadProcFile(ProcPath(proc_root, stat.pid, "environ"), kMaxEnvironBytes);
  found->is_readable = own.ok();
  const std::string environ = own.ok() ? WithPodVariables(*own, proc_root, stat.pid) : "";
  found->process = DescribeIn(environ, stat);
  found->preloads = PreloadsRollcall(FindInEnviron(environ, "LD_PRELOAD")) ||
                    PreloadsRollcall(FindInEnviron(environ, kPreloadVariable));
  found->marks = FindMarks(
      environ,
      absl::StrCat(HostName(), " ", ReadNetworkNamespace(proc_root, std::to_string(stat.pid))));
  found->local_world_size = LocalWorldSize(environ);
  found->ras_address =
      CleanText(std::string(FindInEnviron(environ, "NCCL_RAS_ADDR").substr(0, kMostAddress)));
  found->dump_pipe = DumpPipeOf(environ, found->process.rank.coordinates.rank);
}

// Without its maps.
FoundProcess ReadOne(const std::string& proc_root, const ProcStat& stat, int64_t owner) {
  FoundProcess found;
  found.state = stat.state;
  found.wait_status = stat.wait_status;
  found.uid = owner;
  ReadEnvironment(proc_root, stat, &found);
  if (!found.is_readable || IsDead(stat.state)) return found;
  found.command = ReadProcFile(ProcPath(proc_root, stat.pid, "cmdline"), kMostCommand).value_or("");
  return found;
}

struct Mapped {
  std::vector<std::string> libraries;
  bool talks = false;
};

Mapped ReadMapped(const std::string& proc_root, pid_t pid, bool has_rank) {
  Mapped mapped;
  mapped.libraries = ReadLibraries(proc_root, pid);
  mapped.talks = !mapped.libraries.empty() && !has_rank && HasThreadOfRank(proc_root, pid);
  return mapped;
}

bool HasRank(const FoundProcess& found) { return found.process.rank.coordinates.rank >= 0; }

// A rank without a variable may show itself by whom it talks with.
bool MayBeConnected(const FoundProcess& found) {
  return !HasRank(found) && !found.libraries.empty();
}

void AddConnections(const FindOptions& options, SpareThreads* threads,
                    std::vector<FoundProcess>* processes) {
  std::map<pid_t, FoundProcess*> asked;
  std::vector<pid_t> pids;
  for (FoundProcess& found : *processes) {
    if (!MayBeConnected(found)) continue;
    pids.push_back(found.process.process.pid);
    asked[pids.back()] = &found;
  }
  if (pids.size() < 2) return;
  const auto pairs = threads->Get<std::vector<ConnectedPair>>(
      "connections",
      [root = options.proc_root, pids] {
        return FindConnections(root, pids, MonotonicNs() + kConnectionsTimeoutNs / 3 * 2);
      },
      kConnectionsTimeoutNs);
  if (!pairs.has_value()) return;
  for (const auto& [one, other] : *pairs) {
    asked.at(one)->connected.push_back(other);
    asked.at(other)->connected.push_back(one);
  }
}

class Finder {
 public:
  Finder(const FindOptions& options, SpareThreads* threads)
      : options_(options), threads_(threads), deadline_ns_(MonotonicNs() + options.patience_ns) {}

  FoundProcesses Find() {
    ReadStats();
    FindRelatives();
    ReadEnvironments();
    found_.has_all_variables = found_.silent.empty() && !found_.is_cut;
    ReadMaps();
    for (auto& [pid, process] : processes_) found_.processes.push_back(std::move(process));
    AddConnections(options_, threads_, &found_.processes);
    std::sort(found_.silent.begin(), found_.silent.end());
    return std::move(found_);
  }

 private:
  struct Known {
    ProcStat stat;
    int64_t owner = -1;
    bool is_near = false;  // named, or a relative of one that is
  };

  bool IsNamed(pid_t pid) const {
    return std::find(options_.pids.begin(), options_.pids.end(), pid) != options_.pids.end();
  }

  template <typename Value>
  std::vector<std::pair<pid_t, Value>> Read(const std::string& what,
                                            const std::vector<ToRead>& wanted,
                                            const std::function<Value(pid_t)>& read,
                                            int64_t deadline_ns) {
    ReadOfEach<Value> result = ReadEach<Value>(what, wanted, read, deadline_ns, threads_);
    found_.silent.insert(found_.silent.end(), result.silent.begin(), result.silent.end());
    found_.is_cut = found_.is_cut || result.is_cut;
    return std::move(result.values);
  }

  // Of all: they cost little, and show who is related.
  void ReadStats() {
    std::vector<ToRead> wanted;
    for (const pid_t pid : ListNumbers(options_.proc_root).value_or(std::vector<pid_t>())) {
      const std::optional<uid_t> owner = OwnerOf(options_.proc_root, pid);
      if (!owner.has_value()) continue;
      if (options_.uid.has_value() && *owner != *options_.uid && !IsNamed(pid)) continue;
      wanted.push_back({pid, static_cast<int64_t>(*owner)});
      known_[pid].owner = static_cast<int64_t>(*owner);
    }
    const std::function<absl::StatusOr<ProcStat>(pid_t)> read =
        [root = options_.proc_root](pid_t pid) { return ReadProcStat(root, pid); };
    const int64_t deadline_ns =
        options_.pids.empty() ? deadline_ns_ : MonotonicNs() + kStatsTimeoutNs;
    for (auto& [pid, stat] : Read("stat", wanted, read, deadline_ns)) {
      if (stat.ok() && !stat->is_kernel_thread) known_[pid].stat = *std::move(stat);
    }
    for (auto at = known_.begin(); at != known_.end();) {
      at = at->second.stat.pid == 0 ? known_.erase(at) : std::next(at);
    }
  }

  // The named ones, what stands above them and has started their siblings, all below these, and
  // the sessions of the named ones. Process 1 is everybody's relative.
  void FindRelatives() {
    std::set<pid_t> roots, sessions;
    for (const pid_t pid : options_.pids) {
      const auto named = known_.find(pid);
      if (named == known_.end()) continue;
      const ProcStat& stat = named->second.stat;
      roots.insert(pid);
      if (stat.ppid > 1) roots.insert(stat.ppid);
      if (stat.session > 1) sessions.insert(stat.session);
      for (const pid_t above : Ancestors(pid)) known_.at(above).is_near = true;
    }
    if (roots.empty()) return;
    for (auto& [pid, known] : known_) {
      const std::vector<pid_t> above = Ancestors(pid);
      known.is_near = known.is_near || roots.count(pid) != 0 ||
                      sessions.count(known.stat.session) != 0 ||
                      std::any_of(above.begin(), above.end(),
                                  [&roots](pid_t one) { return roots.count(one) != 0; });
    }
  }

  std::vector<pid_t> Ancestors(pid_t pid) const {
    std::vector<pid_t> ancestors;
    for (auto at = known_.find(known_.at(pid).stat.ppid);
         at != known_.end() && ancestors.size() < kMostAbove;
         at = known_.find(at->second.stat.ppid)) {
      ancestors.push_back(at->first);
    }
    return ancestors;
  }

  std::vector<ToRead> Those(const std::function<bool(const Known&)>& are_wanted) const {
    std::vector<ToRead> those;
    for (const auto& [pid, known] : known_) {
      if (are_wanted(known)) those.push_back({pid, known.owner});
    }
    return those;
  }

  void ReadEnvironments() {
    const auto known = std::make_shared<std::map<pid_t, Known>>(known_);
    const std::function<FoundProcess(pid_t)> read = [root = options_.proc_root, known](pid_t pid) {
      return ReadOne(root, known->at(pid).stat, known->at(pid).owner);
    };
    for (const bool near : {true, false}) {
      const std::vector<ToRead> wanted =
          Those([near](const Known& one) { return one.is_near == near; });
      for (auto& [pid, process] : Read("environ", wanted, read, DeadlineNs(near))) {
        processes_.emplace(pid, std::move(process));
      }
    }
  }

  int64_t DeadlineNs(bool near) const {
    return near ? MonotonicNs() + std::max(options_.patience_ns, kLeastOfRelativesNs)
                : deadline_ns_;
  }

  // Those of strangers show ranks of which no variable does.
  void ReadMaps() {
    const auto is_near = [this](pid_t pid) { return known_.at(pid).is_near; };
    const bool is_numbered =
        std::any_of(processes_.begin(), processes_.end(),
                    [&](const auto& one) { return is_near(one.first) && HasRank(one.second); });
    std::vector<ToRead> near, ranks, others;
    for (const auto& [pid, process] : processes_) {
      if (!process.is_readable || IsDead(process.state)) continue;
      auto& part = is_near(pid) ? near : HasRank(process) ? ranks : others;
      part.push_back({pid, process.uid});
    }
    ReadMapsOf(near, DeadlineNs(true));
    ReadMapsOf(ranks, deadline_ns_);
    if (!is_numbered) ReadMapsOf(others, deadline_ns_);
  }

  void ReadMapsOf(const std::vector<ToRead>& wanted, int64_t deadline_ns) {
    std::set<pid_t> with_rank;
    for (const auto& [pid, process] : processes_) {
      if (HasRank(process)) with_rank.insert(pid);
    }
    const std::function<Mapped(pid_t)> read = [root = options_.proc_root, with_rank](pid_t pid) {
      return ReadMapped(root, pid, with_rank.count(pid) != 0);
    };
    for (auto& [pid, mapped] : Read("maps", wanted, read, deadline_ns)) {
      FoundProcess& process = processes_.at(pid);
      process.libraries = std::move(mapped.libraries);
      process.talks = mapped.talks;
    }
  }

  const FindOptions& options_;
  SpareThreads* const threads_;
  const int64_t deadline_ns_;
  std::map<pid_t, Known> known_;
  std::map<pid_t, FoundProcess> processes_;
  FoundProcesses found_;
};

}  // namespace

FoundProcesses FindProcesses(const FindOptions& options, SpareThreads* threads) {
  return Finder(options, threads).Find();
}

}  // namespace rollcall
