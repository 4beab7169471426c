// SPDX-License-Identifier: Apache-2.0
// Ranks that disagree on the size of the communicator that they create. The majority is right;
// without one, those whose call NCCL has not refused.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "daemon/model/job_state.h"

namespace rollcall {

struct SizeDispute {
  int32_t size = 0;  // of the majority; 0 if all agree, or there is no majority
  std::vector<ClaimedSize> wrong;
};

SizeDispute JudgeClaimedSizes(const Communicator& comm);

// The ranks below this number are in the communicator whichever claim is right.
int32_t SmallestSize(const Communicator& comm);

// "rank 3 passed 5, the others 4".
std::string DisputeInWords(const JobState& job, const Communicator& comm,
                           const SizeDispute& dispute);

}  // namespace rollcall
