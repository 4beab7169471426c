// SPDX-License-Identifier: Apache-2.0
// Calls of two threads that nothing orders: each rank may make them in another order, and no rank
// is wrong.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "daemon/model/job_state.h"
#include "daemon/model/verdict.h"
#include "daemon/rules/divergence.h"
#include "daemon/rules/stuck_call.h"

namespace rollcall {

// Threads of the ranks of a communicator that diverge.
struct ThreadRace {
  std::vector<int32_t> ranks;  // in the communicator: two such threads make their calls
  // The ranks make the same calls, but for the turn of one of these threads.
  bool explains = false;
  // The name of one of them is not known yet, and may show that another thread waits for it.
  bool awaits_names = false;
  std::vector<std::string> evidence;  // which threads
};

ThreadRace FindThreadRace(const JobState& job, const Communicator& comm,
                          const Divergence& divergence);

// For calls that all ranks have entered: another communicator's call is open on the same devices,
// another thread has made it, and nothing orders the two. Each may hold the other up on the GPU, so
// that it is not known whether the network is at fault.
void WeighUnorderedCalls(const JobState& job, const StuckCalls& calls,
                         std::vector<Verdict>* verdicts);

}  // namespace rollcall
