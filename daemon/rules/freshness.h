// SPDX-License-Identifier: Apache-2.0
// Takes account of the age of the reports that a verdict rests on.
//
// An agent sends a tick even if nothing has changed. If three ticks are missing, the data of its
// host is old: the ranks there may have made progress since. Where the daemon has asked for seldom
// ticks, data that is not old in this sense may still be older than the wait is long.
#pragma once

#include <cstdint>
#include <vector>

#include "daemon/model/job_state.h"
#include "daemon/model/verdict.h"
#include "daemon/rules/stuck_call.h"

namespace rollcall {

// Three ticks of an agent that ticks often. The age of younger reports makes no difference.
inline constexpr int64_t kFreshReportNs = 300'000'000;

// The ranks of `guilty` to blame: without stale ranks if some rank has fresh reports.
std::vector<Absent> Blamable(const std::vector<Absent>& guilty);

// When the first counted wait of `waiters` began.
int64_t CountedSince(const JobState& job, const std::vector<Waiter>& waiters);

// Fills in the age of the evidence. A verdict on old reports or silent hosts is at most `likely`,
// and so is one on a wait that the reports do not show to be long.
// True if the verdict blames ranks for a wait alone. The end of a process and an error are facts
// whatever the length of the wait.
bool RestsOnWait(const Verdict& verdict);

// No wait is certain while a process that waits, or for which others wait, is kept from running.
void WeighStops(const JobState& job, Verdict* verdict);

void WeighAge(const JobState& job, int64_t now_ns, const Limits& limits, Verdict* verdict);

}  // namespace rollcall
