// SPDX-License-Identifier: Apache-2.0
// Judges the stuck calls of a job: follows the waits to the calls at which the hang began. Pure.
#pragma once

#include <cstdint>
#include <vector>

#include "daemon/model/job_state.h"
#include "daemon/model/verdict.h"
#include "daemon/rules/stuck_call.h"

namespace rollcall {

// The verdicts on the calls at which the waits end. `*consequences`: of those, with the chain of
// waits.
std::vector<Verdict> JudgeCalls(const JobState& job, const StuckCalls& calls, int64_t now_ns,
                                const Limits& limits, std::vector<Verdict>* consequences);

}  // namespace rollcall
