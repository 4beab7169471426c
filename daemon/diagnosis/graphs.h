// What a verdict tells of CUDA graphs: which launch made the call, and who captured it instead.
#pragma once

#include "daemon/model/job_state.h"
#include "daemon/model/verdict.h"

namespace rollcall {

void AddGraphs(const JobState& job, Verdict* verdict);

}  // namespace rollcall
