// SPDX-License-Identifier: Apache-2.0
// Adds the step of the training loop to a verdict, if the program reports it
// (interpose/rollcall.h). Pure.
#pragma once

#include "daemon/model/job_state.h"
#include "daemon/model/verdict.h"

namespace rollcall {

// Fills in Culprit.step and .phase, and Verdict.step and .phase of the waiting ranks; adds
// lines of evidence.
void AddSteps(const JobState& job, Verdict* verdict);

}  // namespace rollcall
