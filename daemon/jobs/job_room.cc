// SPDX-License-Identifier: Apache-2.0
#include "daemon/jobs/job_room.h"

namespace rollcall {

void JobRoom::RemoveJob(const JobKey& job) {
  living_.Remove(job);
  over_.Remove(job);
  processes_.Remove(job);
}

std::optional<Owner> JobRoom::OwnerOf(const JobKey& job) const {
  const std::optional<Owner> living = living_.OwnerOf(job);
  return living.has_value() ? living : over_.OwnerOf(job);
}

void JobRoom::SetProcesses(const JobKey& job, size_t all, size_t alive) {
  const std::optional<Owner> owner = OwnerOf(job);
  if (!owner.has_value()) return;
  if (alive == 0) {
    RemoveJob(job);
    over_.Put(job, *owner, 1);
    return;
  }
  over_.Remove(job);
  living_.Put(job, *owner, 1);
  processes_.Put(job, *owner, all);
}

std::optional<JobKey> JobRoom::MakesRoom(const Jobs& jobs, const Owner& newcomer,
                                         bool is_alive) const {
  const std::optional<JobKey> over = over_.Heaviest(Jobs::First::kOldest);
  if (over.has_value() || !is_alive) return over;
  return jobs.MakesRoomFor(newcomer, Jobs::First::kNewest);
}

}  // namespace rollcall
