#include "daemon/job_store.h"

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

}  // namespace

void JobStore::Apply(const std::string& host, const v1::Tick& tick, int64_t came_ns) {
  int64_t offset_ns = 0;
  if (came_ns != 0) {
    const absl::MutexLock lock(&mutex_);
    offset_ns = clocks_.Note(host, tick.now_ns(), came_ns);
  }
  for (const v1::ProcessUpdate& update : tick.processes()) {
    const ProcessKey key = {host, update.pid(), update.start_time()};
    const std::shared_ptr<Job> job = JobOf(key, update);
    // Without one its identity will come with the next whole tick.
    if (job != nullptr) ApplyProcess(key, update, tick.now_ns() + offset_ns, offset_ns, job.get());
  }
}

std::shared_ptr<JobStore::Job> JobStore::JobOf(const ProcessKey& key,
                                               const v1::ProcessUpdate& update) {
  const absl::MutexLock lock(&mutex_);
  if (update.has_identity()) {
    const std::string& named = update.identity().job();
    job_of_.emplace(key, named.empty() ? default_job_ : named);
  }
  const auto known = job_of_.find(key);
  if (known == job_of_.end()) return nullptr;
  std::shared_ptr<Job>& job = jobs_[known->second];
  if (job == nullptr) job = std::make_shared<Job>(known->second);
  return job;
}

void JobStore::ApplyProcess(const ProcessKey& key, const v1::ProcessUpdate& update, int64_t now_ns,
                            int64_t offset_ns, Job* job) {
  const absl::MutexLock lock(&job->mutex);
  const int32_t process = job->model.AddProcess(key.host, key.pid, key.start_time);
  job->processes[key.host].insert(process);
  if (update.has_identity()) job->model.SetIdentity(process, ToIdentity(update.identity()));
  if (update.has_evidence()) {
    job->model.SetEvidence(process, ToEvidence(update.evidence(), offset_ns));
  }
  if (!update.sites().empty()) {
    job->model.AddSites(process, update.first_site(),
                        {update.sites().begin(), update.sites().end()});
  }
  for (const v1::CommUpdate& comm : update.communicators()) {
    job->model.SetProgress(process, ToProgress(comm, offset_ns), now_ns);
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
  for (auto at = job_of_.begin(); at != job_of_.end();) {
    at = at->second == job ? job_of_.erase(at) : std::next(at);
  }
}

}  // namespace rollcall
