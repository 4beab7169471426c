// SPDX-License-Identifier: Apache-2.0
// Maps ranks that never joined a communicator to processes: such a rank has reported
// nothing on the communicator, and is known only by its process, if at all.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "daemon/model/job_state.h"

namespace rollcall {

struct RankProcesses {
  std::map<int32_t, int32_t> processes;  // by rank
  bool guessed = false;                  // by a pattern
};

// The processes of `ranks`, which are not members of `comm`. Ranks without a
// known process are not in the result. Sources in this order: recorded ranks, the
// parent's ranks, global ranks if the communicator spans the world, the remaining
// processes, the pattern of other communicators of the same kind, silent processes.
RankProcesses ProcessesOfRanks(const JobState& job, const Communicator& comm,
                               const std::vector<int32_t>& ranks);

}  // namespace rollcall
