#include "daemon/job_store.h"

#include <algorithm>

#include "interpose/segment.h"
#include "rollcall/v1/agent.pb.h"

namespace rollcall {
namespace {

constexpr size_t kRecordsKept = 1024;     // a member
constexpr size_t kCheckpointsKept = 256;  // a member

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

void ApplyIdentity(const v1::Identity& identity, Process* process) {
  process->global_rank = identity.global_rank();
  process->world_size = identity.world_size();
  process->local_rank = identity.local_rank();
  process->command = identity.command();
  process->has_segment = identity.has_segment();
  if (!identity.host().empty()) process->host = identity.host();
}

void ApplyEvidence(const v1::Evidence& evidence, Process* process) {
  process->liveness = ToLiveness(evidence.liveness());
  process->ended_ns = evidence.ended_ns();
  process->exit_code = evidence.exit_code();
  process->exit_signal = evidence.exit_signal();
  process->state = evidence.state().empty() ? '?' : evidence.state()[0];
  process->cpu_moving = evidence.cpu_moving();
  process->traced = evidence.traced();
  process->wait_channel = evidence.wait_channel();
  process->blocked.clear();
  for (const v1::BlockedCall& call : evidence.blocked()) {
    process->blocked.push_back({static_cast<uint32_t>(call.thread()), static_cast<Op>(call.op()),
                                call.communicator(), call.since_ns()});
  }
}

void ApplyProgress(const v1::CommUpdate& update, Member* member) {
  member->device = update.device();
  member->state = ToMemberState(update.state());
  member->init_entered_ns = update.init_entered_ns();
  member->state_since_ns = update.state_since_ns();
  member->async_error = static_cast<int32_t>(update.async_error());
  member->entered = update.entered();
  member->returned = update.returned();
  member->has_markers = update.has_markers();
  member->started = update.started();
  member->finished = update.finished();
  member->p2p_entered = update.p2p_entered();
  member->p2p_returned = update.p2p_returned();
  member->p2p_started = update.p2p_started();
  member->p2p_finished = update.p2p_finished();
  member->waiting_since_ns = update.waiting_since_ns();
  member->host_blocked_since_ns = update.host_blocked_since_ns();
  member->host_waits_since_ns = update.host_waits_since_ns();
  member->signature = update.signature();
  member->records_lost = update.records_lost();
  const int checkpoints =
      std::min(update.checkpoint_positions_size(), update.checkpoint_signatures_size());
  for (int i = 0; i < checkpoints; ++i) {
    member->checkpoints[update.checkpoint_positions(i)] = update.checkpoint_signatures(i);
  }
  while (member->checkpoints.size() > kCheckpointsKept) {
    member->checkpoints.erase(member->checkpoints.begin());
  }
}

// The number of rows that all columns have.
int Rows(const v1::RecordBatch& batch) {
  return std::min({batch.position_size(), batch.op_size(), batch.dtype_size(),
                   batch.reduction_size(), batch.peer_size(), batch.count_size(),
                   batch.entered_delta_ns_size(), batch.duration_ns_size(), batch.stream_size(),
                   batch.caller_size(), batch.thread_size(), batch.group_size(),
                   batch.result_size(), batch.flags_size()});
}

CallRecord Row(const v1::RecordBatch& batch, int i, int64_t entered_ns) {
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
  record.group = static_cast<uint16_t>(batch.group(i));
  record.result = static_cast<uint8_t>(batch.result(i));
  record.captured = (batch.flags(i) & segment::kRecordCaptured) != 0;
  return record;
}

void Insert(CallRecord record, std::deque<CallRecord>* records) {
  if (records->empty() || records->back().index < record.index) {
    records->push_back(record);
    return;
  }
  const auto at =
      std::lower_bound(records->begin(), records->end(), record,
                       [](const CallRecord& a, const CallRecord& b) { return a.index < b.index; });
  if (at->index == record.index) {
    *at = record;
  } else {
    records->insert(at, record);
  }
}

void ApplyRecords(const v1::RecordBatch& batch, std::deque<CallRecord>* records) {
  int64_t entered_ns = 0;
  const int rows = Rows(batch);
  for (int i = 0; i < rows; ++i) {
    entered_ns += batch.entered_delta_ns(i);
    Insert(Row(batch, i, entered_ns), records);
  }
  while (records->size() > kRecordsKept) records->pop_front();
}

bool IsOver(MemberState state) {
  return state == MemberState::kDestroyed || state == MemberState::kAborted ||
         state == MemberState::kFailed;
}

}  // namespace

void JobStore::Apply(const std::string& host, const v1::Tick& tick) {
  const absl::MutexLock lock(&mutex_);
  for (const v1::ProcessUpdate& update : tick.processes()) ApplyProcess(host, update);
}

void JobStore::ApplyProcess(const std::string& host, const v1::ProcessUpdate& update) {
  const ProcessKey key = {host, update.pid(), update.start_time()};
  if (update.has_identity()) {
    const std::string& named = update.identity().job();
    job_of_.emplace(key, named.empty() ? default_job_ : named);
  }
  const auto known = job_of_.find(key);
  if (known == job_of_.end()) return;  // its identity will come with the next whole tick
  Job& job = jobs_[known->second];
  job.state.name = known->second;
  ++job.version;
  const auto [at, is_new] =
      job.processes.emplace(key, static_cast<int32_t>(job.state.processes.size()));
  if (is_new) {
    Process process;
    process.host = host;
    process.pid = key.pid;
    process.start_time = key.start_time;
    job.state.processes.push_back(process);
  }
  Process* process = &job.state.processes[static_cast<size_t>(at->second)];
  if (update.has_identity()) ApplyIdentity(update.identity(), process);
  if (update.has_evidence()) ApplyEvidence(update.evidence(), process);
  for (const v1::CommUpdate& comm : update.communicators()) ApplyComm(&job, at->second, comm);
}

void JobStore::ApplyComm(Job* job, int32_t process, const v1::CommUpdate& update) {
  if (update.rank() < 0 || update.id() == 0) return;
  const Seat seat = {update.id(), update.rank()};
  Seat& taken = job->seats[{process, update.index()}];
  if (taken.communicator != 0 &&
      (taken.communicator != seat.communicator || taken.rank != seat.rank)) {
    LeaveSeat(job, taken, process);
  }
  taken = seat;
  if (update.split_pending()) job->splits.insert(update.id());
  Communicator& comm = job->state.communicators[update.id()];
  comm.id = update.id();
  comm.parent = update.parent();
  if (!update.name().empty()) comm.name = update.name();
  if (comm.size == 0) comm.size = update.size();
  Member& member = comm.members[update.rank()];
  if (member.process != process) {
    member = Member();
    member.process = process;
    member.rank = update.rank();
  }
  ApplyProgress(update, &member);
  ApplyRecords(update.records(), &member.records);
  DropIfOver(job, update.id());
}

// The block's owner has gone from a split to the child that the split made.
void JobStore::LeaveSeat(Job* job, const Seat& seat, int32_t process) {
  const auto comm = job->state.communicators.find(seat.communicator);
  if (comm == job->state.communicators.end()) return;
  const auto member = comm->second.members.find(seat.rank);
  if (member == comm->second.members.end() || member->second.process != process) return;
  // It did come: whoever is still inside the split must not miss it.
  if (member->second.state == MemberState::kInitializing) {
    member->second.state = MemberState::kReady;
  }
  DropIfOver(job, seat.communicator);
}

// A split that everybody has left, or a communicator that everybody has ended,
// can hang no more.
void JobStore::DropIfOver(Job* job, uint64_t communicator) {
  const auto at = job->state.communicators.find(communicator);
  if (at == job->state.communicators.end()) return;
  const bool split = job->splits.count(communicator) != 0;
  const auto& members = at->second.members;
  const bool all_here = static_cast<int32_t>(members.size()) >= at->second.size;
  const bool over = std::all_of(members.begin(), members.end(), [split](const auto& entry) {
    const MemberState state = entry.second.state;
    return split ? state != MemberState::kInitializing : IsOver(state);
  });
  if (!over || !(all_here || split)) return;
  job->state.communicators.erase(at);
  job->splits.erase(communicator);
}

void JobStore::SetSilent(const std::string& host) {
  const absl::MutexLock lock(&mutex_);
  for (auto& [name, job] : jobs_) {
    for (Process& process : job.state.processes) {
      const bool gone =
          process.liveness == Liveness::kExited || process.liveness == Liveness::kDied;
      if (process.host != host || gone) continue;
      process.liveness = Liveness::kSilent;
      ++job.version;
    }
  }
}

std::vector<std::string> JobStore::JobNames() const {
  const absl::MutexLock lock(&mutex_);
  std::vector<std::string> names;
  for (const auto& [name, job] : jobs_) names.push_back(name);
  return names;
}

JobState JobStore::Get(const std::string& job) const {
  const absl::MutexLock lock(&mutex_);
  const auto at = jobs_.find(job);
  return at == jobs_.end() ? JobState() : at->second.state;
}

uint64_t JobStore::Version(const std::string& job) const {
  const absl::MutexLock lock(&mutex_);
  const auto at = jobs_.find(job);
  return at == jobs_.end() ? 0 : at->second.version;
}

void JobStore::Forget(const std::string& job) {
  const absl::MutexLock lock(&mutex_);
  jobs_.erase(job);
  for (auto at = job_of_.begin(); at != job_of_.end();) {
    at = at->second == job ? job_of_.erase(at) : std::next(at);
  }
}

}  // namespace rollcall
