// SPDX-License-Identifier: Apache-2.0
// Two ends of a message that both ranks have issued with different sizes: a contradiction, which
// needs no long wait. Pure.
#pragma once

#include <cstdint>

#include "daemon/model/job_state.h"
#include "daemon/rules/members/rank_map.h"

namespace rollcall {

// When the oldest wait in a send or receive began; 0 if no rank waits in one.
int64_t P2pWaitsSince(const Communicator& comm);

// True if a rank waits in a send or receive whose other end has another size, and no record is lost
// that would show another pair.
bool DoSizesDiffer(const JobState& job, const Communicator& comm, RankFinder* finder);

}  // namespace rollcall
