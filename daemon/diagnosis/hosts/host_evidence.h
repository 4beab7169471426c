// SPDX-License-Identifier: Apache-2.0
// What the hosts show, as evidence for a verdict: the difference between the hosts is the evidence.
//
// In a call that all ranks have entered, ranks on a host with a broken part become the culprits. An
// absent rank gets the reason why it stands still. Never makes a verdict `certain`.
//
// Pure.
#pragma once

#include "daemon/model/job_state.h"
#include "daemon/model/verdict.h"

namespace rollcall {

void AddHostEvidence(const JobState& job, Verdict* verdict);

}  // namespace rollcall
