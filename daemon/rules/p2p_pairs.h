// SPDX-License-Identifier: Apache-2.0
// Sends and receives of which the other end was never issued, in calls that wait for each other.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "daemon/model/job_state.h"
#include "daemon/model/verdict.h"
#include "daemon/rules/stuck_call.h"

namespace rollcall {

// A rank that waits in a send or receive, and its peer without the other end.
struct P2pPair {
  const StuckCall* call = nullptr;
  Waiter waiter;
  Absent absent;
};

bool WaitsIn(const StuckCall& call, int32_t process);

// True for the creation of a communicator of two ranks that torch makes for their first message.
bool IsPairCreation(const StuckCall& call);

// The first send to, or receive from, the peer that the GPU of `rank` has not finished; without
// markers the newest. kNone: it is not known.
Op OpTowards(const Communicator& comm, int32_t rank, int32_t peer);

// The pairs among these calls, creations of pairs included, in which the peer waits in another one
// of them; at most `most`. A peer that waits nowhere may yet issue its end: it is late.
std::vector<P2pPair> FindPairs(const StuckCalls& calls, const std::vector<size_t>& concerned,
                               size_t most);

// Adds those who wait in the cycle, without the culprits, to the waiting ranks.
void AddWaitersOf(const JobState& job, const StuckCalls& calls, const std::vector<size_t>& cycle,
                  Verdict* verdict);

// The verdict that the waiting rank has issued an end too many, `extra`: all others of the cycle
// wait for it.
std::optional<Verdict> BlameWaiter(const JobState& job, const P2pPair& pair, const CallArgs& extra,
                                   const StuckCalls& calls, const std::vector<size_t>& cycle,
                                   int64_t now_ns, const Limits& limits);

}  // namespace rollcall
