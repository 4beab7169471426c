// SPDX-License-Identifier: Apache-2.0
// Adds facts about CUDA graphs to a verdict: the launch that made the call, and captured calls.
#pragma once

#include "daemon/model/job_state.h"
#include "daemon/model/verdict.h"

namespace rollcall {

void AddGraphs(const JobState& job, Verdict* verdict);

}  // namespace rollcall
