// SPDX-License-Identifier: Apache-2.0
#include "agent/processes/process_discovery.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace rollcall {
namespace {

// Programs that start the training process and pass a rank's environment on to it.
constexpr absl::string_view kWrappers[] = {"sh",   "bash",    "dash", "zsh", "ksh",
                                           "fish", "timeout", "nsys", "ncu", "strace"};

bool IsWrapper(absl::string_view name) {
  return std::find(std::begin(kWrappers), std::end(kWrappers), name) != std::end(kWrappers);
}

absl::string_view WithoutTrailingSlash(absl::string_view directory) {
  while (directory.size() > 1 && absl::ConsumeSuffix(&directory, "/")) {
  }
  return directory;
}

bool InDirectory(absl::string_view environ, absl::string_view wanted) {
  if (wanted.empty()) return true;
  return WithoutTrailingSlash(FindInEnviron(environ, "ROLLCALL_DIR")) ==
         WithoutTrailingSlash(wanted);
}

std::string ReadJobName(absl::string_view environ) {
  std::string value;
  JobNameBuffer job;
  CopyJobName(FindJob([&value, environ](const char* name) -> const char* {
                value = std::string(FindInEnviron(environ, name));
                return value.c_str();
              }),
              job);
  return job;
}

// Slurm's batch script has SLURM_PROCID=0, and passes it on to srun and torchrun, but it is not a
// task: its tasks have a step. A rank 0 of this kind would stand beside the real one.
bool IsOfBatchScript(const EnvironmentRank& rank, absl::string_view environ) {
  return absl::string_view(rank.variable) == "SLURM_PROCID" &&
         FindInEnviron(environ, "SLURM_JOB_ID").data() != nullptr &&
         FindInEnviron(environ, "SLURM_STEP_ID").data() == nullptr;
}

using ByPid = std::map<pid_t, DiscoveredProcess*>;

// Limits the processes between a launcher and its ranks. A user may have thousands of processes,
// each the child of the one before.
constexpr size_t kMostAncestors = 32;

// Returns the nearest ancestors of `process` that are in `by_pid`, nearest first.
std::vector<DiscoveredProcess*> Ancestors(const DiscoveredProcess& process, const ByPid& by_pid) {
  std::vector<DiscoveredProcess*> ancestors;
  auto parent = by_pid.find(process.ppid);
  while (parent != by_pid.end() && ancestors.size() < kMostAncestors) {
    ancestors.push_back(parent->second);
    parent = by_pid.find(parent->second->ppid);
  }
  return ancestors;
}

// Whether `process` has its rank from a launcher `above`: by a variable that is closer to the
// process (torchrun has the SLURM_PROCID of its Slurm task, its workers have RANK), or, by the same
// one, as a worker of a launcher that counts nodes (torchrun in a pod that has RANK itself).
bool IsStartedBy(const DiscoveredProcess& above, const DiscoveredProcess& process) {
  if (process.rank.table_row != above.rank.table_row) {
    return process.rank.table_row < above.rank.table_row;
  }
  const Place &own = process.rank.coordinates, &others = above.rank.coordinates;
  return own.local_rank >= 0 && others.local_rank < 0 && others.rank >= 0 &&
         (own.rank != others.rank || own.world_size != others.world_size);
}

// Returns the launchers: processes with a descendant whose rank they gave.
std::set<pid_t> FindLaunchers(const std::vector<DiscoveredProcess>& processes,
                              const ByPid& by_pid) {
  std::set<pid_t> launchers;
  for (const DiscoveredProcess& process : processes) {
    if (process.rank.coordinates.rank < 0) continue;
    for (const DiscoveredProcess* ancestor : Ancestors(process, by_pid)) {
      if (IsStartedBy(*ancestor, process)) launchers.insert(ancestor->process.pid);
    }
  }
  return launchers;
}

}  // namespace

DiscoveredProcess DescribeIn(absl::string_view environ, const ProcStat& stat) {
  DiscoveredProcess process;
  process.process = {stat.pid, stat.start_time};
  process.ppid = stat.ppid;
  process.name = stat.name;
  const EnvironmentRank rank = FindRankInEnviron(environ);
  if (!IsOfBatchScript(rank, environ)) process.rank = rank;
  process.job = ReadJobName(environ);
  process.directory = std::string(FindInEnviron(environ, "ROLLCALL_DIR"));
  return process;
}

std::optional<DiscoveredProcess> DiscoverIn(absl::string_view environ, const ProcStat& stat,
                                            const std::string& rollcall_directory) {
  const bool preloads = PreloadsRollcall(FindInEnviron(environ, "LD_PRELOAD")) ||
                        PreloadsRollcall(FindInEnviron(environ, kPreloadVariable));
  if (!preloads || !InDirectory(environ, rollcall_directory)) return std::nullopt;
  return DescribeIn(environ, stat);
}

bool PreloadsRollcall(absl::string_view ld_preload) {
  for (absl::string_view path : absl::StrSplit(ld_preload, absl::ByAnyChar(": "))) {
    if (absl::EndsWith(path, "librollcall.so")) return true;
  }
  return false;
}

void MarkMainProcesses(std::vector<DiscoveredProcess>* processes) {
  ByPid by_pid;
  for (DiscoveredProcess& process : *processes) by_pid[process.process.pid] = &process;
  const std::set<pid_t> launchers = FindLaunchers(*processes, by_pid);
  const auto candidate = [&launchers](const DiscoveredProcess& process) {
    return process.rank.coordinates.rank >= 0 && launchers.count(process.process.pid) == 0;
  };
  // A shell with a training process below it only waits for that process.
  std::set<pid_t> idle_wrappers;
  for (const DiscoveredProcess& process : *processes) {
    if (!candidate(process) || IsWrapper(process.name)) continue;
    for (const DiscoveredProcess* ancestor : Ancestors(process, by_pid)) {
      if (ancestor->rank.coordinates.rank == process.rank.coordinates.rank &&
          IsWrapper(ancestor->name)) {
        idle_wrappers.insert(ancestor->process.pid);
      }
    }
  }
  for (DiscoveredProcess& process : *processes) {
    const auto ancestors = Ancestors(process, by_pid);
    process.is_main =
        candidate(process) && idle_wrappers.count(process.process.pid) == 0 &&
        std::none_of(ancestors.begin(), ancestors.end(), [&](const DiscoveredProcess* ancestor) {
          return candidate(*ancestor) && idle_wrappers.count(ancestor->process.pid) == 0 &&
                 ancestor->rank.coordinates.rank == process.rank.coordinates.rank;
        });
  }
}

}  // namespace rollcall
