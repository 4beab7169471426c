// SPDX-License-Identifier: Apache-2.0
// Adds sites (the lines of the program that made the calls) to a verdict, if the library
// records them (ROLLCALL_CALL_SITES=1): those of the culprits and of the waiting ranks.
#pragma once

#include "daemon/model/job_state.h"
#include "daemon/model/verdict.h"

namespace rollcall {

void FindCallSites(const JobState& job, Verdict* verdict);

// Says in the evidence where the first culprit and the other ranks made their calls.
void DescribeCallSites(Verdict* verdict);

// Whether the culprit's site is that of its last call, and not of the call that the verdict is
// about.
bool IsSiteOfLastCall(const Verdict& verdict, const Culprit& culprit);

}  // namespace rollcall
