// SPDX-License-Identifier: Apache-2.0
// The processes of a job, one page at a time.
#pragma once

#include <cstdint>

#include "daemon/model/job_state.h"
#include "rollcall/v1/query.pb.h"

namespace rollcall {

inline constexpr int kUsualProcesses = 100;
inline constexpr int kMaxProcesses = 1000;

void FillProcesses(const JobState& job, int64_t now_ns, const v1::ProcessesRequest& request,
                   v1::ProcessesResponse* response);

}  // namespace rollcall
