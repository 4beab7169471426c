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

// The list of its nodes as Slurm writes it, "node[01-04,7]". An error: it does not run.
absl::StatusOr<std::string> ParseSlurmJob(absl::string_view text);

// `scontrol show hostnames`, of which the answer is a node a line: ParseHosts().
Command ShowHostnamesCommand(const std::string& nodes);

}  // namespace rollcall
