// SPDX-License-Identifier: Apache-2.0
// The ranks that people see: those of the environment, else the order of the processes.
#pragma once

#include <cstdint>
#include <vector>

#include "daemon/model/job_state.h"
#include "daemon/model/rank_table.h"

namespace rollcall {

class PublicRanks {
 public:
  explicit PublicRanks(const JobState& job);

  // Returns the number of ranks. Greater than the number of processes if some have not reported
  // yet.
  int32_t count() const { return count_; }
  // Returns -1 for an unknown process.
  int32_t FindRank(int32_t process) const;
  // Returns the index of the process; -1 if the rank has not reported.
  int32_t FindProcess(int32_t rank) const;

 private:
  int32_t count_ = 0;             // as the job claims
  std::vector<int32_t> ranks_;    // by process
  RankTable<int32_t> processes_;  // by rank
};

}  // namespace rollcall
