// SPDX-License-Identifier: Apache-2.0
// Chooses the processes to sample of a job that makes no recorded calls: before its first one, when
// a rank may wait for others in torch's store, and later, when the job may stand still.
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

struct SamplesWanted {
  std::vector<int32_t> processes;  // as indices
  // Also for all that the processes have started: no rank has moved for a while.
  bool children = false;
};

class StartWatch {
 public:
  // Returns the processes to sample now: one portion a second, in rounds. None once the job has
  // started, unless no rank has used more than a trace of CPU time, entered a call or reported a
  // step for a while, and no call hangs (`hangs`).
  SamplesWanted Next(const JobState& state, bool hangs, int64_t now_ns, const Limits& limits);

  // The time from which on Next() may return processes although the job has not changed. INT64_MAX
  // if there is none.
  int64_t NextDueNs() const { return next_ns_ == 0 ? INT64_MAX : next_ns_; }

 private:
  bool IsStill(const JobState& state, int64_t now_ns, const Limits& limits);
  bool IsProbeDue(int64_t now_ns, const Limits& limits);

  int64_t next_ns_ = 0;      // when the next portion is due; 0 if the job has no rank
  size_t at_ = 0;            // next index in the state's processes
  uint64_t progress_ = 0;    // calls entered and steps reported
  int64_t progress_ns_ = 0;  // when they last changed
  // For a job in which some ranks use the CPU: they may wait, or compute.
  int64_t probe_ns_ = 0;        // when to look again
  int64_t probe_pause_ns_ = 0;  // after the last look
};

}  // namespace rollcall
