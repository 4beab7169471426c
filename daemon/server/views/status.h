// SPDX-License-Identifier: Apache-2.0
// A job's state in short, for `rollcall status` and the page.
#pragma once

#include <cstdint>

#include "daemon/model/job_state.h"
#include "rollcall/v1/query.pb.h"

namespace rollcall {

// Everything but what incidents and the rate of calls add (a job is "running" or "ended" here).
// `to_wall_ns`: what to add to times for people.
void FillJobStatus(const JobState& state, int64_t now_ns, bool with_communicators,
                   v1::JobStatus* status, int64_t to_wall_ns = 0);

// Of all ranks, on all communicators.
uint64_t CallsEntered(const JobState& state);

}  // namespace rollcall
