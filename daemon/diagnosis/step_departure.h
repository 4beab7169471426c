// SPDX-License-Identifier: Apache-2.0
// How the odd call of a rank departs from the step that the rank repeats. A guess, for advice,
// where both sides stand at one line: a loop over parameters, a hook, a forward pass. Pure.
#pragma once

#include <vector>

#include "daemon/model/habit.h"
#include "daemon/model/verdict.h"

namespace rollcall {

struct StepDeparture {
  // kSkipped: the odd call is a later one of the step, or the others have made one that no step
  // had. kExtra: it is an earlier one. kReplaced: neither is known, or both are as likely.
  DivergenceKind kind = DivergenceKind::kReplaced;
  bool is_usual = false;  // the odd call is one of the step
};

// `calls`: of the rank, the odd one last. `others`: the call that the others made in its place.
// `is_earlier`: in each step, the program makes the odd call before that of the others. Then a rank
// that is ahead has left out the rest of its step.
StepDeparture DepartFromStep(const std::vector<CallToken>& calls, CallToken others,
                             bool is_earlier = false);

}  // namespace rollcall
