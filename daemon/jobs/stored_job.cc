// SPDX-License-Identifier: Apache-2.0
#include "daemon/jobs/stored_job.h"

#include <algorithm>
#include <utility>

#include "daemon/jobs/tick_facts.h"
#include "rollcall/v1/agent.pb.h"

namespace rollcall {

StoredJob::StoredJob(JobKey key, const std::string& user, bool has_twin, SharedByJobs* shared)
    : shared_(shared), has_twin_(has_twin), model_(std::move(key), shared->fleet, user) {}

void StoredJob::Changed() {
  const uint64_t version = model_.version();
  if (version_.exchange(version) != version) ++shared_->changes;
  if (shared_->counters != nullptr) shared_->counters->CountDropped(model_.TakeDropped());
}

void StoredJob::Apply(const v1::Tick& tick, const RoutedTick& routed,
                      const RoutedTick::Part& part) {
  const MutexLock lock(mutex_);
  const int32_t agent = AddAgent(routed.origin.agent);
  if (agent >= 0) {
    // Two streams of one agent may post their ticks in another order than they were routed in.
    int64_t& made_ns = made_ns_[static_cast<size_t>(agent)];
    if (tick.now_ns() < made_ns) return;
    made_ns = tick.now_ns();
  }
  for (const RoutedTick::Part::Update& at : part.updates) {
    const v1::ProcessUpdate& update = tick.processes(at.index);
    const ProcessKey process = {routed.host, update.pid(), update.start_time()};
    ApplyUpdate(process, update, at.times, routed.origin.now_ns, agent);
  }
  Changed();
}

void StoredJob::ApplyUpdate(const ProcessKey& key, const v1::ProcessUpdate& update,
                            const AgentTimes& times, int64_t now_ns, int32_t agent) {
  const int32_t process = model_.AddProcess(key.host, key.pid, key.start_time);
  if (process < 0) return;  // one too many
  model_.SetAgent(process, agent);
  DroppedCounts dropped = {};
  if (update.has_identity()) {
    times.OnDaemonClock(update.identity().started_ns(), &dropped);  // to count what cannot be
    model_.SetIdentity(process, ToIdentity(update.identity(), &dropped));
  }
  if (update.has_evidence()) {
    model_.SetEvidence(process, ToEvidence(update.evidence(), times, &dropped), now_ns);
  }
  if (!update.sites().empty()) {
    model_.AddSites(process, update.first_site(), ToSites(update, &dropped));
  }
  for (const v1::CommUpdate& comm : update.communicators()) {
    model_.SetProgress(process, ToProgress(comm, times, &shapes_, &dropped), now_ns);
  }
  dropped[static_cast<size_t>(Dropped::kShapes)] += std::exchange(shapes_.dropped, 0);
  if (shared_->counters != nullptr) shared_->counters->CountDropped(dropped);
}

// Returns the index of the agent in the job; -1 if the tick was read from files, or the agent is
// one too many.
int32_t StoredJob::AddAgent(const AgentBook::AgentPtr& agent) {
  if (agent == nullptr) return -1;
  const AgentName& name = AgentBook::Name(agent);
  const int32_t index = model_.AddAgent(name.id, name.host);
  if (index < 0) return index;
  const auto at = static_cast<size_t>(index);
  if (at == agents_.size()) made_ns_.push_back(0);
  if (at == agents_.size() || agents_[at] != agent) {
    {
      const MutexLock lock(agents_mutex_);
      agents_.resize(std::max(agents_.size(), at + 1));
      agents_[at] = agent;
    }
    made_ns_[at] = 0;
    model_.SetAgentHeard(index, shared_->agents.Heard({agent}).front());
  }
  return index;
}

void StoredJob::Change(const std::function<void(JobModel*)>& change) {
  const MutexLock lock(mutex_);
  change(&model_);
  Changed();
}

void StoredJob::UpdateHeard(int64_t counts_from_ns) {
  const MutexLock lock(mutex_);
  model_.CountFrom(counts_from_ns);
  const std::vector<AgentHeard> heard = shared_->agents.Heard(agents_);
  for (size_t i = 0; i < heard.size(); ++i) {
    model_.SetAgentHeard(static_cast<int32_t>(i), heard[i]);
  }
  model_.TrimRecords();
  Changed();
}

void StoredJob::Read(const std::function<void(const JobState&)>& reader) const {
  const MutexLock lock(mutex_);
  reader(model_.state());
}

std::vector<AgentBook::AgentPtr> StoredJob::Agents() const {
  const MutexLock lock(agents_mutex_);
  return agents_;
}

void StoredJob::SetBegan(int64_t process_began_ns) {
  began_ns_ = std::min(began_ns_.load(), process_began_ns);
}

}  // namespace rollcall
