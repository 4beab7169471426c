// Puts causes before effects: which of the verdicts on a job explain others.
#pragma once

#include <cstdint>
#include <vector>

#include "daemon/model/job_state.h"
#include "daemon/model/verdict.h"

namespace rollcall {

// Verdicts in the order in which they are to be told: roots, the weightiest
// first; then what they explain, with is_consequence set. Stalls that are
// explained are dropped: that a call does not finish is no news where it is
// known why.
std::vector<Verdict> InOrderOfCause(const JobState& job, std::vector<Verdict> verdicts);

}  // namespace rollcall
