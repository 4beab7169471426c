// SPDX-License-Identifier: Apache-2.0
// Finds the rank that failed first in a job that its launcher ended before a rank had
// waited for long: torchrun kills all ranks a moment after the first failure.
//
// Pure, like the rules: applies the rules to the state of the job at the moment when only
// the ranks that failed first were gone.
#pragma once

#include <cstdint>
#include <set>
#include <vector>

#include "daemon/model/job_state.h"
#include "daemon/model/verdict.h"

namespace rollcall {

// Verdicts that blame the ranks that failed first, on communicators whose members have all ended.
// Empty if there is no such communicator, no rank failed, the first failure is unknown, or no rank
// waited for it. Adds the communicators to `judged` and skips those already in it: a restarted job
// still has the communicators of its earlier attempts.
std::vector<Verdict> JudgeTheEnd(const JobState& job, std::set<uint64_t>* judged);

}  // namespace rollcall
