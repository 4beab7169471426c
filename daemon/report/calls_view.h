// SPDX-License-Identifier: Apache-2.0
// The newest calls of chosen ranks, for the timeline.
#pragma once

#include <vector>

#include "daemon/model/job_state.h"
#include "daemon/report/rank_state.h"
#include "rollcall/v1/query.pb.h"

namespace rollcall {

inline constexpr int kMaxRanksOfCalls = 64;
inline constexpr int kUsualCalls = 50;
// Equals what the daemon keeps of each rank and communicator.
inline constexpr int kMostCalls = 1024;
// About 20 MB of JSON. The daemon fills an answer while the job's ticks wait.
inline constexpr int kMostCallsOfAnswer = 65'536;

// `limit` is the number of newest calls of each rank and communicator, kMostCalls at most. Where
// all of them exceed kMostCallsOfAnswer, each communicator of a rank has an equal share. Omits
// unknown ranks.
void FillCalls(const JobState& job, const std::vector<int32_t>& ranks, int limit,
               v1::CallsResponse* response);

// One member of a communicator, with its `limit` newest calls. `rank`: in the communicator.
void FillMemberCalls(const JobState& job, const RankStates& states, const Communicator& comm,
                     int32_t rank, const Member& member, int limit, v1::CommunicatorCalls* calls);

}  // namespace rollcall
