// SPDX-License-Identifier: Apache-2.0
// The step of a program that does not report it, counted by the calls that its ranks repeat.
#pragma once

#include <cstddef>

#include "daemon/model/verdict.h"

namespace rollcall {

// Sets the verdict's step if no rank reports one (AddSteps()), and notes in the evidence how it was
// counted. Returns the number of calls of a step. 0, and no change, if a rank reports its step, or
// if the waiting ranks' pasts on the communicator are too short or irregular.
size_t LearnStep(const JobState& job, Verdict* verdict);

}  // namespace rollcall
