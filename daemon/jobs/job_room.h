// SPDX-License-Identifier: Apache-2.0
// Which jobs have a place, and which one makes room for another when all places are taken.
//
// A job belongs to the user who has begun it, and its processes to the job. Users may have guests
// in jobs of others.
//
// Jobs that are over make room first, those of the owner that has most of them. If none is over,
// the newest job of the heaviest user or host makes room for one that has less (base/shares.h).
// Pure; one owner, no lock.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>

#include "base/shares.h"
#include "daemon/model/job_key.h"

namespace rollcall {

inline constexpr char kUnknownUser[] = "unknown";  // the end of Owner::user

class JobRoom {
 public:
  // A new job without processes, which is alive.
  void AddJob(const JobKey& job, const Owner& owner) { living_.Put(job, owner, 1); }
  void RemoveJob(const JobKey& job);

  // A living process of `owner` has come to the job. The first user who is known has the job.
  void AddProcess(const JobKey& job, const Owner& owner);
  // One of its processes has ended, or else lives again.
  void SetEnded(const JobKey& job, bool has_ended);

  std::optional<Owner> OwnerOf(const JobKey& job) const;
  bool IsAlive(const JobKey& job) const;
  // The processes of this user in attempts of the job that others have begun. These pay for them.
  size_t CountGuests(const JobId& name, const std::string& user) const;

  // The job to forget, so that there is room for a job, or for a process, of `newcomer`. nullopt if
  // the newcomer has its share. `is_alive`: false for what has ended already, which makes no living
  // job go.
  std::optional<JobKey> MakesRoomForJob(const Owner& newcomer, bool is_alive) const {
    return MakesRoom(living_, newcomer, is_alive);
  }
  std::optional<JobKey> MakesRoomForProcess(const Owner& newcomer, bool is_alive) const {
    return MakesRoom(processes_, newcomer, is_alive);
  }

 private:
  using Jobs = Shares<JobKey>;
  struct Processes {
    size_t all = 0, alive = 0;
    std::map<std::string, size_t> guests;  // how many of them, by user
  };

  void TakeAway(const JobKey& job);
  void Weigh(const JobKey& job);
  std::optional<JobKey> MakesRoom(const Jobs& jobs, const Owner& newcomer, bool is_alive) const;

  // A job is in over_, or in both others once it has processes.
  Jobs living_, over_;
  Jobs processes_;  // weights: processes of living jobs
  std::map<JobKey, Processes> counts_;
};

}  // namespace rollcall
