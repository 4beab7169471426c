// SPDX-License-Identifier: Apache-2.0
// Takes account of calls that the library could not record: they are missing evidence. A rank
// that may have made the call unrecorded is never blamed for certain.
#pragma once

#include "daemon/model/job_state.h"
#include "daemon/model/verdict.h"

namespace rollcall {

// Adds the losses of the verdict's ranks to its missing evidence, and lowers its certainty if
// a lost record may show that a culprit made the call.
void AddLosses(const JobState& job, Verdict* verdict);

// Names the living culprits without stacks because stacks are switched off.
void AddForbiddenStacks(const JobState& job, Verdict* verdict);

}  // namespace rollcall
