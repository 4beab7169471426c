// SPDX-License-Identifier: Apache-2.0
#include "daemon/jobs/process_places.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/cut_text.h"
#include "daemon/access/tenant_of.h"
#include "daemon/jobs/tick_facts.h"
#include "daemon/model/attempt_room.h"
#include "interpose/comm_kind.h"
#include "interpose/mpi_world.h"
#include "rollcall/v1/agent.pb.h"

namespace rollcall {

struct ProcessPlaces::Report {
  const AgentName& agent;
  const v1::ProcessUpdate& update;
  ProcessKey process;
  AgentTimes times;
  RoutedTick* routed;  // what is known of the tick so far

  const AgentBook::Origin& origin() const { return routed->origin; }
};

struct ProcessPlaces::Newcomer {  // a process that asks for a place
  Owner owner;
  bool is_alive = true;
};

namespace {

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
// credential of the agent proves it: what a process claims costs nothing.
Owner OwnerFrom(const AgentName& agent, const v1::Identity& identity) {
  const bool may_write_all =
      std::find(agent.tenants.begin(), agent.tenants.end(), kAll) != agent.tenants.end();
  std::string user = identity.has_uid() ? absl::StrCat(identity.uid()) : kUnknownUser;
  if (!may_write_all) user = absl::StrCat(absl::StrJoin(agent.tenants, "+"), "/", user);
  return {std::move(user), agent.host};
}

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

// Returns a time of the agent on the daemon's clock; `unknown_ns` for 0. What cannot be is not
// counted here: StoredJob::Apply() does.
int64_t OnDaemonClock(int64_t time_ns, const AgentTimes& times, int64_t unknown_ns) {
  return time_ns == 0 ? unknown_ns : times.OnDaemonClock(time_ns, nullptr);
}

}  // namespace

ProcessPlaces::ProcessPlaces(std::string default_job, const JobStoreLimits& most,
                             SharedByJobs* shared, JobIndex* jobs)
    : default_job_(std::move(default_job)), most_(most), shared_(shared), jobs_(jobs) {}

// The beginning of a text that is longer than `most` bytes; counts the cut.
std::string ProcessPlaces::LimitText(const std::string& text, size_t most) const {
  if (text.size() > most) shared_->Count(Dropped::kTexts);
  return CutText(text, most);
}

void ProcessPlaces::RestoreAttempts(const std::map<JobKey, AttemptFacts>& attempts) {
  const MutexLock lock(mutex_);
  attempts_.Restore(attempts);
}

AttemptChanges ProcessPlaces::TakeAttemptChanges(const AttemptsToSave& whole) {
  const MutexLock lock(mutex_);
  return attempts_.TakeChanges(whole);
}

std::set<JobKey> ProcessPlaces::OfSameLaunch(const JobKey& key) const {
  const MutexLock lock(mutex_);
  return attempts_.OfSameLaunch(key);
}

RoutedTick ProcessPlaces::Route(const AgentName& agent, const v1::Tick& tick, int64_t came_ns) {
  RoutedTick routed;
  routed.host = agent.host;
  routed.origin.now_ns = tick.now_ns();
  if (came_ns != 0) routed.origin = shared_->agents.RecordTick(agent, tick.now_ns(), came_ns);
  if (routed.origin.is_outdated) return routed;
  const MutexLock lock(mutex_);
  for (const int i : OrderOfUpdates(tick)) {
    const v1::ProcessUpdate& update = tick.processes(i);
    Report report = {agent,
                     update,
                     {agent.host, update.pid(), update.start_time()},
                     AgentTimes(routed.origin, AgentTimes::EarliestNs(update.identity())),
                     &routed};
    JobKey key;
    std::shared_ptr<StoredJob> job = RouteUpdate(&report, &key);
    // Without an identity it is not known yet; its identity comes with the next whole tick.
    if (job == nullptr) continue;
    if (routed.parts.empty() || routed.parts.back().job != job) {
      routed.parts.push_back({std::move(key), std::move(job), {}});
    }
    routed.parts.back().updates.push_back({i, report.times});
  }
  return routed;
}

// Sets `must_restart` where the store would accept the agent's report if it began with an identity.
std::shared_ptr<StoredJob> ProcessPlaces::RouteUpdate(Report* report, JobKey* key) {
  const v1::ProcessUpdate& update = report->update;
  const auto known = placed_.find(report->process);
  Placed* placed = known == placed_.end() ? nullptr : &known->second;
  if (update.has_identity() && placed == nullptr) placed = TakeIn(*report);
  if (placed == nullptr) return nullptr;
  // An agent of another tenant on this host, or a stream with another credential.
  if (!MayWrite(placed->job.tenant, report->agent.tenants)) {
    shared_->Count(Dropped::kTenants);
    return nullptr;
  }
  if (!MayReport(*report, placed)) {
    report->routed->must_restart =
        report->routed->must_restart || shared_->agents.IsFree(placed->agent);
    return nullptr;
  }
  // Each run of an agent has a clock of its own, and begins with the identity.
  if (update.has_identity()) placed->since_ns = AgentTimes::EarliestNs(update.identity());
  report->times = AgentTimes(report->origin(), placed->since_ns);
  Note(*report, placed);
  *key = placed->job;
  return jobs_->At(*key);
}

// The agent that reports a process first speaks for it, until that agent is gone or silent.
bool ProcessPlaces::MayReport(const Report& report, Placed* placed) {
  const AgentBook::AgentPtr& agent = report.origin().agent;
  if (agent == nullptr || placed->agent == agent) return true;
  const bool may = report.update.has_identity() && shared_->agents.IsFree(placed->agent);
  if (may) {
    placed->agent = agent;
  } else {
    shared_->agents.SetRefused(agent);
  }
  return may;
}

// Notes what decides to which attempts other processes belong.
void ProcessPlaces::Note(const Report& report, Placed* placed) {
  const v1::ProcessUpdate& update = report.update;
  Attempts& attempts = attempts_.Of(placed->job);
  if (update.has_identity() && update.identity().has_segment() &&
      attempts.SetUsesNccl(report.process)) {
    attempts_.RecordMember(placed->job, report.process,
                           KnownRank(update.identity().global_rank(), -1, nullptr));
  }
  // The first communicators of a process suffice: those of the whole job come first.
  if (!placed->has_joined && !update.communicators().empty()) {
    placed->has_joined = true;
    attempts.AddCommunicators(report.process, JoinedBy(update));
  }
  if (!update.has_evidence()) return;
  const v1::Evidence& evidence = update.evidence();
  const bool has_ended = HasEnded(evidence);
  if (std::exchange(placed->has_ended, has_ended) != has_ended) {
    room_.SetEnded(placed->job, has_ended);
  }
  if (!has_ended) return;
  attempts.SetEnded(report.process, OnDaemonClock(evidence.ended_after_ns(), report.times, 0),
                    OnDaemonClock(evidence.ended_ns(), report.times, report.origin().now_ns));
}

// A process that is new here. nullptr means it gets no place.
ProcessPlaces::Placed* ProcessPlaces::TakeIn(const Report& report) {
  const v1::Identity& identity = report.update.identity();
  const std::optional<JobId> name = NameOf(identity, report.agent);
  if (!name.has_value()) return nullptr;
  if (ownership_ != nullptr && !ownership_->Owns(*name)) {
    report.routed->not_owned.emplace(*name, std::make_pair(identity.tenant(), identity.job()));
    return nullptr;
  }
  const Newcomer newcomer = NewcomerOf(report, *name);
  if (room_.CountGuests(*name, newcomer.owner.user) >= limits::kGuestsOfUser) {
    shared_->CountOverShare(Dropped::kProcesses, newcomer.owner);
    return nullptr;
  }
  if (!MakeRoomForProcess(newcomer)) return nullptr;
  const std::optional<JobKey> job = Place(report, *name, newcomer);
  if (!job.has_value()) return nullptr;
  of_job_[*job].push_back(report.process);
  room_.AddProcess(*job, newcomer.owner);
  jobs_->At(*job)->SetBegan(OnDaemonClock(identity.started_ns(), report.times, 0));
  return &placed_.emplace(report.process, Placed{*job, report.origin().agent}).first->second;
}

// nullopt if the process claims a tenant that its agent may not write.
std::optional<JobId> ProcessPlaces::NameOf(const v1::Identity& identity,
                                           const AgentName& agent) const {
  const std::optional<std::string> tenant = TenantOf(identity.tenant(), agent.tenants);
  if (!tenant.has_value()) {
    shared_->Count(Dropped::kTenants);
    return std::nullopt;
  }
  JobId name;
  name.tenant = *tenant;
  name.job = LimitText(identity.job().empty() ? default_job_ : identity.job(), limits::kName);
  return name;
}

// A process of the same user in a job that is here belongs to the job's owner, whatever its host.
ProcessPlaces::Newcomer ProcessPlaces::NewcomerOf(const Report& report, const JobId& name) const {
  Newcomer newcomer = {OwnerFrom(report.agent, report.update.identity()),
                       !report.update.has_evidence() || !HasEnded(report.update.evidence())};
  const std::vector<JobKey> attempts = jobs_->KeysOf(name);
  if (attempts.empty()) return newcomer;
  const auto owner = room_.OwnerOf(attempts.back());
  if (owner.has_value() && owner->user == newcomer.owner.user) newcomer.owner = *owner;
  return newcomer;
}

// nullopt if there are too many jobs; or it is too early, and the agent sends the identity again
// when the process uses NCCL.
std::optional<JobKey> ProcessPlaces::Place(const Report& report, const JobId& name,
                                           const Newcomer& newcomer) {
  const v1::Identity& identity = report.update.identity();
  if (!MakeRoomForJob(name, newcomer)) return std::nullopt;
  ProcessStart start;
  start.process = report.process;
  start.user = newcomer.owner.user;
  start.rank = KnownRank(identity.global_rank(), -1, nullptr);
  start.world_size = KnownRank(identity.world_size(), -1, nullptr);
  start.uses_nccl = identity.has_segment();
  start.started_ns = OnDaemonClock(identity.started_ns(), report.times, report.origin().now_ns);
  start.attempt = identity.has_attempt() ? identity.attempt() : -1;
  start.restarts = LimitText(identity.restarts(), limits::kCommand);
  start.launch = LimitText(identity.launch(), limits::kCommand);
  start.may_rejoin = identity.may_rejoin();
  start.communicators = JoinedBy(report.update);
  Attempts& attempts = attempts_.Of(name);
  if (attempts.IsTooEarly(start)) return std::nullopt;
  const bool is_recorded = attempts.IsPlaced(start.process);
  const JobKey key(name, attempts.Place(start));
  if (start.uses_nccl && !is_recorded) attempts_.RecordMember(key, start.process, start.rank);
  if (jobs_->Has(key)) return key;
  jobs_->Add(key, std::make_shared<StoredJob>(key, newcomer.owner.user,
                                              attempts.HasTwin(key.attempt), shared_));
  room_.AddJob(key, newcomer.owner);
  ++shared_->changes;
  // A job that begins again and again keeps its newest attempts; beyond the limit of jobs, two.
  Evict(key, jobs_->CountAttempts() > most_.jobs ? 2 : limits::kAttemptsOfJob);
  return jobs_->Has(key) ? std::optional<JobKey>(key) : std::nullopt;
}

// Whether a process of this job may begin an attempt.
bool ProcessPlaces::MakeRoomForJob(const JobId& name, const Newcomer& newcomer) {
  while (jobs_->CountAttempts() >= most_.jobs && !attempts_.Has(name)) {
    const auto makes_room = room_.MakesRoomForJob(newcomer.owner, newcomer.is_alive);
    if (!makes_room.has_value()) {
      shared_->CountOverShare(Dropped::kJobs, newcomer.owner);
      return false;
    }
    MakeRoom(*makes_room, Dropped::kJobs);
  }
  return true;
}

bool ProcessPlaces::MakeRoomForProcess(const Newcomer& newcomer) {
  while (placed_.size() >= most_.processes) {
    const auto makes_room = room_.MakesRoomForProcess(newcomer.owner, newcomer.is_alive);
    if (!makes_room.has_value()) {
      shared_->CountOverShare(Dropped::kProcesses, newcomer.owner);
      return false;
    }
    MakeRoom(*makes_room, Dropped::kProcesses);
  }
  return true;
}

// Forgets the job, and counts it if it was alive: its owner has more than others.
void ProcessPlaces::MakeRoom(const JobKey& key, Dropped what) {
  if (room_.IsAlive(key)) shared_->CountOverShare(what, room_.OwnerOf(key).value_or(Owner()));
  ForgetAttempt(key);
  if (jobs_->KeysOf(key).empty()) attempts_.Erase(key);
}

// Forgets attempts of the job but for this number. `newest` has no process yet.
void ProcessPlaces::Evict(const JobKey& newest, size_t attempts) {
  std::vector<JobKey> keys = jobs_->KeysOf(newest);
  while (keys.size() > attempts) {
    std::vector<HeldAttempt> held;
    for (const JobKey& key : keys) {
      held.push_back({key.attempt, room_.OwnerOf(key).value_or(Owner()).user,
                      room_.IsAlive(key) || key == newest});
    }
    shared_->Count(Dropped::kAttempts);
    ForgetAttempt(JobKey(newest, MakesRoom(held)));
    keys = jobs_->KeysOf(newest);
  }
}

bool ProcessPlaces::Forget(const JobKey& key) {
  const MutexLock lock(mutex_);
  if (!attempts_.Has(key)) return true;
  if (jobs_->IsInUse(key)) return false;
  ForgetAttempt(key);
  if (ownership_ != nullptr && !ownership_->Owns(key)) attempts_.KeepStored(key);
  if (jobs_->KeysOf(key).empty()) attempts_.Erase(key);
  return true;
}

void ProcessPlaces::ForgetAttempt(const JobKey& key) {
  if (!jobs_->Remove(key)) return;
  const auto processes = of_job_.extract(key);
  if (!processes.empty()) {
    for (const ProcessKey& process : processes.mapped()) placed_.erase(process);
  }
  attempts_.Forget(key);
  room_.RemoveJob(key);
  ++shared_->changes;
}

std::set<std::string> ProcessPlaces::Hosts() const {
  const MutexLock lock(mutex_);
  std::set<std::string> hosts;
  for (const auto& [process, placed] : placed_) hosts.insert(process.host);
  return hosts;
}

void ProcessPlaces::AddAgentsOf(const JobId& name, std::set<std::string>* ids) const {
  const MutexLock lock(mutex_);
  for (const JobKey& key : jobs_->KeysOf(name)) {
    const auto processes = of_job_.find(key);
    if (processes == of_job_.end()) continue;
    for (const ProcessKey& process : processes->second) {
      const auto at = placed_.find(process);
      if (at != placed_.end() && at->second.agent != nullptr) {
        ids->insert(AgentBook::Name(at->second.agent).id);
      }
    }
  }
}

}  // namespace rollcall
