// SPDX-License-Identifier: Apache-2.0
#include "daemon/jobs/job_room.h"

#include <cstdint>
#include <limits>

#include "absl/strings/match.h"

namespace rollcall {

void JobRoom::RemoveJob(const JobKey& job) {
  TakeAway(job);
  counts_.erase(job);
}

void JobRoom::TakeAway(const JobKey& job) {
  living_.Remove(job);
  over_.Remove(job);
  processes_.Remove(job);
}

std::optional<Owner> JobRoom::OwnerOf(const JobKey& job) const {
  const std::optional<Owner> living = living_.OwnerOf(job);
  return living.has_value() ? living : over_.OwnerOf(job);
}

void JobRoom::AddProcess(const JobKey& job, const Owner& owner) {
  Processes& processes = counts_[job];
  // Its process ended before its agent could look up the owner.
  if (absl::EndsWith(OwnerOf(job).value_or(Owner()).user, kUnknownUser)) {
    TakeAway(job);
    AddJob(job, owner);
    processes.guests.erase(owner.user);
  }
  if (OwnerOf(job).value_or(Owner()).user != owner.user) ++processes.guests[owner.user];
  ++processes.all;
  ++processes.alive;
  Weigh(job);
}

void JobRoom::SetEnded(const JobKey& job, bool has_ended) {
  counts_[job].alive += has_ended ? size_t{0} - 1 : 1;
  Weigh(job);
}

bool JobRoom::IsAlive(const JobKey& job) const {
  const auto processes = counts_.find(job);
  return processes != counts_.end() && processes->second.alive > 0;
}

size_t JobRoom::CountGuests(const JobId& name, const std::string& user) const {
  size_t count = 0;
  for (auto at = counts_.lower_bound(JobKey(name, std::numeric_limits<int32_t>::min()));
       at != counts_.end() && static_cast<const JobId&>(at->first) == name; ++at) {
    const auto guests = at->second.guests.find(user);
    if (guests != at->second.guests.end()) count += guests->second;
  }
  return count;
}

void JobRoom::Weigh(const JobKey& job) {
  const std::optional<Owner> owner = OwnerOf(job);
  if (!owner.has_value()) return;
  const Processes& processes = counts_[job];
  if (processes.alive == 0) {
    TakeAway(job);
    over_.Put(job, *owner, 1);
    return;
  }
  over_.Remove(job);
  living_.Put(job, *owner, 1);
  processes_.Put(job, *owner, processes.all);
}

std::optional<JobKey> JobRoom::MakesRoom(const Jobs& jobs, const Owner& newcomer,
                                         bool is_alive) const {
  const std::optional<JobKey> over = over_.Heaviest(Jobs::First::kOldest);
  if (over.has_value() || !is_alive) return over;
  return jobs.MakesRoomFor(newcomer, Jobs::First::kNewest);
}

}  // namespace rollcall
