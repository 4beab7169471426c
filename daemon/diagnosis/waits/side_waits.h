// SPDX-License-Identifier: Apache-2.0
// Waits for messages of MPI in threads beside the main one.
//
// Such a thread may serve requests: it sits in MPI_Recv while its rank works, and nothing hangs. Or
// the main thread waits for it, by a join or a queue, and stands as well. Only stacks show that.
// Pure.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>

#include "daemon/diagnosis/waits/live_ranks.h"
#include "daemon/rules/stuck_call.h"

namespace rollcall {

struct SideWaits {
  StuckCalls calls;               // without the waits of threads whose ranks are not known to stand
  StuckCalls unsure;              // these waits, but for those of ranks that go on
  std::deque<StuckCall> changed;  // the calls that differ from the given ones
};

SideWaits SplitSideWaits(const JobState& job, const StuckCalls& calls, const LiveRanks& live);

// An idle verdict on the oldest wait of a thread beside the main one, so that stacks are taken;
// none before it has lasted for long.
std::optional<Verdict> JudgeSideWaits(const JobState& job, const StuckCalls& calls, int64_t now_ns,
                                      const Limits& limits);

}  // namespace rollcall
