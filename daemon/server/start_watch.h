// SPDX-License-Identifier: Apache-2.0
// Whose stacks are looked at while a job has not come to NCCL: a rank that waits for
// the others in torch's store, or has not come to it, makes no call that could be seen.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "daemon/model/job_state.h"

namespace rollcall {

namespace v1 {
class ProcessStack;
}

// Whether the main thread waits for other ranks in another library than NCCL.
bool WaitsForOthers(const v1::ProcessStack& stack);

class StartWatch {
 public:
  // Processes whose stacks are due, as indices: a portion a second, round and round.
  // Empty: none, for now; always once a rank that lives has been in a communicator.
  std::vector<int32_t> Next(const JobState& state, int64_t now_ns, const Limits& limits);

 private:
  int64_t next_ns_ = 0;  // 0: no rank was seen yet
  size_t at_ = 0;        // in the state's processes
};

}  // namespace rollcall
