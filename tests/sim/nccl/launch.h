// SPDX-License-Identifier: Apache-2.0
// How checked calls get onto streams.
#pragma once

#include <vector>

#include "tests/sim/nccl/comm.h"

namespace rollcall::sim {

// A checked call, with the communicator and stream it is for.
struct Pending {
  CommRef comm;
  StreamRef stream;
  Call call;
};

bool IsCaptured(const StreamRef& stream);

// Starts a group's calls. With non-blocking communicators a thread does it, and
// the result is ncclInProgress.
ncclResult_t Launch(std::vector<Pending> calls);

}  // namespace rollcall::sim
