// SPDX-License-Identifier: Apache-2.0
// How the first culprit departs from a rank that waits, by the stacks of both and its own calls.
#pragma once

#include "daemon/model/verdict.h"

namespace rollcall {

// Sets `departure`, after AddPlaces(). Where the rules show only that the calls differ, it also
// finds whether the culprit has skipped a call or made an extra one.
void AddDeparture(const JobState& job, Verdict* verdict);

}  // namespace rollcall
