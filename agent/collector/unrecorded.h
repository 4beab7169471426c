// SPDX-License-Identifier: Apache-2.0
// Ranks of distributed jobs that were started without Rollcall's library: what a process's
// environment or their connections show of them, and the list of them that goes to the daemon.
//
// The list has no command line and no variables. What makes the ranks of one job alike leaves the
// host as a digest.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "agent/collector/job_marks.h"
#include "agent/processes/process_discovery.h"
#include "rollcall/v1/agent.pb.h"
#include "security/redact.h"

namespace rollcall {

struct UnrecordedRank {
  DiscoveredProcess process;
  std::string found_by;     // as v1::UnrecordedProcess
  int64_t payer = -1;       // as PayerOfReads()
  std::vector<Mark> marks;  // best first
  std::string script;       // as v1::UnrecordedProcess
  int32_t local_world_size = 0;
  // On the clock of SteadyNs(), worked out once: each time it would differ by some nanoseconds.
  int64_t started_ns = 0;
};

// See the comment of v1::UnrecordedProcesses.
inline constexpr size_t kMostUnrecorded = 1024;
inline constexpr size_t kMostUnrecordedOfUser = 256;

// nullopt if the environment gives the process no rank of several, it has inherited the library, or
// it is a helper of its language's runtime. Reads the arguments and how the process was started,
// which may block: see spare_threads.h. Sets neither ppid, name, is_main nor payer.
std::optional<UnrecordedRank> DescribeUnrecorded(absl::string_view environ, const ProcStat& stat,
                                                 const std::string& proc_root);

// The same of a process whose environment gives it no rank, and which may be one by its connections
// (peers.h).
std::optional<UnrecordedRank> DescribeTalker(absl::string_view environ, const ProcStat& stat,
                                             const std::string& proc_root);

// Pure. `left_out`: ranks that the scan has left out. A user with very many leaves the others
// their share.
v1::UnrecordedProcesses ListOf(const std::vector<UnrecordedRank>& ranks, size_t left_out,
                               const Redactor& redactor);

}  // namespace rollcall
