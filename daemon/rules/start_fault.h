// SPDX-License-Identifier: Apache-2.0
// Finds the ranks to blame where ranks wait for each other before the first NCCL call.
//
// Ranks that got another WORLD_SIZE come first: the majority is right; without one, those that got
// as many ranks as have been started. Then ranks that do not wait, then ranks that were not
// started, then those that wait at another point of the program than most. Ranks
// that all wait for keys of the program's own may be workers without work.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "daemon/model/job_state.h"
#include "daemon/model/rank_range.h"
#include "daemon/model/verdict.h"

namespace rollcall {

// Ranks, by the indices of their processes.
struct StartRanks {
  std::map<int32_t, int32_t> processes;  // by rank: the process that represents it
  std::vector<int32_t> waiting;          // alive, and their stacks show that they wait
  std::vector<int32_t> absent;           // all others
};

struct StartBlame {
  StartFault fault = StartFault::kNone;
  std::vector<int32_t> processes;
  std::vector<RankRange> unseen;  // ranks of the world that no process represents
  int32_t world_size = 0;         // the right one
  bool may_idle = false;          // kAllWait: for work that somebody else brings, perhaps
};

StartBlame FindStartBlame(const JobState& job, const StartRanks& ranks);

}  // namespace rollcall
