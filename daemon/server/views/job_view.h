// SPDX-License-Identifier: Apache-2.0
// A job in one picture, for the page and `rollcall watch`.
#pragma once

#include <cstdint>

#include "daemon/model/job_state.h"
#include "rollcall/v1/query.pb.h"

namespace rollcall {

inline constexpr int kMaxCommunicatorsShown = 50;

// Keeps the communicators that wait or lag most; status->communicators_total() stays.
void KeepMostTelling(int most, v1::JobStatus* status);

// The maps, and the hosts. Communicators are put together by name and size; where a rank is in two
// of a kind, the later one begins another map.
void FillRankMaps(const JobState& job, v1::JobView* view);

}  // namespace rollcall
