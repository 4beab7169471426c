// SPDX-License-Identifier: Apache-2.0
// A summary of a job's state, for `rollcall status` and the page.
#pragma once

#include <cstdint>

#include "daemon/model/job_state.h"
#include "rollcall/v1/query.pb.h"

namespace rollcall {

// Fills everything except what incidents and the call rate add: the state is "running" or "ended".
// `to_wall_ns` converts times to the wall clock.
void FillJobStatus(const JobState& state, int64_t now_ns, bool with_communicators,
                   v1::JobStatus* status, int64_t to_wall_ns = 0);

void FillCommunicatorStatus(const JobState& job, const Communicator& comm, int64_t now_ns,
                            v1::CommunicatorStatus* status);

// When the member's oldest wait for others in a collective began; 0 if it does not wait.
int64_t WaitingSince(const Member& member);

// Calls of all ranks on all communicators.
uint64_t CallsEntered(const JobState& state);

}  // namespace rollcall
