// SPDX-License-Identifier: Apache-2.0
// Decides ties by the ranks' own pasts: where no majority decides, the side that breaks its own
// habit is the culprit.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "daemon/model/habit.h"
#include "daemon/model/job_state.h"

namespace rollcall {

struct TieDecision {
  size_t kept = 0;           // index of the side that keeps its habit
  rollcall::Habit habit;     // that all other sides break
  CallArgs expected;         // the call of that habit
  uint64_t expected_on = 0;  // its communicator, if it is another one
};

// `sides`: ranks that made the same call at this position, which differs from side to side. None
// unless one side keeps its habit and all others break theirs. Where the calls on this communicator
// show no habit, those on all communicators of `job` may.
std::optional<TieDecision> DecideTie(const JobState& job, const Communicator& comm,
                                     const std::vector<const std::vector<int32_t>*>& sides,
                                     uint64_t position);

// True if the member's call at this position is the one that its process has always made there, but
// on another communicator. False where that is not known, and in jobs with very many ranks.
bool IsUsualElsewhere(const JobState& job, const Communicator& comm, const Member& member,
                      uint64_t position);

}  // namespace rollcall
