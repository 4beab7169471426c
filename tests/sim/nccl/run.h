// SPDX-License-Identifier: Apache-2.0
// What a stream does when it comes to a communicator's work. Returns early, with
// whatever data there is then, when the communicator is stopped.
#pragma once

#include <vector>

#include "tests/sim/nccl/comm.h"

namespace rollcall::sim {

// Collectives one after the other, then all sends and receives at once. Holds
// the communicator meanwhile.
void Run(Comm& comm, const std::vector<Call>& calls);

void RunCollective(Comm& comm, const Call& call);
void RunTransfers(Comm& comm, const std::vector<Call>& calls);

}  // namespace rollcall::sim
