// SPDX-License-Identifier: Apache-2.0
// An overview of a job, for the page and `rollcall watch`.
#pragma once

#include <cstdint>

#include "daemon/model/job_state.h"
#include "rollcall/v1/query.pb.h"

namespace rollcall {

inline constexpr int kMaxCommunicatorsShown = 50;

// Keeps the communicators that wait or lag most. Does not change status->communicators_total().
void KeepWorstCommunicators(int most, v1::JobStatus* status);

// Adds the maps of ranks, and the hosts. One map shows all communicators with the same kind of name
// and the same size. If a rank is in two of them, the second one goes to another map.
void FillRankMaps(const JobState& job, v1::JobView* view);

}  // namespace rollcall
