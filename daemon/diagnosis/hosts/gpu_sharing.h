// SPDX-License-Identifier: Apache-2.0
// Adds evidence about GPUs that several processes share.
#pragma once

#include "daemon/model/job_state.h"
#include "daemon/model/verdict.h"

namespace rollcall {

void AddGpuSharing(const JobState& job, Verdict* verdict);

}  // namespace rollcall
