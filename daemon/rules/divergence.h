// SPDX-License-Identifier: Apache-2.0
// Finds the position at which the histories of a communicator's ranks diverge: the common
// part of the two mismatch rules.
//
// Ranks with equal signatures at equal positions have equal histories, so the search examines
// each group of them once. The first divergence is the result: later differences are its
// effects.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "daemon/model/habit.h"
#include "daemon/model/job_state.h"
#include "daemon/model/verdict.h"
#include "daemon/words/alignment.h"

namespace rollcall {

// Ranks that made the same call.
struct Side {
  std::vector<int32_t> ranks;  // in the communicator
  CallArgs call;
  int64_t since_ns = 0;  // when the first of them entered the call
};

struct Divergence {
  uint64_t position = 0;
  // If not 0, records are lost, and the divergence is at `position` or later, but before this.
  uint64_t position_end = 0;
  std::vector<Side> sides;      // at least two, largest first, unless a past decides
  bool may_be_earlier = false;  // records before `position` are lost
  // number of ranks that have not entered the call, as far as is known
  size_t undecided = 0;
  Alignment alignment;  // of the second side with the first, if records are left
  // No side has a majority, but the first side keeps its habit and all others break theirs.
  bool decided_by_past = false;
  Habit habit;               // that the others have broken
  CallArgs expected;         // the call of that habit
  uint64_t expected_on = 0;  // its communicator, if it is another one
};

// True if no side is larger than all others.
bool HasNoMajority(const Divergence& divergence);

// The first divergence, and the divergences among the ranks that are left without its
// minority: ranks may go wrong for different reasons. At most kMostDivergences. `job`: for the
// ranks' calls on other communicators, where those on this one decide nothing.
std::vector<Divergence> FindDivergences(const JobState& job, const Communicator& comm);
inline constexpr size_t kMostDivergences = 4;

// False if the signatures of all members are equal where they can be compared. Cheap, and
// never false if there is a divergence.
bool MayDiverge(const Communicator& comm);

// The fields that differ: "operation", "dtype", "count", "reduction", "root".
std::vector<std::string> DifferingFields(const CallArgs& a, const CallArgs& b);

// The bytes of a rank's message. An unknown data type counts as one byte.
uint64_t MessageBytes(const CallArgs& args);

}  // namespace rollcall
