// How old the word is that a verdict rests on, and what that leaves of it.
//
// An agent sends a tick even when nothing has changed. Where three of them are missing, what is
// known of its host is old: its ranks may have gone on meanwhile.
#pragma once

#include <cstdint>
#include <vector>

#include "daemon/diagnosis/rules/stuck_call.h"
#include "daemon/model/job_state.h"
#include "daemon/model/verdict.h"

namespace rollcall {

// Those of `guilty` that may be blamed: where somebody who is heard is absent, nobody else is.
std::vector<Absent> Blamable(const std::vector<Absent>& guilty);

// Since when the first of them has waited, as far as that counts.
int64_t CountedSince(const JobState& job, const std::vector<Waiter>& waiters);

// Fills in what the verdict says of its age. What rests on old word, or on hosts that are silent,
// is never certain.
void WeighAge(const JobState& job, int64_t now_ns, Verdict* verdict);

}  // namespace rollcall
