// SPDX-License-Identifier: Apache-2.0
// Jobs that share a communicator or a store, such as a trainer and the engine that generates for
// it: one state of all of them, in which the rules see both sides of a call. Pure.
//
// Two jobs share a communicator if each has some of its ranks and none of the other's. Ids that
// another start of a program has, too (HasCountedIds(), and those of MPI), prove that only if the
// ranks of both are all ranks and were in the creation at one time: it waits for all members.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "daemon/model/job_state.h"

namespace rollcall {

// Joins no more processes than this: the states are copied for each diagnosis of a hang.
inline constexpr size_t kMostJoinedProcesses = 20'000;

// The communicators of the job that have ranks unknown to the job.
std::vector<uint64_t> OpenCommunicators(const JobState& job);

// Whether a rank of the job waits for a key of a store.
bool WaitsForKey(const JobState& job);

// The communicators of which each job has a part, in the order of their ids.
std::vector<uint64_t> SharedCommunicators(const JobState& a, const JobState& b);

struct JoinedJobs {
  struct Part {
    JobKey key;
    size_t first_process = 0;  // index into the processes of the state
    int32_t first_rank = 0;    // the number of its rank 0 here
    bool lives = false;        // a process of it has not ended
  };
  JobState state;
  std::vector<Part> parts;  // at least one

  // The number of the part to which the process belongs; -1 if the process is not known.
  int PartOf(int32_t process) const;
};

// The processes of `first` keep their indices, and its ranks their numbers. Those of the others
// follow, in this order. A communicator that no two share keeps its id in the first job that has
// it, and gets another one in the next.
JoinedJobs JoinJobs(const JobState& first, const std::vector<JobState>& others);

}  // namespace rollcall
