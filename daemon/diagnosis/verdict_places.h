// SPDX-License-Identifier: Apache-2.0
// Adds to a verdict where its culprits and one of the waiting ranks stand in the program, by stacks
// taken during the wait.
#pragma once

#include "daemon/model/job_state.h"
#include "daemon/model/verdict.h"

namespace rollcall {

void AddPlaces(const JobState& job, Verdict* verdict);

}  // namespace rollcall
