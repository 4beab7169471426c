// SPDX-License-Identifier: Apache-2.0
// Puts checked calls onto streams.
#pragma once

#include <vector>

#include "tests/sim/nccl/comm.h"

namespace rollcall::sim {

// A checked call, with its communicator and stream.
struct Pending {
  CommRef comm;
  StreamRef stream;
  Call call;
};

bool IsCaptured(const StreamRef& stream);

// Starts a group's calls. With non-blocking communicators another thread starts them, and the
// result is ncclInProgress.
ncclResult_t Launch(std::vector<Pending> calls);

}  // namespace rollcall::sim
