// SPDX-License-Identifier: Apache-2.0
// What the library could not record bears on a verdict: it is missing evidence, and who may have
// made the call unseen is not blamed for certain.
#pragma once

#include "daemon/model/job_state.h"
#include "daemon/model/verdict.h"

namespace rollcall {

// Adds the losses of the verdict's ranks to its missing evidence, and lowers its certainty where
// a culprit's part may be among what was lost.
void AddLosses(const JobState& job, Verdict* verdict);

}  // namespace rollcall
