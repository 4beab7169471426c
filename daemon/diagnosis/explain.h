// SPDX-License-Identifier: Apache-2.0
// Orders the verdicts on a job: causes before their effects.
#pragma once

#include <cstdint>
#include <vector>

#include "daemon/model/job_state.h"
#include "daemon/model/verdict.h"

namespace rollcall {

// Verdicts in the order of the report: first the roots, most important first; then their
// consequences, with is_consequence set. Drops stalls that another verdict explains:
// they add nothing.
std::vector<Verdict> InOrderOfCause(const JobState& job, std::vector<Verdict> verdicts);

}  // namespace rollcall
