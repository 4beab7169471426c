// SPDX-License-Identifier: Apache-2.0
// Counts restarts within the processes of a job: all ranks abort their world communicators and
// create new ones. The processes live on, so such a restart is not a new attempt.
//
// A communicator is a world communicator if no other of the job is larger. A restart counts when
// the processes have aborted all of them and created the next one.
#pragma once

#include <algorithm>
#include <cstdint>

#include "daemon/model/job_state.h"

namespace rollcall {

class WorldRestarts {
 public:
  // The job has a new communicator of this size.
  void Created(int32_t size, JobState* job) {
    if (size > world_size_) {
      world_size_ = size;
      is_pending_ = false;
    }
    if (size == world_size_ && is_pending_) Count(job);
  }

  // All ranks have left `comm`, and the job no longer has it.
  void Dropped(const Communicator& comm, JobState* job) {
    int64_t aborted_ns = 0;
    if (comm.size < 2 || comm.size < world_size_) return;
    for (const auto& [rank, member] : comm.members) {
      if (member.state != MemberState::kAborted) return;
      aborted_ns = std::max(aborted_ns, member.state_since_ns);
    }
    bool has_next = false;
    for (const auto& [id, other] : job->communicators) {
      if (other.size != comm.size || other.members.empty()) continue;
      // A host may report its new communicator before another host reports its abort.
      const bool is_next = other.members.begin()->second.init_entered_ns >= aborted_ns;
      if (!is_next) return;
      has_next = true;
    }
    is_pending_ = true;
    if (has_next) Count(job);
  }

 private:
  void Count(JobState* job) {
    is_pending_ = false;
    ++job->world_restarts;
  }

  int32_t world_size_ = 0;
  bool is_pending_ = false;  // the job has aborted its last world communicator
};

}  // namespace rollcall
