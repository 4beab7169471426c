#include "daemon/server/job_store.h"

#include <algorithm>

#include "daemon/model/shapes.h"
#include "interpose/segment.h"
#include "rollcall/v1/agent.pb.h"

namespace rollcall {
namespace {

MemberState ToMemberState(uint32_t state) {
  switch (static_cast<segment::CommState>(state)) {
    case segment::CommState::kInitializing:
      return MemberState::kInitializing;
    case segment::CommState::kFinalizing:
      return MemberState::kFinalizing;
    case segment::CommState::kFinalized:
      return MemberState::kFinalized;
    case segment::CommState::kDestroyed:
      return MemberState::kDestroyed;
    case segment::CommState::kAborted:
      return MemberState::kAborted;
    case segment::CommState::kRevoked:
      return MemberState::kRevoked;
    case segment::CommState::kFailed:
      return MemberState::kFailed;
    default:
      return MemberState::kReady;
  }
}

Liveness ToLiveness(v1::Evidence::Liveness liveness) {
  switch (liveness) {
    case v1::Evidence::ALIVE:
      return Liveness::kAlive;
    case v1::Evidence::EXITED:
      return Liveness::kExited;
    case v1::Evidence::DIED:
      return Liveness::kDied;
    case v1::Evidence::ENDED:
      return Liveness::kEnded;
    default:
      return Liveness::kUnknown;
  }
}

// Brings a host's time onto ours; 0 means "never" on both.
int64_t Shift(int64_t time_ns, int64_t offset_ns) { return time_ns == 0 ? 0 : time_ns + offset_ns; }

ProcessIdentity ToIdentity(const v1::Identity& identity) {
  return {identity.host(),    identity.global_rank(), identity.world_size(), identity.local_rank(),
          identity.command(), identity.has_segment(), identity.gpu_sharing()};
}

ProcessEvidence ToEvidence(const v1::Evidence& update, int64_t offset_ns) {
  ProcessEvidence evidence;
  evidence.liveness = ToLiveness(update.liveness());
  evidence.ended_ns = Shift(update.ended_ns(), offset_ns);
  evidence.exit_code = update.exit_code();
  evidence.exit_signal = update.exit_signal();
  // Older agents have no word for an end of which they know no more.
  if (evidence.liveness == Liveness::kDied && evidence.exit_code < 0 && evidence.exit_signal == 0) {
    evidence.liveness = Liveness::kEnded;
  }
  evidence.error = update.error();
  evidence.error_ns = Shift(update.error_ns(), offset_ns);
  evidence.step = update.has_step() ? update.step() : -1;
  evidence.phase = update.phase();
  evidence.state = update.state().empty() ? '?' : update.state()[0];
  evidence.cpu_moving = update.cpu_moving();
  evidence.traced = update.traced();
  evidence.wait_channel = update.wait_channel();
  evidence.cpu_seconds = update.cpu_seconds();
  evidence.memory_bytes = update.memory_bytes();
  for (const v1::BlockedCall& call : update.blocked()) {
    evidence.blocked.push_back({static_cast<uint32_t>(call.thread()), static_cast<Op>(call.op()),
                                call.communicator(), Shift(call.since_ns(), offset_ns)});
  }
  return evidence;
}

// The number of rows that all columns have.
int Rows(const v1::RecordBatch& batch) {
  return std::min({batch.position_size(), batch.op_size(), batch.dtype_size(),
                   batch.reduction_size(), batch.peer_size(), batch.count_size(),
                   batch.entered_delta_ns_size(), batch.duration_ns_size(), batch.stream_size(),
                   batch.caller_size(), batch.thread_size(), batch.group_size(),
                   batch.result_size(), batch.flags_size()});
}

CallRecord ToRecord(const v1::RecordBatch& batch, int i, int64_t entered_ns) {
  CallRecord record;
  record.index = batch.first_index() + static_cast<uint64_t>(i);
  record.position = batch.position(i);
  record.args = {static_cast<Op>(batch.op(i)), static_cast<uint8_t>(batch.dtype(i)),
                 static_cast<uint8_t>(batch.reduction(i)), batch.peer(i), batch.count(i)};
  record.entered_ns = entered_ns;
  record.returned_ns = batch.duration_ns(i) < 0 ? 0 : entered_ns + batch.duration_ns(i);
  record.stream = batch.stream(i);
  record.caller = batch.caller(i);
  record.thread = batch.thread(i);
  if (i < batch.shape_size()) record.args.shape = InternShape(batch.shape(i));
  if (i < batch.site_size() && batch.site(i) <= segment::kSiteCapacity) {
    record.site = static_cast<uint16_t>(batch.site(i));
  }
  record.group = static_cast<uint16_t>(batch.group(i));
  record.result = static_cast<uint8_t>(batch.result(i));
  record.captured = (batch.flags(i) & segment::kRecordCaptured) != 0;
  record.replayed = (batch.flags(i) & segment::kRecordReplayed) != 0;
  return record;
}

std::vector<CallRecord> ToRecords(const v1::RecordBatch& batch, int64_t offset_ns) {
  std::vector<CallRecord> records;
  int64_t entered_ns = offset_ns;
  const int rows = Rows(batch);
  records.reserve(static_cast<size_t>(rows));
  for (int i = 0; i < rows; ++i) {
    entered_ns += batch.entered_delta_ns(i);
    records.push_back(ToRecord(batch, i, entered_ns));
  }
  return records;
}

CommProgress ToProgress(const v1::CommUpdate& update, int64_t offset_ns) {
  CommProgress progress;
  progress.index = update.index();
  progress.id = update.id();
  progress.parent = update.parent();
  progress.name = update.name();
  progress.rank = update.rank();
  progress.size = update.size();
  progress.device = update.device();
  progress.split_pending = update.split_pending();
  progress.state = ToMemberState(update.state());
  progress.init_entered_ns = Shift(update.init_entered_ns(), offset_ns);
  progress.state_since_ns = Shift(update.state_since_ns(), offset_ns);
  progress.async_error = update.async_error();
  progress.entered = update.entered();
  progress.returned = update.returned();
  progress.has_markers = update.has_markers();
  progress.started = update.started();
  progress.finished = update.finished();
  progress.awaited = update.awaited();
  progress.p2p_entered = update.p2p_entered();
  progress.p2p_returned = update.p2p_returned();
  progress.p2p_started = update.p2p_started();
  progress.p2p_finished = update.p2p_finished();
  progress.waiting_since_ns = Shift(update.waiting_since_ns(), offset_ns);
  progress.host_blocked_since_ns = Shift(update.host_blocked_since_ns(), offset_ns);
  progress.host_waits_since_ns = Shift(update.host_waits_since_ns(), offset_ns);
  progress.p2p_waiting_since_ns = Shift(update.p2p_waiting_since_ns(), offset_ns);
  progress.signature = update.signature();
  progress.records_lost = update.records_lost();
  const int checkpoints =
      std::min(update.checkpoint_positions_size(), update.checkpoint_signatures_size());
  for (int i = 0; i < checkpoints; ++i) {
    progress.checkpoints.push_back(
        {update.checkpoint_positions(i), update.checkpoint_signatures(i)});
  }
  progress.has_graph_markers = update.has_graph_markers();
  for (const v1::GraphLaunch& launch : update.graph_launches()) {
    progress.graph_launches.push_back(
        {launch.graph(), launch.launch(), launch.first_record(), launch.records()});
  }
  for (const v1::GrownId& grown : update.grown()) {
    progress.grown.push_back({grown.unique_id(), grown.id()});
  }
  progress.records = ToRecords(update.records(), offset_ns);
  return progress;
}

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

std::shared_ptr<JobStore::Agent> JobStore::AgentOf(const AgentName& name) {
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
  ++AgentOf(name)->streams;
}

std::vector<std::string> JobStore::Gone(const AgentName& name) {
  const absl::MutexLock lock(&heard_mutex_);
  const std::shared_ptr<Agent> gone = AgentOf(name);
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
  return clocks_.Note(agent->name.id, made_ns, came_ns);
}

bool JobStore::Apply(const AgentName& name, const v1::Tick& tick, int64_t came_ns) {
  Origin origin;
  origin.now_ns = tick.now_ns();
  if (came_ns != 0) {
    const absl::MutexLock lock(&heard_mutex_);
    origin.agent = AgentOf(name);
    origin.offset_ns = Hear(tick.now_ns(), came_ns, origin.agent.get());
    origin.now_ns += origin.offset_ns;
  }
  bool refused = false;
  for (const v1::ProcessUpdate& update : tick.processes()) {
    const ProcessKey key = {name.host, update.pid(), update.start_time()};
    const std::shared_ptr<Job> job = JobOf(key, origin.agent, update, &refused);
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
std::shared_ptr<JobStore::Job> JobStore::JobOf(const ProcessKey& key,
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

std::vector<std::string> JobStore::NoteTime(int64_t now_ns, int64_t silent_after_ns) {
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

void JobStore::NoteHeard(const std::string& job, int64_t counts_from_ns) {
  const std::shared_ptr<Job> known = Find(job);
  if (known == nullptr) return;
  const absl::MutexLock lock(&known->mutex);
  known->model.CountFrom(counts_from_ns);
  const absl::MutexLock heard_lock(&heard_mutex_);
  for (size_t i = 0; i < known->agents.size(); ++i) {
    known->model.NoteAgent(static_cast<int32_t>(i), known->agents[i]->heard);
  }
}

void JobStore::SetAgent(int32_t process, const std::shared_ptr<Agent>& agent, Job* job) {
  const int32_t index = job->model.AddAgent(agent->name.id, agent->name.host);
  const auto at = static_cast<size_t>(index);
  if (at == job->agents.size()) job->agents.emplace_back();
  if (job->agents[at] != agent) {
    job->agents[at] = agent;
    const absl::MutexLock lock(&heard_mutex_);
    job->model.NoteAgent(index, agent->heard);
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
