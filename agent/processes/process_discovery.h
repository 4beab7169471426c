// SPDX-License-Identifier: Apache-2.0
// Finds the processes of a job by their environment, so that Rollcall can report a rank that has
// never called NCCL and has no segment.
//
// A process of the job has inherited LD_PRELOAD=...librollcall.so, or in a pod of Kubernetes
// ROLLCALL_PRELOAD. Pure.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "agent/processes/launch_facts.h"
#include "agent/processes/proc_stat.h"
#include "agent/processes/process_id.h"
#include "agent/processes/rank_environment.h"

namespace rollcall {

struct DiscoveredProcess {
  ProcessId process;
  pid_t ppid = 0;
  std::string name;
  EnvironmentRank rank;   // rank -1 means a launcher without a rank
  std::string job;        // empty if the environment has no job name
  std::string directory;  // its ROLLCALL_DIR; empty if unset
  LaunchFacts launch;     // empty in the result of DiscoverIn()
  // Whether this is the main process of the rank: of the rank's shells, training process and data
  // loaders, the topmost one that is not a shell. A launcher, whose children have ranks of their
  // own, is never a main process.
  bool is_main = false;
};

// The rank and the job of a process by its environment `environ`, whether or not it has inherited
// the library. Does not set is_main and launch.
DiscoveredProcess DescribeIn(absl::string_view environ, const ProcStat& stat);

// Reads the rank and the job of a process from its environment `environ`. nullopt if the process
// has not inherited the library, or uses another directory. Does not set is_main and launch.
std::optional<DiscoveredProcess> DiscoverIn(absl::string_view environ, const ProcStat& stat,
                                            const std::string& rollcall_directory);

// Whether an LD_PRELOAD value contains a librollcall.so.
bool PreloadsRollcall(absl::string_view ld_preload);

// Sets is_main of each process.
void MarkMainProcesses(std::vector<DiscoveredProcess>* processes);

}  // namespace rollcall
