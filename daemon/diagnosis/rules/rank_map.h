// Which process a rank of a communicator is, where the rank itself has not said
// so yet: a rank that never came is known only by its process, if at all.
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

// The processes of `ranks`, which are not members of `comm`. Ranks that cannot
// be told are not in the result. Looked up in this order: what was told, the
// parent's ranks, global ranks where the communicator spans the world, what is
// left over, the pattern of other communicators of the same kind, and who has
// fallen silent.
RankProcesses ProcessesOfRanks(const JobState& job, const Communicator& comm,
                               const std::vector<int32_t>& ranks);

}  // namespace rollcall
