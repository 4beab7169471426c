// SPDX-License-Identifier: Apache-2.0
// Hosts whose tasks wait for a CPU most of the time: a rank there may be slow and no more.
#pragma once

#include "daemon/model/job_state.h"
#include "daemon/model/verdict.h"

namespace rollcall {

// No wait that involves a rank of such a host is certain. Where the culprit uses the CPU there, the
// wait counts as a hang only after three times `limits.hang_after_ns`.
void WeighStarvedHosts(const JobState& job, const Limits& limits, Verdict* verdict);

}  // namespace rollcall
