// SPDX-License-Identifier: Apache-2.0
#include "daemon/jobs/job_store.h"

#include <algorithm>
#include <iterator>

#include "rollcall/v1/agent.pb.h"

namespace rollcall {
namespace {

constexpr size_t kRanksOfHost = 8;  // a guess
constexpr size_t kLeastInWholeTicks = 64;

}  // namespace

uint32_t JobStore::RecordsInWholeTicks() const {
  const size_t members =
      std::max({shared_.fleet->members(), expected_hosts_ * kRanksOfHost, size_t{1}});
  const size_t kept = most_.record_bytes / JobModel::kBytesOfRecord / members;
  return static_cast<uint32_t>(std::clamp(kept, kLeastInWholeTicks, JobModel::kMostRecords));
}

bool JobStore::Apply(const AgentName& agent, const v1::Tick& tick, int64_t came_ns) {
  const RoutedTick routed = places_.Route(agent, tick, came_ns);
  for (const RoutedTick::Part& part : routed.parts) part.job->Apply(tick, routed, part);
  shared_.agents.Applied(routed.origin);
  return !routed.must_restart;
}

void JobStore::Change(const JobKey& key, const std::function<void(JobModel*)>& change) {
  if (const auto job = jobs_.At(key)) job->Change(change);
}

void JobStore::UpdateHeard(const JobKey& key, int64_t counts_from_ns) {
  if (const auto job = jobs_.At(key)) job->UpdateHeard(counts_from_ns);
}

void JobStore::SetUrgent(const std::set<JobKey>& jobs, size_t most_agents) {
  std::vector<std::vector<AgentBook::AgentPtr>> agents;
  for (const JobKey& key : jobs) {
    if (const auto job = jobs_.At(key)) agents.push_back(job->Agents());
  }
  std::sort(agents.begin(), agents.end(),
            [](const auto& a, const auto& b) { return a.size() < b.size(); });
  std::vector<AgentBook::AgentPtr> urgent;
  for (const auto& of_job : agents) {
    if (urgent.size() + of_job.size() > most_agents) break;
    urgent.insert(urgent.end(), of_job.begin(), of_job.end());
  }
  shared_.agents.SetUrgent(std::move(urgent));
}

std::vector<AgentBook::AgentPtr> JobStore::BookedAgentsOf(const JobId& name) const {
  std::vector<AgentBook::AgentPtr> agents;
  for (const JobKey& key : jobs_.KeysOf(name)) {
    const auto job = jobs_.At(key);
    if (job == nullptr) continue;
    const std::vector<AgentBook::AgentPtr> of_job = job->Agents();
    std::copy_if(of_job.begin(), of_job.end(), std::back_inserter(agents),
                 [](const AgentBook::AgentPtr& agent) { return agent != nullptr; });
  }
  return agents;
}

bool JobStore::IsHeard(const JobId& name) const {
  const std::vector<AgentBook::AgentPtr> agents = BookedAgentsOf(name);
  return std::any_of(agents.begin(), agents.end(), [this](const AgentBook::AgentPtr& agent) {
    return shared_.agents.IsHeard(agent);
  });
}

std::vector<std::string> JobStore::AgentsOf(const JobId& name) const {
  std::set<std::string> ids;
  for (const AgentBook::AgentPtr& agent : BookedAgentsOf(name)) {
    ids.insert(AgentBook::Name(agent).id);
  }
  places_.AddAgentsOf(name, &ids);
  return {ids.begin(), ids.end()};
}

std::vector<JobStore::Sharer> JobStore::FindSharers(const JobKey& job,
                                                    const std::vector<uint64_t>& communicators,
                                                    bool by_launch) const {
  std::set<JobKey> of_launch;
  if (by_launch) of_launch = places_.OfSameLaunch(job);
  std::vector<Sharer> sharers, by_communicator;
  for (const JobKey& key : jobs_.KeysOfTenant(job.tenant)) {
    if (key.job == job.job) continue;
    if (of_launch.count(key) != 0) {
      sharers.push_back({key, true});
      continue;
    }
    if (communicators.empty()) continue;
    Read(key, [&](const JobState& state) {
      const auto& known = state.communicators;
      const bool has_one = std::any_of(communicators.begin(), communicators.end(),
                                       [&known](uint64_t id) { return known.count(id) != 0; });
      if (has_one) by_communicator.push_back({key, false});
    });
  }
  sharers.insert(sharers.end(), by_communicator.begin(), by_communicator.end());
  return sharers;
}

void JobStore::Read(const JobKey& key, const std::function<void(const JobState&)>& reader) const {
  if (const auto job = jobs_.At(key)) job->Read(reader);
}

JobState JobStore::Get(const JobKey& key) const {
  JobState copy;
  Read(key, [&copy](const JobState& state) { copy = state; });
  return copy;
}

int64_t JobStore::BeganNs(const JobKey& key) const {
  const auto job = jobs_.At(key);
  return job == nullptr ? 0 : job->began_ns();
}

uint64_t JobStore::Version(const JobKey& key) const {
  const auto job = jobs_.At(key);
  return job == nullptr ? 0 : job->version();
}

}  // namespace rollcall
