// SPDX-License-Identifier: Apache-2.0
// The nodes of a job of Slurm, as scontrol names them. Pure.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "cli/remote/remote_commands.h"

namespace rollcall {

// `scontrol show job`, of which the answer goes to ParseSlurmJob().
Command ShowJobCommand(const std::string& job);

struct SlurmJob {
  // As its processes have it in SLURM_JOB_ID, and as srun takes it. A task of an array has a number
  // of its own besides "123_4".
  std::string id;
  std::string nodes;  // as Slurm writes a list, "node[01-04,7]"
};

// Returns an error, for people, if the job does not run, or is an array of which several tasks run,
// each a job of its own.
absl::StatusOr<SlurmJob> ParseSlurmJob(absl::string_view text);

// `scontrol show hostnames`, of which the answer is a node a line: ParseHosts().
Command ShowHostnamesCommand(const std::string& nodes);

}  // namespace rollcall
