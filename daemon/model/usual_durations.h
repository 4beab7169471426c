// SPDX-License-Identifier: Apache-2.0
// Learns the usual durations of calls on a communicator.
#pragma once

#include <cstdint>

#include "daemon/model/job_state.h"

namespace rollcall {

// Learns from a wait that has ended: `before` is the member until now, and `rank` its rank.
// `finished`: the collectives that it has finished by now.
void LearnFrom(const Member& before, int32_t rank, uint64_t finished, int64_t now_ns,
               Communicator* comm);

}  // namespace rollcall
