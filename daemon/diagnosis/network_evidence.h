// SPDX-License-Identifier: Apache-2.0
// Which verdicts the network transfers of ranks can explain, and what they add to them.
#pragma once

#include <cstdint>
#include <vector>

#include "daemon/model/job_state.h"
#include "daemon/model/verdict.h"

namespace rollcall {

// The communicators of NCCL whose call all ranks have entered, and which does not end: at most 64.
std::vector<uint64_t> StalledCommunicators(const std::vector<Verdict>& verdicts);

// The samples of a verdict's communicator that were read during the wait, each with the rank of its
// process in the job's state, and with peers that the communicator has.
std::vector<NetworkSample> NetworkSamplesOf(const JobState& job, const Verdict& verdict);

// Names in a stalled call the rank, peer and link at which the transfers stand.
void AddNetwork(const JobState& job, Verdict* verdict);

}  // namespace rollcall
