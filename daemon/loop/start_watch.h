// SPDX-License-Identifier: Apache-2.0
// Chooses the processes to sample before a job uses NCCL. A rank that waits for other ranks in
// torch's store, or has not reached it, makes no call that Rollcall records.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "daemon/model/job_state.h"

namespace rollcall {

namespace v1 {
class ProcessStack;
}

// Whether the main thread waits for other ranks in a library other than NCCL.
bool WaitsForOthers(const v1::ProcessStack& stack);

class StartWatch {
 public:
  // Returns the processes to sample now, as indices: one portion a second, in rounds. Always empty
  // once a living rank has been in a communicator.
  std::vector<int32_t> Next(const JobState& state, int64_t now_ns, const Limits& limits);

  // The time from which on Next() may return processes although the job has not changed. INT64_MAX:
  // there is none.
  int64_t NextDueNs() const { return next_ns_ == 0 ? INT64_MAX : next_ns_; }

 private:
  int64_t next_ns_ = 0;  // when the next portion is due; 0: the job has no rank, or has started
  size_t at_ = 0;        // next index in the state's processes
};

}  // namespace rollcall
