// SPDX-License-Identifier: Apache-2.0
// Adds sites (the lines of the program that made the calls) to a verdict, if the library
// records them (ROLLCALL_CALL_SITES=1): those of the culprits and of the waiting ranks.
#pragma once

#include "daemon/model/job_state.h"
#include "daemon/model/verdict.h"

namespace rollcall {

void AddCallSites(const JobState& job, Verdict* verdict);

}  // namespace rollcall
