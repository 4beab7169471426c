// SPDX-License-Identifier: Apache-2.0
// Decides cycles of collectives by the ranks' own pasts: the ranks that make their calls on several
// communicators in another order than in their earlier steps are the culprits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

#include "daemon/model/job_state.h"
#include "daemon/model/verdict.h"
#include "daemon/rules/past_calls.h"

namespace rollcall {

// The calls of a past by which a rank is judged, as indices: [begin, end). Empty if it is not
// judged.
struct JudgedCalls {
  size_t begin = 0;
  size_t end = 0;
};

using ChooseCalls = std::function<JudgedCalls(const Past& past, int32_t process)>;

// Leaves those culprits of a deadlock that break their habit in these calls, if all other culprits
// keep theirs. False if the pasts do not show it: then it changes nothing. The verdict becomes
// `likely` at most.
bool KeepDeparted(const JobState& job, Pasts* pasts, const ChooseCalls& choose, Verdict* verdict);

}  // namespace rollcall
