// SPDX-License-Identifier: Apache-2.0
#include "agent/outside/ancestors.h"

#include "agent/processes/payer.h"
#include "agent/processes/proc_stat.h"

namespace rollcall {

std::vector<pid_t> FindAncestors(const std::string& proc_root, pid_t pid) {
  std::vector<pid_t> ancestors;
  pid_t below = pid;
  while (ancestors.size() < kMostAncestors) {
    const absl::StatusOr<ProcStat> stat = ReadProcStat(proc_root, below);
    if (!stat.ok() || stat->ppid <= 1 || !HaveSameUser(proc_root, pid, stat->ppid)) break;
    below = stat->ppid;
    ancestors.push_back(below);
  }
  return ancestors;
}

}  // namespace rollcall
