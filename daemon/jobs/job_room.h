// SPDX-License-Identifier: Apache-2.0
// Which jobs have a place, and which one makes room for another when all places are taken.
//
// Jobs that are over make room first, those of whoever has most of them. If none is over, the
// newest job of the heaviest user or host makes room for whoever has less (base/shares.h). Pure;
// one owner, no lock.
#pragma once

#include <cstddef>
#include <optional>

#include "base/shares.h"
#include "daemon/model/job_key.h"

namespace rollcall {

class JobRoom {
 public:
  // A new job without processes, which is alive.
  void AddJob(const JobKey& job, const Owner& owner) { living_.Put(job, owner, 1); }
  void RemoveJob(const JobKey& job);

  // `alive`: of the job's processes, after one more has come, or one has ended.
  void SetProcesses(const JobKey& job, size_t all, size_t alive);

  std::optional<Owner> OwnerOf(const JobKey& job) const;

  // The job to forget, so that there is room for a job, or for a process, of `newcomer`. nullopt:
  // the newcomer has its share.
  // `is_alive`: false for what has ended already, which makes no living job go.
  std::optional<JobKey> MakesRoomForJob(const Owner& newcomer, bool is_alive) const {
    return MakesRoom(living_, newcomer, is_alive);
  }
  std::optional<JobKey> MakesRoomForProcess(const Owner& newcomer, bool is_alive) const {
    return MakesRoom(processes_, newcomer, is_alive);
  }

 private:
  using Jobs = Shares<JobKey>;
  std::optional<JobKey> MakesRoom(const Jobs& jobs, const Owner& newcomer, bool is_alive) const;

  // A job is in over_, or in both others once it has processes.
  Jobs living_, over_;
  Jobs processes_;  // weights: processes of living jobs
};

}  // namespace rollcall
