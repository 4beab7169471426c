// SPDX-License-Identifier: Apache-2.0
// The age of the reports that a verdict rests on, and its effect on the verdict.
//
// An agent sends a tick even when nothing has changed. If three ticks are missing, the data of its
// host is old: its ranks may have made progress since.
#pragma once

#include <cstdint>
#include <vector>

#include "daemon/diagnosis/rules/stuck_call.h"
#include "daemon/model/job_state.h"
#include "daemon/model/verdict.h"

namespace rollcall {

// The ranks of `guilty` to blame: if an absent rank has fresh reports, only such ranks.
std::vector<Absent> Blamable(const std::vector<Absent>& guilty);

// When the counted wait of the first of them began.
int64_t CountedSince(const JobState& job, const std::vector<Waiter>& waiters);

// Fills in the age of the evidence. A verdict on old reports or on silent hosts is never certain.
void WeighAge(const JobState& job, int64_t now_ns, Verdict* verdict);

}  // namespace rollcall
