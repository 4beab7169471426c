// SPDX-License-Identifier: Apache-2.0
// A second sign, beside the states of the transfers, that a rank or link does not work.
#pragma once

#include <string>

#include "daemon/model/job_state.h"
#include "daemon/model/network_state.h"
#include "daemon/model/verdict.h"

namespace rollcall {

struct NetworkWitness {
  std::string text;  // "rank 3: its GPU has not started the call, shown by GPU markers", or empty
  bool is_proof = false;  // false: it may have nothing to do with the transfers
};

// `walk` counts in the communicator. A dead link of a host at one of the ends is not proof: NCCL
// does not report which NIC it uses, and the link may be one that the job does not use.
NetworkWitness SecondWitness(const JobState& job, const Verdict& verdict, const NetworkWalk& walk);

// Whether the rank's GPU has not started the call, while those of others have, by their markers.
bool HasNotStarted(const Communicator& comm, int32_t rank, uint64_t position);

}  // namespace rollcall
