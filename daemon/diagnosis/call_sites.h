// SPDX-License-Identifier: Apache-2.0
// Adds source lines to a verdict's calls, if the library records them
// (ROLLCALL_CALL_SITES=1): the culprits' and the waiting ranks' side by side.
#pragma once

#include "daemon/model/job_state.h"
#include "daemon/model/verdict.h"

namespace rollcall {

void AddCallSites(const JobState& job, Verdict* verdict);

}  // namespace rollcall
