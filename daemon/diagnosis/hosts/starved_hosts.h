// SPDX-License-Identifier: Apache-2.0
// Hosts whose tasks wait for a CPU most of the time: a rank there may be slow and no more.
#pragma once

#include "daemon/model/job_state.h"
#include "daemon/model/verdict.h"

namespace rollcall {

// No wait that involves a rank of such a host is certain.
void WeighStarvedHosts(const JobState& job, Verdict* verdict);

}  // namespace rollcall
