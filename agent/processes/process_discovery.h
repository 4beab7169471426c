// SPDX-License-Identifier: Apache-2.0
// Finds the processes of a job by their environment, so that a rank which has never called NCCL
// (and so has no segment) can still be named.
//
// A process of the job has inherited LD_PRELOAD=...librollcall.so. Pure.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "agent/processes/proc_stat.h"
#include "agent/processes/process_id.h"
#include "agent/processes/rank_environment.h"

namespace rollcall {

inline constexpr size_t kMaxEnvironBytes = 4 << 20;

struct DiscoveredProcess {
  ProcessId process;
  pid_t ppid = 0;
  std::string name;
  EnvironmentRank rank;  // rank -1 for a launcher that has none
  std::string job;       // empty if the environment names none
  std::string directory;  // its ROLLCALL_DIR; empty if there is none
  // Whether this is the process that runs the rank: of a rank's shell, training process and data
  // loaders the topmost that is no shell. Never a launcher, whose children have ranks of their own.
  bool is_main = false;
};

// What the environment `environ` says of the process; nullopt if it has not inherited the library,
// or uses another directory. is_main is not set yet.
std::optional<DiscoveredProcess> DiscoverIn(absl::string_view environ, const ProcStat& stat,
                                            const std::string& rollcall_directory);

// Whether an LD_PRELOAD value names a librollcall.so.
bool PreloadsRollcall(absl::string_view ld_preload);

// Sets is_main of each.
void MarkMainProcesses(std::vector<DiscoveredProcess>* processes);

}  // namespace rollcall
