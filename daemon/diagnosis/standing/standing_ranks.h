// SPDX-License-Identifier: Apache-2.0
// The ranks of a job that stands still. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "daemon/model/job_state.h"

namespace rollcall {

struct StandingRanks {
  std::vector<int32_t> processes;  // that live, one for each rank, as indices; by rank
  std::vector<int32_t> ended;      // the last process of each other rank
  std::vector<int32_t>
      stopped;           // Limits::is_look: those that may not run, and are in no other list
  int64_t since_ns = 0;  // when the last one came to stand
  int64_t seen_ns = 0;   // the oldest of the newest samples
};

// nullopt if one of them moves, or nothing is known of it, or the job has one rank only.
std::optional<StandingRanks> FindStandingRanks(const JobState& job, int64_t now_ns,
                                               const Limits& limits);

}  // namespace rollcall
