// SPDX-License-Identifier: Apache-2.0
#include "cli/diagnose/find.h"

#include <sys/stat.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
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

namespace rollcall {
namespace {

constexpr int64_t kReadTimeoutNs = 300'000'000;  // for one process
constexpr int64_t kConnectionsTimeoutNs = 600'000'000;
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

std::vector<std::string> ReadLibraries(const std::string& proc_root, pid_t pid) {
  std::set<std::string> libraries;
  const auto look = [&libraries](absl::string_view line) {
    const absl::string_view library = LibraryOf(line);
    if (!library.empty()) libraries.emplace(library);
  };
  static_cast<void>(ForEachProcLine(ProcPath(proc_root, pid, "maps"),
                                    MonotonicNs() + kReadTimeoutNs / 3 * 2, look));
  return {libraries.begin(), libraries.end()};
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

std::optional<FoundProcess> ReadOne(const std::string& proc_root, pid_t pid) {
  const auto stat = ReadProcStat(proc_root, pid);
  if (!stat.ok() || stat->is_kernel_thread) return std::nullopt;
  FoundProcess found;
  found.state = stat->state;
  found.wait_status = stat->wait_status;
  const std::optional<uid_t> owner = OwnerOf(proc_root, pid);
  if (owner.has_value()) found.uid = *owner;
  ReadEnvironment(proc_root, *stat, &found);
  if (!found.is_readable || IsDead(stat->state)) return found;
  found.command = ReadProcFile(ProcPath(proc_root, pid, "cmdline"), kMostCommand).value_or("");
  found.libraries = ReadLibraries(proc_root, pid);
  const bool may_talk = !found.libraries.empty() && found.process.rank.coordinates.rank < 0;
  found.talks = may_talk && HasThreadOfRank(proc_root, pid);
  return found;
}

// A rank without a variable may show itself by whom it talks with.
bool MayBeConnected(const FoundProcess& found) {
  return found.process.rank.coordinates.rank < 0 && !found.libraries.empty();
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

}  // namespace

FoundProcesses FindProcesses(const FindOptions& options, SpareThreads* threads) {
  FoundProcesses found;
  const int64_t deadline_ns = MonotonicNs() + options.patience_ns;
  const auto pids = ListNumbers(options.proc_root);
  if (!pids.ok()) return found;
  for (const pid_t pid : *pids) {
    const std::optional<uid_t> owner = OwnerOf(options.proc_root, pid);
    const bool is_named =
        std::find(options.pids.begin(), options.pids.end(), pid) != options.pids.end();
    if (!owner.has_value()) continue;
    if (options.uid.has_value() && *owner != *options.uid && !is_named) continue;
    if (MonotonicNs() > deadline_ns) {
      found.is_cut = true;
      break;
    }
    auto one = threads->Get<std::optional<FoundProcess>>(
        absl::StrCat("find ", pid),
        [proc_root = options.proc_root, pid] { return ReadOne(proc_root, pid); }, kReadTimeoutNs,
        static_cast<int64_t>(*owner));
    if (!one.has_value()) found.silent.push_back(pid);
    if (one.has_value() && one->has_value()) found.processes.push_back(**std::move(one));
  }
  AddConnections(options, threads, &found.processes);
  return found;
}

}  // namespace rollcall
