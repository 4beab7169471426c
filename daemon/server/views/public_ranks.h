// SPDX-License-Identifier: Apache-2.0
// The ranks that people count in: those of the environment, else the order of processes.
#pragma once

#include <cstdint>
#include <vector>

#include "daemon/model/job_state.h"

namespace rollcall {

class PublicRanks {
 public:
  explicit PublicRanks(const JobState& job);

  // How many there are; more than processes where some have not been seen yet.
  int32_t count() const { return static_cast<int32_t>(processes_.size()); }
  // -1: the process is not known.
  int32_t Of(int32_t process) const;
  // Index of the process; -1: not seen.
  int32_t FindProcess(int32_t rank) const;

 private:
  std::vector<int32_t> ranks_;      // by process
  std::vector<int32_t> processes_;  // by rank
};

}  // namespace rollcall
