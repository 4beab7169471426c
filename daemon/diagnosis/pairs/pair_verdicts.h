// SPDX-License-Identifier: Apache-2.0
// Which of several joined jobs reports a hang, and what it reports. Pure.
//
// One hang has one incident: that of the job whose ranks hold the others up, while a process of it
// lives; else that of a job that waits. An open incident goes on, of several the oldest: after a
// restart of the daemon one job may be back first. The other jobs refer to it. Each job decides by
// itself, and all come to the same answer, since they see the same states.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "daemon/diagnosis/pairs/joined_jobs.h"
#include "daemon/model/verdict.h"

namespace rollcall {

struct PairVerdicts {
  // Verdicts for the first job's own incident. Processes of other jobs are named and have no index.
  std::vector<Verdict> own;
  // The job whose incident shows why the first job waits; unset for the job's own only.
  std::optional<JobKey> told_by;
  // What that incident is about, with the numbers of ranks that the joined state has.
  std::string summary;
};

// By part: when the open incident of the job was opened, or nullopt.
using OpenedNs = std::vector<std::optional<int64_t>>;

// `verdicts`: on the joined state, the roots first.
PairVerdicts SplitVerdicts(const JoinedJobs& joined, std::vector<Verdict> verdicts,
                           const OpenedNs& opened_ns);

}  // namespace rollcall
