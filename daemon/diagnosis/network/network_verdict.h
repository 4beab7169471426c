// SPDX-License-Identifier: Apache-2.0
// Adds to a verdict which rank, peer and link hold its collective up, by the states of NCCL's
// transfers over the network. Pure.
#pragma once

#include <vector>

#include "daemon/model/job_state.h"
#include "daemon/model/network_state.h"
#include "daemon/model/verdict.h"

namespace rollcall {

// Sets `verdict->network`, culprits, certainty, evidence and missing evidence of a
// stalled_in_flight verdict. Ignores samples of other communicators. All ranks in
// `verdict->network` are then as people number them (PublicRank()), no longer those of the
// communicator.
//
// A sample was read at Process::network_ns, or, if that is 0, at Process::stacks_ns; one from
// before the wait shows nothing. If a transfer has moved shortly before, no rank is accused.
//
// Comes before AddPlaces() and AddHostEvidence(), which describe the culprits.
void ApplyNetwork(const JobState& job, const std::vector<NetworkSample>& samples, Verdict* verdict);

}  // namespace rollcall
