// SPDX-License-Identifier: Apache-2.0
#include "daemon/server/job_store.h"

#include <algorithm>

#include "daemon/server/tick_facts.h"
#include "rollcall/v1/agent.pb.h"

namespace rollcall {
namespace {

constexpr int64_t kUsualTickNs = 100'000'000;  // of agents that do not say
constexpr int64_t kLongestTickNs = 10'000'000'000;
constexpr int kTicksUntilStale = 3;
constexpr int kTicksUntilSilent = 5;
constexpr int kTicksToSettle = 3;
// An agent whose ticks are further apart was held, or cut off. Well above what a busy host or
// network does to one.
constexpr int64_t kHeldNs = 5'000'000'000;
constexpr int64_t kAgentsKeptNs = 3600'000'000'000;

}  // namespace

std::shared_ptr<JobStore::Agent> JobStore::FindOrAddAgent(const AgentName& name) {
  std::shared_ptr<Agent>& agent = agents_[name.id];
  if (agent == nullptr) {
    agent = std::make_shared<Agent>(name);
    agent->heard.tick_ns =
        name.tick_ns <= 0 ? kUsualTickNs : std::min(name.tick_ns, kLongestTickNs);
    agent->heard.is_settled = name.is_trusted;
  }
  return agent;
}

void JobStore::Connected(const AgentName& name) {
  const absl::MutexLock lock(&heard_mutex_);
  ++FindOrAddAgent(name)->streams;
}

std::vector<std::string> JobStore::Gone(const AgentName& name) {
  const absl::MutexLock lock(&heard_mutex_);
  const std::shared_ptr<Agent> gone = FindOrAddAgent(name);
  std::vector<std::string> refused;
  if (--gone->streams > 0) return refused;
  for (auto at = agents_.begin(); at != agents_.end();) {
    Agent& agent = *at->second;
    if (agent.refused && agent.name.host == name.host) refused.push_back(agent.name.id);
    agent.refused = agent.refused && agent.name.host != name.host;
    const bool is_old = gone->heard.heard_ns - agent.heard.heard_ns > kAgentsKeptNs;
    at = agent.streams <= 0 && is_old ? agents_.erase(at) : std::next(at);
  }
  return refused;
}

// Returns what to add to the agent's times.
int64_t JobStore::Hear(int64_t made_ns, int64_t came_ns, Agent* agent) {
  AgentHeard& heard = agent->heard;
  if (heard.heard_ns != 0 &&
      std::max(made_ns - agent->made_ns, came_ns - heard.heard_ns) > kHeldNs + heard.tick_ns) {
    heard.counts_from_ns = came_ns;
  }
  // A large tick comes in pieces.
  if (made_ns != agent->made_ns && agent->ticks < kTicksToSettle) ++agent->ticks;
  heard.is_settled = heard.is_settled || agent->ticks >= kTicksToSettle;
  agent->made_ns = made_ns;
  heard.heard_ns = came_ns;
  return clocks_.Update(agent->name.id, made_ns, came_ns);
}

bool JobStore::Apply(const AgentName& name, const v1::Tick& tick, int64_t came_ns) {
  Origin origin;
  origin.now_ns = tick.now_ns();
  if (came_ns != 0) {
    const absl::MutexLock lock(&heard_mutex_);
    origin.agent = FindOrAddAgent(name);
    origin.offset_ns = Hear(tick.now_ns(), came_ns, origin.agent.get());
    origin.now_ns += origin.offset_ns;
  }
  bool refused = false;
  for (const v1::ProcessUpdate& update : tick.processes()) {
    const ProcessKey key = {name.host, update.pid(), update.start_time()};
    const std::shared_ptr<Job> job = FindOrAddJob(key, origin.agent, update, &refused);
    // Without one its identity will come with the next whole tick.
    if (job != nullptr) ApplyProcess(key, update, origin, job.get());
  }
  return !refused;
}

// Who told of a process first speaks for it, until it is gone or silent.
bool JobStore::MaySpeak(const std::shared_ptr<Agent>& agent, bool with_identity, Owned* owned) {
  if (agent == nullptr || owned->agent == agent) return true;
  const absl::MutexLock lock(&heard_mutex_);
  const bool is_free =
      owned->agent == nullptr || owned->agent->streams <= 0 || owned->agent->heard.silent;
  agent->refused = agent->refused || !is_free || !with_identity;
  if (!is_free || !with_identity) return false;
  owned->agent = agent;
  return true;
}

// `refused`: set where the agent would be heard if it told of the process from the beginning.
std::shared_ptr<JobStore::Job> JobStore::FindOrAddJob(const ProcessKey& key,
                                               const std::shared_ptr<Agent>& agent,
                                               const v1::ProcessUpdate& update, bool* refused) {
  const absl::MutexLock lock(&mutex_);
  if (update.has_identity()) {
    const std::string& named = update.identity().job();
    owned_.emplace(key, Owned{named.empty() ? default_job_ : named, agent});
  }
  const auto known = owned_.find(key);
  if (known == owned_.end()) return nullptr;
  if (!MaySpeak(agent, update.has_identity(), &known->second)) {
    const absl::MutexLock heard_lock(&heard_mutex_);
    const Agent* owner = known->second.agent.get();
    *refused = *refused || owner == nullptr || owner->streams <= 0 || owner->heard.silent;
    return nullptr;
  }
  std::shared_ptr<Job>& job = jobs_[known->second.job];
  if (job == nullptr) job = std::make_shared<Job>(known->second.job);
  return job;
}

std::vector<std::string> JobStore::MarkSilentAgents(int64_t now_ns, int64_t silent_after_ns) {
  std::vector<std::string> fallen;
  const absl::MutexLock lock(&heard_mutex_);
  for (const auto& [id, agent] : agents_) {
    AgentHeard& heard = agent->heard;
    if (heard.heard_ns == 0) continue;
    const int64_t age_ns = now_ns - heard.heard_ns;
    heard.stale = age_ns > kTicksUntilStale * heard.tick_ns;
    const bool was_silent = heard.silent;
    heard.silent = age_ns >= std::max(silent_after_ns, kTicksUntilSilent * heard.tick_ns);
    if (heard.silent && !was_silent) fallen.push_back(agent->name.host);
  }
  return fallen;
}

void JobStore::UpdateHeard(const std::string& job, int64_t counts_from_ns) {
  const std::shared_ptr<Job> known = Find(job);
  if (known == nullptr) return;
  const absl::MutexLock lock(&known->mutex);
  known->model.CountFrom(counts_from_ns);
  const absl::MutexLock heard_lock(&heard_mutex_);
  for (size_t i = 0; i < known->agents.size(); ++i) {
    known->model.SetAgentHeard(static_cast<int32_t>(i), known->agents[i]->heard);
  }
}

void JobStore::SetAgent(int32_t process, const std::shared_ptr<Agent>& agent, Job* job) {
  const int32_t index = job->model.AddAgent(agent->name.id, agent->name.host);
  const auto at = static_cast<size_t>(index);
  if (at == job->agents.size()) job->agents.emplace_back();
  if (job->agents[at] != agent) {
    job->agents[at] = agent;
    const absl::MutexLock lock(&heard_mutex_);
    job->model.SetAgentHeard(index, agent->heard);
  }
  job->model.SetAgent(process, index);
}

void JobStore::ApplyProcess(const ProcessKey& key, const v1::ProcessUpdate& update,
                            const Origin& origin, Job* job) {
  const int64_t offset_ns = origin.offset_ns;
  const absl::MutexLock lock(&job->mutex);
  const int32_t process = job->model.AddProcess(key.host, key.pid, key.start_time);
  job->processes[key.host].insert(process);
  if (origin.agent != nullptr) SetAgent(process, origin.agent, job);
  if (update.has_identity()) job->model.SetIdentity(process, ToIdentity(update.identity()));
  if (update.has_evidence()) {
    job->model.SetEvidence(process, ToEvidence(update.evidence(), offset_ns));
  }
  if (!update.sites().empty()) {
    job->model.AddSites(process, update.first_site(),
                        {update.sites().begin(), update.sites().end()});
  }
  for (const v1::CommUpdate& comm : update.communicators()) {
    job->model.SetProgress(process, ToProgress(comm, offset_ns), origin.now_ns);
  }
}

void JobStore::SetSilent(const std::string& host, int64_t since_ns) {
  for (const std::shared_ptr<Job>& job : AllJobs()) {
    const absl::MutexLock lock(&job->mutex);
    for (const int32_t process : job->processes[host]) job->model.SetSilent(process, since_ns);
  }
}

void JobStore::SetStacks(const std::string& job, int32_t process, const StackFacts& facts) {
  const std::shared_ptr<Job> known = Find(job);
  if (known == nullptr) return;
  const absl::MutexLock lock(&known->mutex);
  known->model.SetStacks(process, facts);
}

std::vector<std::shared_ptr<JobStore::Job>> JobStore::AllJobs() const {
  const absl::MutexLock lock(&mutex_);
  std::vector<std::shared_ptr<Job>> all;
  for (const auto& [name, job] : jobs_) all.push_back(job);
  return all;
}

std::shared_ptr<JobStore::Job> JobStore::Find(const std::string& job) const {
  const absl::MutexLock lock(&mutex_);
  const auto at = jobs_.find(job);
  return at == jobs_.end() ? nullptr : at->second;
}

std::vector<std::string> JobStore::JobNames() const {
  const absl::MutexLock lock(&mutex_);
  std::vector<std::string> names;
  for (const auto& [name, job] : jobs_) names.push_back(name);
  return names;
}

JobState JobStore::Get(const std::string& job) const {
  JobState copy;
  Read(job, [&copy](const JobState& state) { copy = state; });
  return copy;
}

void JobStore::Read(const std::string& job,
                    const std::function<void(const JobState&)>& reader) const {
  const std::shared_ptr<Job> known = Find(job);
  if (known == nullptr) return;
  const absl::MutexLock lock(&known->mutex);
  reader(known->model.state());
}

uint64_t JobStore::Version(const std::string& job) const {
  const std::shared_ptr<Job> known = Find(job);
  if (known == nullptr) return 0;
  const absl::MutexLock lock(&known->mutex);
  return known->model.version();
}

void JobStore::Forget(const std::string& job) {
  const absl::MutexLock lock(&mutex_);
  jobs_.erase(job);
  for (auto at = owned_.begin(); at != owned_.end();) {
    at = at->second.job == job ? owned_.erase(at) : std::next(at);
  }
}

}  // namespace rollcall
