// SPDX-License-Identifier: Apache-2.0
// A second sign, beside the states of the transfers, that a rank or link does not work.
#pragma once

#include <string>

#include "daemon/model/job_state.h"
#include "daemon/model/network_state.h"
#include "daemon/model/verdict.h"

namespace rollcall {

// "rank 3: its GPU has not started the call, shown by GPU markers"; "": there is none. `walk`
// counts in the communicator.
std::string SecondWitness(const JobState& job, const Verdict& verdict, const NetworkWalk& walk);

// Whether the rank's GPU has not started the call, while those of others have, by their markers.
bool HasNotStarted(const Communicator& comm, int32_t rank, uint64_t position);

}  // namespace rollcall
