// SPDX-License-Identifier: Apache-2.0
#include "daemon/fleet/fleet_jobs.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "daemon/model/job_key.h"

namespace rollcall {
namespace {

JobId IdOf(const v1::JobStatus& job) { return {job.tenant(), job.name()}; }

bool HasOpenIncident(const v1::JobStatus& job) {
  return job.state() == "hung" || job.state() == "suspected";
}

}  // namespace

std::vector<FleetJob> JoinJobs(const std::vector<DaemonJobs>& lists, const OwnerName& owner) {
  const auto job_of = [&lists](const FleetJob& one) -> const v1::JobStatus& {
    return lists[one.daemon].jobs[one.place];
  };
  const auto is_better = [&](const FleetJob& one, const FleetJob& other) {
    const v1::JobStatus& job = job_of(one);
    const std::string name = owner(job.tenant(), job.name());
    if (lists[one.daemon].daemon == name) return true;
    if (lists[other.daemon].daemon == name) return false;
    return job.processes_alive() > job_of(other).processes_alive();
  };
  std::map<JobId, FleetJob> by_name;
  for (size_t daemon = 0; daemon < lists.size(); ++daemon) {
    for (size_t place = 0; place < lists[daemon].jobs.size(); ++place) {
      const FleetJob one = {daemon, place};
      const auto [known, is_new] = by_name.try_emplace(IdOf(job_of(one)), one);
      if (!is_new && is_better(one, known->second)) known->second = one;
    }
  }
  std::vector<FleetJob> joined;
  for (const auto& [name, one] : by_name) joined.push_back(one);
  std::stable_partition(joined.begin(), joined.end(),
                        [&](const FleetJob& one) { return HasOpenIncident(job_of(one)); });
  return joined;
}

}  // namespace rollcall
