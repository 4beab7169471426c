// Which step of the training loop the ranks of a verdict are in, where the program
// says so (interpose/rollcall.h). Pure.
#pragma once

#include "daemon/model/job_state.h"
#include "daemon/model/verdict.h"

namespace rollcall {

// Fills in Culprit.step and .phase, and those of the waiting; says so in the evidence.
void AddSteps(const JobState& job, Verdict* verdict);

}  // namespace rollcall
