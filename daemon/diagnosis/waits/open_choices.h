// SPDX-License-Identifier: Apache-2.0
// Waits that any one of several ranks can end: MPI_ANY_SOURCE, MPI_Waitany. And waits for messages
// of ranks that go on with others.
//
// Such a rank hangs only if each rank that might send it a message has left, or hangs itself. While
// one of them works, the wait is open: a pool's master waits for results, and nothing is wrong. Who
// waits for that rank alone waits for work, and no rank is to blame. The same holds for who waits
// for a master that serves others meanwhile. Pure.
#pragma once

#include <cstdint>
#include <deque>

#include "daemon/diagnosis/waits/live_ranks.h"
#include "daemon/rules/stuck_call.h"

namespace rollcall {

// The calls without those that are open, and without the ranks whose waits are open among the
// absent ones of the others.
struct ClosedCalls {
  StuckCalls calls;
  std::deque<StuckCall> changed;  // those of `calls` that differ from the given ones
};

ClosedCalls WithoutOpenChoices(const StuckCalls& calls, const LiveRanks& live, int64_t now_ns,
                               const Limits& limits);

}  // namespace rollcall
