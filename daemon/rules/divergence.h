// Where the histories of a communicator's ranks part: what the two mismatch
// rules have in common.
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
};

std::optional<Divergence> FindDivergence(const Communicator& comm);

// "operation", "dtype", "count", "reduction", "root": what differs.
std::vector<std::string> DifferingFields(const CallArgs& a, const CallArgs& b);

// The divergences of all communicators of which `cause` is the name.
std::vector<Verdict> FindMismatches(const JobState& job, Cause cause, int64_t now_ns);

}  // namespace rollcall
