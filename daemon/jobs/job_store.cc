// SPDX-License-Identifier: Apache-2.0
#include "daemon/jobs/job_store.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/cut_text.h"
#include "daemon/access/tenant_of.h"
#include "daemon/jobs/daemon_counters.h"
#include "daemon/jobs/tick_facts.h"
#include "daemon/model/attempt_room.h"
#include "interpose/comm_kind.h"
#include "interpose/mpi_world.h"
#include "rollcall/v1/agent.pb.h"

namespace rollcall {

struct JobStore::Job {
  Job(JobKey key, std::shared_ptr<FleetBudget> fleet, const std::string& user)
      : model(std::move(key), std::move(fleet), user) {}

  std::vector<ProcessKey> owned;  // its keys in JobStore::owned_, guarded by the store's mutex
  size_t alive = 0;               // of these; guarded likewise
  // How many of these belong to users who did not begin the job; guarded likewise.
  std::map<std::string, size_t> guests;
  std::atomic<uint64_t> version{0};          // of the model
  std::atomic<int64_t> began_ns{INT64_MAX};  // as BeganNs(), written under the store's mutex
  Mutex mutex;
  JobModel model ABSL_GUARDED_BY(mutex);
  ShapeShare shapes ABSL_GUARDED_BY(mutex);
  // As in the model's state. Changed under both mutexes, so each of them suffices to read.
  std::vector<AgentBook::AgentPtr> agents;
  Mutex agents_mutex ABSL_ACQUIRED_AFTER(mutex);  // held shortly: no diagnosis holds it
  // When each of them made its newest tick for this job, by its own clock.
  std::vector<int64_t> made_ns ABSL_GUARDED_BY(mutex);
};

namespace {

constexpr size_t kRanksOfHost = 8;  // a guess
constexpr size_t kLeastInWholeTicks = 64;
constexpr const char* kUnknownUser = "unknown";

bool HasEnded(const v1::Evidence& evidence) {
  return evidence.liveness() == v1::Evidence::EXITED || evidence.liveness() == v1::Evidence::DIED ||
         evidence.liveness() == v1::Evidence::ENDED;
}

// The updates of a tick, by their index: first those of ended processes, in the order of the ends.
// So a process finds that the former holder of its rank has ended.
std::vector<int> OrderOfUpdates(const v1::Tick& tick) {
  std::vector<int> order(static_cast<size_t>(tick.processes_size()));
  std::iota(order.begin(), order.end(), 0);
  const auto has_ended = [&tick](int i) { return HasEnded(tick.processes(i).evidence()); };
  if (std::none_of(order.begin(), order.end(), has_ended)) return order;  // the usual case
  const auto living = std::stable_partition(order.begin(), order.end(), has_ended);
  std::stable_sort(order.begin(), living, [&tick](int a, int b) {
    return tick.processes(a).evidence().ended_ns() < tick.processes(b).evidence().ended_ns();
  });
  return order;
}

// Whose the process is. A user has a number, and is another user in another tenant only if the
// credential of the agent says so: what a process claims costs nothing.
Owner OwnerFrom(const AgentName& agent, const v1::Identity& identity) {
  const bool may_write_all =
      std::find(agent.tenants.begin(), agent.tenants.end(), kAll) != agent.tenants.end();
  std::string user = identity.has_uid() ? absl::StrCat(identity.uid()) : kUnknownUser;
  if (!may_write_all) user = absl::StrCat(absl::StrJoin(agent.tenants, "+"), "/", user);
  return {std::move(user), agent.host};
}

// Whose process ended before its agent could look whose it was.
bool IsUnknown(const Owner& owner) { return absl::EndsWith(owner.user, kUnknownUser); }

// The communicators that the process joins and whose ids no other start has. MPI_COMM_WORLD has
// one name in all, and some kinds have ids by names and counts.
std::vector<uint64_t> JoinedBy(const v1::ProcessUpdate& update) {
  constexpr int kMost = 8;
  std::vector<uint64_t> ids;
  for (int i = 0; i < std::min(kMost, update.communicators_size()); ++i) {
    const v1::CommUpdate& comm = update.communicators(i);
    const bool is_of_start = comm.parent() == 0 && comm.name() != segment::kMpiWorldName &&
                             !HasCountedIds(ToCommKind(comm.kind()));
    if (comm.id() != 0 && is_of_start) ids.push_back(comm.id());
  }
  return ids;
}

// A time of the agent on the daemon's clock; `unknown_ns` for 0. Nobody counts here what cannot be:
// Apply() does.
int64_t OnDaemonClock(int64_t time_ns, const AgentTimes& times, int64_t unknown_ns) {
  return time_ns == 0 ? unknown_ns : times.OnDaemonClock(time_ns, nullptr);
}

}  // namespace

void JobStore::Count(Dropped what) {
  if (counters_ != nullptr) counters_->CountDropped(what, 1);
}

void JobStore::CountOverShare(Dropped what, const Owner& owner) {
  if (counters_ != nullptr) counters_->CountOverShare(what, owner);
}

std::string JobStore::LimitText(const std::string& text, size_t most) {
  if (text.size() > most) Count(Dropped::kTexts);
  return CutText(text, most);
}

// After a change of the job's model, under the job's mutex.
void JobStore::Changed(Job* job) {
  job->mutex.AssertHeld();
  const uint64_t version = job->model.version();
  if (job->version.exchange(version) != version) ++changes_;
  if (counters_ != nullptr) counters_->CountDropped(job->model.TakeDropped());
}

uint32_t JobStore::RecordsInWholeTicks() const {
  const size_t members = std::max({fleet_->members(), expected_hosts_ * kRanksOfHost, size_t{1}});
  const size_t kept = most_.record_bytes / JobModel::kBytesOfRecord / members;
  return static_cast<uint32_t>(std::clamp(kept, kLeastInWholeTicks, JobModel::kMostRecords));
}

JobStore::Routed JobStore::Route(const AgentName& name, const v1::Tick& tick, int64_t came_ns) {
  Routed routed;
  routed.host = name.host;
  routed.origin.now_ns = tick.now_ns();
  if (came_ns != 0) routed.origin = agents_.RecordTick(name, tick.now_ns(), came_ns);
  if (routed.origin.is_outdated) return routed;
  const MutexLock lock(mutex_);
  for (const int i : OrderOfUpdates(tick)) {
    const v1::ProcessUpdate& update = tick.processes(i);
    JobKey key;
    AgentTimes times(routed.origin, 0);
    std::shared_ptr<Job> job = RouteUpdate(name, routed.origin, update, &key, &times, &routed);
    // Without an identity it is not known yet; its identity comes with the next whole tick.
    if (job == nullptr) continue;
    if (routed.parts.empty() || routed.parts.back().job != job) {
      routed.parts.push_back({std::move(key), std::move(job), {}});
    }
    routed.parts.back().updates.push_back({i, times});
  }
  return routed;
}

// Sets `must_restart` where the store would accept the agent's report if it began with an identity.
std::shared_ptr<JobStore::Job> JobStore::RouteUpdate(const AgentName& agent,
                                                     const AgentBook::Origin& origin,
                                                     const v1::ProcessUpdate& update, JobKey* key,
                                                     AgentTimes* times, Routed* routed) {
  const ProcessKey process = {agent.host, update.pid(), update.start_time()};
  const int64_t since_ns = AgentTimes::EarliestNs(update.identity());
  *times = AgentTimes(origin, since_ns);
  const auto known = owned_.find(process);
  Owned* owned = known == owned_.end() ? nullptr : &known->second;
  if (update.has_identity() && owned == nullptr) {
    owned = TakeIn(agent, origin, process, update, *times, routed);
  }
  if (owned == nullptr) return nullptr;
  // An agent of another tenant on this host, or a stream with another credential.
  if (!MayWrite(owned->job.tenant, agent.tenants)) {
    Count(Dropped::kTenants);
    return nullptr;
  }
  if (!MayReport(origin.agent, update.has_identity(), owned)) {
    routed->must_restart = routed->must_restart || agents_.IsFree(owned->agent);
    return nullptr;
  }
  // Each run of an agent has a clock of its own, and begins with the identity.
  if (update.has_identity()) owned->since_ns = since_ns;
  *times = AgentTimes(origin, owned->since_ns);
  *key = owned->job;
  Family& family = families_[*key];
  if (update.has_identity() && update.identity().has_segment() &&
      family.attempts.SetUsesNccl(process)) {
    RecordMember(*key, process, KnownRank(update.identity().global_rank(), -1, nullptr));
  }
  NoteJoined(process, update, owned);
  if (update.has_evidence()) SetEnded(owned, HasEnded(update.evidence()));
  if (owned->has_ended && update.has_evidence()) {
    const v1::Evidence& end = update.evidence();
    family.attempts.SetEnded(process, OnDaemonClock(end.ended_after_ns(), *times, 0),
                             OnDaemonClock(end.ended_ns(), *times, origin.now_ns));
  }
  return family.jobs[key->attempt];
}

// The first communicators of a process suffice: those of the whole job come first.
void JobStore::NoteJoined(const ProcessKey& process, const v1::ProcessUpdate& update,
                          Owned* owned) {
  if (owned->has_joined || update.communicators().empty()) return;
  owned->has_joined = true;
  families_[owned->job].attempts.AddCommunicators(process, JoinedBy(update));
}

// A process that is new here. nullptr: it gets no place.
JobStore::Owned* JobStore::TakeIn(const AgentName& agent, const AgentBook::Origin& origin,
                                  const ProcessKey& process, const v1::ProcessUpdate& update,
                                  const AgentTimes& times, Routed* routed) {
  const v1::Identity& identity = update.identity();
  const std::optional<JobId> name = NameOf(identity, agent);
  if (!name.has_value()) return nullptr;
  if (ownership_ != nullptr && !ownership_->Owns(*name)) {
    routed->not_owned.emplace(*name, std::make_pair(identity.tenant(), identity.job()));
    return nullptr;
  }
  const Newcomer newcomer = NewcomerOf(agent, *name, update);
  if (CountGuests(*name, newcomer.owner.user) >= limits::kGuestsOfUser) {
    CountOverShare(Dropped::kProcesses, newcomer.owner);
    return nullptr;
  }
  if (!MakeRoomForProcess(newcomer)) return nullptr;
  const std::optional<JobKey> placed = Place(process, *name, newcomer, update, origin, times);
  if (!placed.has_value()) return nullptr;
  Job& job = *families_[*placed].jobs[placed->attempt];
  job.owned.push_back(process);
  if (IsUnknown(*room_.OwnerOf(*placed))) HandOver(*placed, newcomer.owner);
  if (room_.OwnerOf(*placed)->user != newcomer.owner.user) ++job.guests[newcomer.owner.user];
  ++job.alive;
  job.began_ns = std::min(job.began_ns.load(), OnDaemonClock(identity.started_ns(), times, 0));
  SetProcesses(*placed);
  return &owned_.emplace(process, Owned{*placed, origin.agent}).first->second;
}

// A process of the same user in a job that is here belongs to the job's owner, whatever its host.
JobStore::Newcomer JobStore::NewcomerOf(const AgentName& agent, const JobId& name,
                                        const v1::ProcessUpdate& update) const {
  Newcomer newcomer = {OwnerFrom(agent, update.identity()),
                       !update.has_evidence() || !HasEnded(update.evidence())};
  const auto family = families_.find(name);
  if (family == families_.end() || family->second.jobs.empty()) return newcomer;
  const auto owner = room_.OwnerOf(JobKey(name, family->second.jobs.rbegin()->first));
  if (owner.has_value() && owner->user == newcomer.owner.user) newcomer.owner = *owner;
  return newcomer;
}

// The first user who is known has the job.
void JobStore::HandOver(const JobKey& key, const Owner& owner) {
  room_.RemoveJob(key);
  room_.AddJob(key, owner);
  families_[key].jobs[key.attempt]->guests.erase(owner.user);
}

// The processes of this user in jobs of the name that others began. These pay for them.
size_t JobStore::CountGuests(const JobId& name, const std::string& user) const {
  const auto family = families_.find(name);
  if (family == families_.end()) return 0;
  size_t count = 0;
  for (const auto& [number, job] : family->second.jobs) {
    const auto guests = job->guests.find(user);
    if (guests != job->guests.end()) count += guests->second;
  }
  return count;
}

void JobStore::SetEnded(Owned* owned, bool has_ended) {
  if (owned->has_ended == has_ended) return;
  owned->has_ended = has_ended;
  Job& job = *families_[owned->job].jobs[owned->job.attempt];
  job.alive += has_ended ? size_t{0} - 1 : 1;
  SetProcesses(owned->job);
}

void JobStore::SetProcesses(const JobKey& key) {
  const Job& job = *families_[key].jobs[key.attempt];
  room_.SetProcesses(key, job.owned.size(), job.alive);
}

void JobStore::RestoreAttempts(const std::map<JobKey, AttemptFacts>& attempts) {
  const MutexLock lock(mutex_);
  for (const auto& [key, facts] : attempts) {
    if (families_.count(key) == 0) restored_[key].Restore(key.attempt, facts);
  }
}

AttemptChanges JobStore::TakeAttemptChanges(const AttemptsToSave& whole) {
  const MutexLock lock(mutex_);
  AttemptChanges changes = std::exchange(attempt_changes_, {});
  const auto add = [&changes](const JobId& name, const Attempts& attempts) {
    for (auto& [number, facts] : attempts.AllFacts()) {
      changes.changed.insert_or_assign(JobKey(name, number), facts);
    }
  };
  for (const JobId& name : whole.jobs) {
    const auto family = families_.find(name);
    if (family != families_.end()) add(name, family->second.attempts);
  }
  if (!whole.all) return changes;
  for (const auto& [name, attempts] : restored_) add(name, attempts);
  for (const auto& [name, family] : families_) add(name, family.attempts);
  return changes;
}

// A process that uses NCCL, for a restarted daemon.
void JobStore::RecordMember(const JobKey& key, const ProcessKey& process, int32_t rank) {
  AttemptFacts& changed = attempt_changes_.changed[key];
  std::vector<AttemptFacts::Member> members = std::move(changed.members);
  members.push_back({process, rank});
  changed = families_[key].attempts.FactsOf(key.attempt);
  changed.members = std::move(members);
}

JobStore::Family* JobStore::FindOrAddFamily(const JobId& name) {
  const auto [family, is_new] = families_.try_emplace(name);
  names_[name.job].insert(name);
  auto restored = restored_.extract(name);
  if (is_new && !restored.empty()) family->second.attempts = std::move(restored.mapped());
  return &family->second;
}

// Whether a process of this job may begin an attempt.
bool JobStore::MakeRoomForJob(const JobId& name, const Newcomer& newcomer) {
  while (jobs_ >= most_.jobs && families_.count(name) == 0) {
    const auto makes_room = room_.MakesRoomForJob(newcomer.owner, newcomer.is_alive);
    if (!makes_room.has_value()) {
      CountOverShare(Dropped::kJobs, newcomer.owner);
      return false;
    }
    MakeRoom(*makes_room, Dropped::kJobs);
  }
  return true;
}

bool JobStore::MakeRoomForProcess(const Newcomer& newcomer) {
  while (owned_.size() >= most_.processes) {
    const auto makes_room = room_.MakesRoomForProcess(newcomer.owner, newcomer.is_alive);
    if (!makes_room.has_value()) {
      CountOverShare(Dropped::kProcesses, newcomer.owner);
      return false;
    }
    MakeRoom(*makes_room, Dropped::kProcesses);
  }
  return true;
}

// Forgets the job, and counts it if it was alive: its owner has more than others.
void JobStore::MakeRoom(const JobKey& key, Dropped what) {
  const Job& job = *families_[key].jobs[key.attempt];
  if (job.alive > 0) CountOverShare(what, room_.OwnerOf(key).value_or(Owner()));
  ForgetLocked(key);
  EraseEmptyFamily(key);
}

// Forgets attempts of the job but for this number. `newest` has no process yet.
void JobStore::Evict(const JobKey& newest, size_t attempts) {
  const auto family = families_.find(newest);
  while (family->second.jobs.size() > attempts) {
    std::vector<HeldAttempt> held;
    for (const auto& [number, job] : family->second.jobs) {
      const auto owner = room_.OwnerOf(JobKey(newest, number));
      held.push_back(
          {number, owner.value_or(Owner()).user, job->alive > 0 || number == newest.attempt});
    }
    Count(Dropped::kAttempts);
    ForgetLocked(JobKey(newest, MakesRoom(held)));
  }
}

// nullopt: the process claims a tenant that its agent may not write.
std::optional<JobId> JobStore::NameOf(const v1::Identity& identity, const AgentName& agent) {
  const std::optional<std::string> tenant = TenantOf(identity.tenant(), agent.tenants);
  if (!tenant.has_value()) {
    Count(Dropped::kTenants);
    return std::nullopt;
  }
  JobId name;
  name.tenant = *tenant;
  name.job = LimitText(identity.job().empty() ? default_job_ : identity.job(), limits::kName);
  return name;
}

// nullopt: there are too many jobs; or it is too early, and the agent sends the identity again when
// the process uses NCCL.
std::optional<JobKey> JobStore::Place(const ProcessKey& process, const JobId& name,
                                      const Newcomer& newcomer, const v1::ProcessUpdate& update,
                                      const AgentBook::Origin& origin, const AgentTimes& times) {
  const v1::Identity& identity = update.identity();
  if (!MakeRoomForJob(name, newcomer)) return std::nullopt;
  ProcessStart start;
  start.process = process;
  start.user = newcomer.owner.user;
  start.rank = KnownRank(identity.global_rank(), -1, nullptr);
  start.world_size = KnownRank(identity.world_size(), -1, nullptr);
  start.uses_nccl = identity.has_segment();
  start.started_ns = OnDaemonClock(identity.started_ns(), times, origin.now_ns);
  start.attempt = identity.has_attempt() ? identity.attempt() : -1;
  start.restarts = LimitText(identity.restarts(), limits::kCommand);
  start.launch = LimitText(identity.launch(), limits::kCommand);
  start.may_rejoin = identity.may_rejoin();
  start.communicators = JoinedBy(update);
  Family& family = *FindOrAddFamily(name);
  if (family.attempts.IsTooEarly(start)) return std::nullopt;
  const bool is_recorded = family.attempts.IsPlaced(process);
  const JobKey key(name, family.attempts.Place(start));
  if (start.uses_nccl && !is_recorded) RecordMember(key, process, start.rank);
  std::shared_ptr<Job>& job = family.jobs[key.attempt];
  if (job != nullptr) return key;
  job = std::make_shared<Job>(key, fleet_, newcomer.owner.user);
  room_.AddJob(key, newcomer.owner);
  ++jobs_;
  ++changes_;
  // A job that begins again and again keeps its newest attempts; beyond the limit of jobs, two.
  Evict(key, jobs_ > most_.jobs ? 2 : limits::kAttemptsOfJob);
  if (family.jobs.count(key.attempt) == 0) return std::nullopt;
  return key;
}

// The agent that reports a process first speaks for it, until that agent is gone or silent.
bool JobStore::MayReport(const AgentBook::AgentPtr& agent, bool with_identity, Owned* owned) {
  if (agent == nullptr || owned->agent == agent) return true;
  const bool may = with_identity && agents_.IsFree(owned->agent);
  if (may) {
    owned->agent = agent;
  } else {
    agents_.SetRefused(agent);
  }
  return may;
}

void JobStore::Apply(const v1::Tick& tick, const Routed& routed, const Part& part) {
  const MutexLock lock(part.job->mutex);
  const int32_t agent = AddAgent(routed.origin.agent, part.job.get());
  if (agent >= 0) {
    // Two streams of one agent may post their ticks in another order than Route() has seen them.
    int64_t& made_ns = part.job->made_ns[static_cast<size_t>(agent)];
    if (tick.now_ns() < made_ns) return;
    made_ns = tick.now_ns();
  }
  for (const Part::Update& at : part.updates) {
    const v1::ProcessUpdate& update = tick.processes(at.index);
    const ProcessKey process = {routed.host, update.pid(), update.start_time()};
    ApplyUpdate(process, update, at.times, routed.origin.now_ns, agent, part.job.get());
  }
  Changed(part.job.get());
}

bool JobStore::Apply(const AgentName& name, const v1::Tick& tick, int64_t came_ns) {
  const Routed routed = Route(name, tick, came_ns);
  for (const Part& part : routed.parts) Apply(tick, routed, part);
  agents_.Applied(routed.origin);
  return !routed.must_restart;
}

void JobStore::ApplyUpdate(const ProcessKey& key, const v1::ProcessUpdate& update,
                           const AgentTimes& times, int64_t now_ns, int32_t agent, Job* job) {
  job->mutex.AssertHeld();
  const int32_t process = job->model.AddProcess(key.host, key.pid, key.start_time);
  if (process < 0) return;  // one too many
  job->model.SetAgent(process, agent);
  DroppedCounts dropped = {};
  if (update.has_identity()) {
    times.OnDaemonClock(update.identity().started_ns(), &dropped);  // to count what cannot be
    job->model.SetIdentity(process, ToIdentity(update.identity(), &dropped));
  }
  if (update.has_evidence()) {
    job->model.SetEvidence(process, ToEvidence(update.evidence(), times, &dropped), now_ns);
  }
  if (!update.sites().empty()) {
    job->model.AddSites(process, update.first_site(), ToSites(update, &dropped));
  }
  for (const v1::CommUpdate& comm : update.communicators()) {
    job->model.SetProgress(process, ToProgress(comm, times, &job->shapes, &dropped), now_ns);
  }
  dropped[static_cast<size_t>(Dropped::kShapes)] += std::exchange(job->shapes.dropped, 0);
  if (counters_ != nullptr) counters_->CountDropped(dropped);
}

// Index of the agent in the job; -1: the tick was read from files, or the agent is one too many.
int32_t JobStore::AddAgent(const AgentBook::AgentPtr& agent, Job* job) {
  job->mutex.AssertHeld();
  if (agent == nullptr) return -1;
  const AgentName& name = AgentBook::Name(agent);
  const int32_t index = job->model.AddAgent(name.id, name.host);
  if (index < 0) return index;
  const auto at = static_cast<size_t>(index);
  if (at == job->agents.size()) job->made_ns.push_back(0);
  if (at == job->agents.size() || job->agents[at] != agent) {
    {
      const MutexLock lock(job->agents_mutex);
      job->agents.resize(std::max(job->agents.size(), at + 1));
      job->agents[at] = agent;
    }
    job->made_ns[at] = 0;
    job->model.SetAgentHeard(index, agents_.Heard({agent}).front());
  }
  return index;
}

void JobStore::UpdateHeard(const JobKey& key, int64_t counts_from_ns) {
  const std::shared_ptr<Job> known = FindJob(key);
  if (known == nullptr) return;
  const MutexLock lock(known->mutex);
  known->model.CountFrom(counts_from_ns);
  const std::vector<AgentHeard> heard = agents_.Heard(known->agents);
  for (size_t i = 0; i < heard.size(); ++i) {
    known->model.SetAgentHeard(static_cast<int32_t>(i), heard[i]);
  }
  known->model.TrimRecords();
  Changed(known.get());
}

void JobStore::SetUrgent(const std::set<JobKey>& jobs, size_t most_agents) {
  std::vector<std::vector<AgentBook::AgentPtr>> agents;
  for (const JobKey& key : jobs) {
    const std::shared_ptr<Job> known = FindJob(key);
    if (known == nullptr) continue;
    // A diagnosis may hold the job's own mutex for long.
    const MutexLock lock(known->agents_mutex);
    agents.push_back(known->agents);
  }
  std::sort(agents.begin(), agents.end(),
            [](const auto& a, const auto& b) { return a.size() < b.size(); });
  std::vector<AgentBook::AgentPtr> urgent;
  for (const auto& of_job : agents) {
    if (urgent.size() + of_job.size() > most_agents) break;
    urgent.insert(urgent.end(), of_job.begin(), of_job.end());
  }
  agents_.SetUrgent(std::move(urgent));
}

void JobStore::SetNetwork(const JobKey& key, int32_t process, std::vector<NetworkSample> samples,
                          int64_t now_ns) {
  const std::shared_ptr<Job> known = FindJob(key);
  if (known == nullptr) return;
  const MutexLock lock(known->mutex);
  known->model.SetNetwork(process, std::move(samples), now_ns);
  Changed(known.get());
}

void JobStore::SetStacks(const JobKey& key, int32_t process, const StackFacts& facts) {
  const std::shared_ptr<Job> known = FindJob(key);
  if (known == nullptr) return;
  const MutexLock lock(known->mutex);
  known->model.SetStacks(process, facts);
  Changed(known.get());
}

void JobStore::SetHostFacts(const JobKey& key, const std::string& host, HostFacts facts) {
  const std::shared_ptr<Job> known = FindJob(key);
  if (known == nullptr) return;
  const MutexLock lock(known->mutex);
  known->model.SetHostFacts(host, std::move(facts));
  Changed(known.get());
}

std::shared_ptr<JobStore::Job> JobStore::FindJob(const JobKey& key) const {
  const MutexLock lock(mutex_);
  const auto family = families_.find(key);
  if (family == families_.end()) return nullptr;
  const auto at = family->second.jobs.find(key.attempt);
  return at == family->second.jobs.end() ? nullptr : at->second;
}

std::vector<JobKey> JobStore::Keys() const {
  const MutexLock lock(mutex_);
  std::vector<JobKey> keys;
  for (const auto& [name, family] : families_) {
    for (const auto& [attempt, job] : family.jobs) keys.emplace_back(name, attempt);
  }
  return keys;
}

std::vector<JobKey> JobStore::NewestKeys(size_t most, const Tenants& tenants) const {
  const MutexLock lock(mutex_);
  std::vector<JobKey> keys;
  for (const auto& [name, family] : families_) {
    if (keys.size() == most) break;
    if (family.jobs.empty() || !tenants.Has(name.tenant)) continue;
    keys.emplace_back(name, family.jobs.rbegin()->first);
  }
  return keys;
}

size_t JobStore::CountJobs(const Tenants& tenants) const {
  const MutexLock lock(mutex_);
  if (tenants.AreAll()) return families_.size();
  return static_cast<size_t>(
      std::count_if(families_.begin(), families_.end(),
                    [&tenants](const auto& entry) { return tenants.Has(entry.first.tenant); }));
}

std::vector<JobKey> JobStore::KeysOf(const JobId& name) const {
  const MutexLock lock(mutex_);
  std::vector<JobKey> keys;
  const auto family = families_.find(name);
  if (family == families_.end()) return keys;
  for (const auto& [attempt, job] : family->second.jobs) keys.emplace_back(name, attempt);
  return keys;
}

std::vector<JobStore::Sharer> JobStore::FindSharers(const JobKey& job,
                                                    const std::vector<uint64_t>& communicators,
                                                    bool by_launch) const {
  std::vector<Sharer> sharers;
  std::vector<std::pair<JobKey, std::shared_ptr<Job>>> others;
  {
    const MutexLock lock(mutex_);
    const auto own = families_.find(job);
    std::string launch;
    if (by_launch && own != families_.end()) {
      launch = own->second.attempts.FactsOf(job.attempt).launch;
    }
    for (auto at = families_.lower_bound(JobId{job.tenant, ""});
         at != families_.end() && at->first.tenant == job.tenant; ++at) {
      if (at == own) continue;
      for (const auto& [attempt, other] : at->second.jobs) {
        const JobKey key(at->first, attempt);
        const bool is_of_launch =
            !launch.empty() && at->second.attempts.FactsOf(attempt).launch == launch;
        if (is_of_launch) {
          sharers.push_back({key, true});
        } else if (!communicators.empty()) {
          others.emplace_back(key, other);
        }
      }
    }
  }
  for (const auto& [key, other] : others) {
    const MutexLock lock(other->mutex);
    const auto& known = other->model.state().communicators;
    const bool has_one = std::any_of(communicators.begin(), communicators.end(),
                                     [&known](uint64_t id) { return known.count(id) != 0; });
    if (has_one) sharers.push_back({key, false});
  }
  return sharers;
}

std::set<std::string> JobStore::HostsWithProcesses() const {
  const MutexLock lock(mutex_);
  std::set<std::string> hosts;
  for (const auto& [process, owned] : owned_) hosts.insert(process.host);
  return hosts;
}

std::vector<AgentBook::AgentPtr> JobStore::BookedAgentsOf(const JobId& name) const {
  std::vector<AgentBook::AgentPtr> agents;
  for (const JobKey& key : KeysOf(name)) {
    const std::shared_ptr<Job> job = FindJob(key);
    if (job == nullptr) continue;
    const MutexLock lock(job->agents_mutex);
    std::copy_if(job->agents.begin(), job->agents.end(), std::back_inserter(agents),
                 [](const AgentBook::AgentPtr& agent) { return agent != nullptr; });
  }
  return agents;
}

bool JobStore::IsHeard(const JobId& name) const {
  const std::vector<AgentBook::AgentPtr> agents = BookedAgentsOf(name);
  return std::any_of(agents.begin(), agents.end(),
                     [this](const AgentBook::AgentPtr& agent) { return agents_.IsHeard(agent); });
}

std::vector<std::string> JobStore::AgentsOf(const JobId& name) const {
  std::set<std::string> ids;
  for (const AgentBook::AgentPtr& agent : BookedAgentsOf(name))
    ids.insert(AgentBook::Name(agent).id);
  // Those whose first ticks wait to be applied.
  const MutexLock lock(mutex_);
  const auto family = families_.find(name);
  if (family == families_.end()) return {ids.begin(), ids.end()};
  for (const auto& [attempt, job] : family->second.jobs) {
    for (const ProcessKey& process : job->owned) {
      const auto at = owned_.find(process);
      if (at != owned_.end() && at->second.agent != nullptr) {
        ids.insert(AgentBook::Name(at->second.agent).id);
      }
    }
  }
  return {ids.begin(), ids.end()};
}

std::vector<JobKey> JobStore::AllKeys(const std::string& job) const {
  const MutexLock lock(mutex_);
  std::vector<JobKey> keys;
  const auto names = names_.find(job);
  if (names == names_.end()) return keys;
  for (const JobId& name : names->second) {
    for (const auto& [attempt, known] : families_.at(name).jobs) keys.emplace_back(name, attempt);
  }
  return keys;
}

std::vector<JobStore::AttemptRef> JobStore::AttemptsFor(const JobId& name) const {
  const MutexLock lock(mutex_);
  std::vector<AttemptRef> all;
  const auto family = families_.find(name);
  if (family == families_.end()) return all;
  for (auto at = family->second.jobs.rbegin(); at != family->second.jobs.rend(); ++at) {
    all.push_back({JobKey(name, at->first), family->second.attempts.HasTwin(at->first)});
  }
  return all;
}

std::optional<JobKey> JobStore::Find(const std::string& tenant, const std::string& job,
                                     std::optional<int32_t> attempt, const Tenants& tenants) const {
  const MutexLock lock(mutex_);
  const auto names = names_.find(job);
  if (names == names_.end()) return std::nullopt;
  std::optional<JobKey> found;
  for (const JobId& name : names->second) {
    const Family& family = families_.at(name);
    if ((!tenant.empty() && name.tenant != tenant) || family.jobs.empty()) continue;
    if (!tenants.Has(name.tenant)) continue;
    const int32_t wanted = attempt.value_or(family.jobs.rbegin()->first);
    if (family.jobs.count(wanted) == 0) continue;
    if (!found.has_value() || name.tenant == kDefaultTenant) found = JobKey(name, wanted);
  }
  return found;
}

int64_t JobStore::BeganNs(const JobKey& key) const {
  const std::shared_ptr<Job> known = FindJob(key);
  return known == nullptr ? 0 : known->began_ns.load();
}

bool JobStore::Has(const JobKey& key) const { return FindJob(key) != nullptr; }

JobState JobStore::Get(const JobKey& key) const {
  JobState copy;
  Read(key, [&copy](const JobState& state) { copy = state; });
  return copy;
}

void JobStore::Read(const JobKey& key, const std::function<void(const JobState&)>& reader) const {
  const std::shared_ptr<Job> known = FindJob(key);
  if (known == nullptr) return;
  const MutexLock lock(known->mutex);
  reader(known->model.state());
}

uint64_t JobStore::Version(const JobKey& key) const {
  const std::shared_ptr<Job> known = FindJob(key);
  return known == nullptr ? 0 : known->version.load();
}

bool JobStore::Forget(const JobKey& key) {
  const MutexLock lock(mutex_);
  const auto family = families_.find(key);
  if (family == families_.end()) return true;
  const auto job = family->second.jobs.find(key.attempt);
  // Only under this mutex the job gets another owner, so nobody else has it now.
  if (job != family->second.jobs.end() && job->second.use_count() > 1) return false;
  ForgetLocked(key);
  // The next owner continues from what is stored about it.
  if (ownership_ != nullptr && !ownership_->Owns(key)) attempt_changes_.forgotten.erase(key);
  EraseEmptyFamily(key);
  return true;
}

void JobStore::EraseEmptyFamily(const JobId& name) {
  const auto family = families_.find(name);
  if (family == families_.end() || !family->second.jobs.empty()) return;
  families_.erase(family);
  const auto names = names_.find(name.job);
  names->second.erase(name);
  if (names->second.empty()) names_.erase(names);
}

void JobStore::ForgetLocked(const JobKey& key) {
  const auto family = families_.find(key);
  if (family == families_.end()) return;
  const auto at = family->second.jobs.find(key.attempt);
  if (at == family->second.jobs.end()) return;
  for (const ProcessKey& process : at->second->owned) owned_.erase(process);
  family->second.jobs.erase(at);
  family->second.attempts.Forget(key.attempt);
  attempt_changes_.changed.erase(key);
  attempt_changes_.forgotten.insert(key);
  room_.RemoveJob(key);
  --jobs_;
  ++changes_;
}

}  // namespace rollcall
