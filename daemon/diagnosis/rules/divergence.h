// SPDX-License-Identifier: Apache-2.0
// Finds where the histories of a communicator's ranks diverge: the common part of the
// two mismatch rules.
//
// Ranks with equal signatures at equal positions have equal histories, so each
// group of them is looked at once. The first divergence is the answer: whatever
// differs after it is its symptom.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "daemon/model/job_state.h"
#include "daemon/model/verdict.h"
#include "daemon/words/alignment.h"

namespace rollcall {

// Ranks that made the same call.
struct Side {
  std::vector<int32_t> ranks;  // in the communicator
  CallArgs call;
  int64_t since_ns = 0;  // when the first of them entered it
};

struct Divergence {
  uint64_t position = 0;
  uint64_t position_end = 0;    // not 0: somewhere from `position` to before this; records are lost
  std::vector<Side> sides;      // at least two; the largest first
  bool may_be_earlier = false;  // records before `position` are lost
  size_t undecided = 0;         // ranks that have not come so far
  Alignment alignment;          // of the second side with the first, where records are left
};

// The first one, and those that are left when its minority is left out: ranks
// may go wrong for more than one reason. At most kMostDivergences.
std::vector<Divergence> FindDivergences(const Communicator& comm);
inline constexpr size_t kMostDivergences = 4;

// Cheap, and never false where there is a divergence: do all members whose
// signatures can be compared agree?
bool MayDiverge(const Communicator& comm);

// "operation", "dtype", "count", "reduction", "root": what differs.
std::vector<std::string> DifferingFields(const CallArgs& a, const CallArgs& b);

}  // namespace rollcall
