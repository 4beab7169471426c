// SPDX-License-Identifier: Apache-2.0
// JudgeStandstill(): a job of which no rank moves, and whose ranks wait outside of recorded calls:
// in queues, sockets, locks, other libraries. Only samples of the stacks show this. Pure.
#pragma once

#include <cstdint>
#include <optional>

#include "daemon/model/job_state.h"
#include "daemon/model/verdict.h"

namespace rollcall {

// Judges a job in which no rank waits in a recorded call. Never `certain`: the samples show where
// the ranks stand, and not what they have agreed on. None while a rank moves or wakes to do its
// steps, where work is awaited, or where a person, a GPU or a debugger is.
std::optional<Verdict> JudgeStandstill(const JobState& job, int64_t now_ns, const Limits& limits);

}  // namespace rollcall
