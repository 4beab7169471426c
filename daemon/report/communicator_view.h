// SPDX-License-Identifier: Apache-2.0
// One communicator of a job with its members, for the communicator's own page.
#pragma once

#include <cstdint>

#include "absl/strings/string_view.h"
#include "daemon/model/job_state.h"
#include "rollcall/v1/query.pb.h"

namespace rollcall {

inline constexpr int kUsualMembers = 100;
inline constexpr int kMaxMembers = 1000;

// False if the job has no communicator with the request's id. Times of calls are on the clock of
// `now_ns`.
bool FillCommunicatorView(const JobState& job, int64_t now_ns,
                          const v1::CommunicatorRequest& request, v1::CommunicatorView* view);

}  // namespace rollcall
