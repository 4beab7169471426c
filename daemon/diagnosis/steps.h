// SPDX-License-Identifier: Apache-2.0
// The step of the training loop that the ranks of a verdict are in, if the program
// reports it (interpose/rollcall.h). Pure.
#pragma once

#include "daemon/model/job_state.h"
#include "daemon/model/verdict.h"

namespace rollcall {

// Fills in Culprit.step and .phase, and those of the waiting; adds lines of evidence.
void AddSteps(const JobState& job, Verdict* verdict);

}  // namespace rollcall
