// SPDX-License-Identifier: Apache-2.0
// The kinds of collectives that a communicator has seen: eight bytes for each, for the whole life
// of the job. Ranks that agree make equal calls, so one table serves all ranks.
#pragma once

#include <cstdint>

#include "daemon/model/job_state.h"

namespace rollcall {

// Equal for calls with equal arguments.
uint64_t SignatureOf(const CallArgs& args);

// Records a collective that takes a position. Nothing is recorded after a position that no rank has
// reported, or after kMostKinds kinds.
void RecordFirst(const CallRecord& record, Communicator* comm);
inline constexpr size_t kMostKinds = 64;

// True unless the table shows that no rank made such a call before `position`.
bool MayHaveComeBefore(const Communicator& comm, const CallArgs& args, uint64_t position);

}  // namespace rollcall
