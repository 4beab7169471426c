// SPDX-License-Identifier: Apache-2.0
// The newest calls of chosen ranks, for the timeline.
#pragma once

#include <vector>

#include "daemon/model/job_state.h"
#include "rollcall/v1/query.pb.h"

namespace rollcall {

inline constexpr int kMaxRanksOfCalls = 64;
inline constexpr int kUsualCalls = 50;

// `limit` is the number of newest calls of each rank and communicator. Omits unknown ranks.
void FillCalls(const JobState& job, const std::vector<int32_t>& ranks, int limit,
               v1::CallsResponse* response);

}  // namespace rollcall
