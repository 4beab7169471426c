// SPDX-License-Identifier: Apache-2.0
#include "daemon/jobs/tick_facts.h"

#include <algorithm>
#include <limits>
#include <tuple>

#include "daemon/model/progress.h"
#include "interpose/segment.h"
#include "interpose/segment_messages.h"
#include "rollcall/v1/agent.pb.h"

namespace rollcall {
namespace {

// 73 years: later than any clock of a host. Two such times and their difference from the daemon's
// clock still fit into 63 bits.
constexpr int64_t kLatestNs = int64_t{1} << 61;
constexpr uint32_t kInProgress = 7;  // ncclInProgress: no error

uint8_t ToError(uint32_t async_error) {
  if (async_error == kInProgress) return 0;
  return static_cast<uint8_t>(std::min<uint32_t>(async_error, UINT8_MAX));
}

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

int64_t Clamp(int64_t time_ns) { return std::clamp<int64_t>(time_ns, 0, kLatestNs); }

void CountNumber(DroppedCounts* dropped) {
  if (dropped != nullptr) ++(*dropped)[static_cast<size_t>(Dropped::kNumbers)];
}

double KnownCpuSeconds(double seconds, DroppedCounts* dropped) {
  if (seconds >= 0 && seconds <= limits::kCpuSecondsOfProcess) return seconds;  // false for NaN
  CountNumber(dropped);
  return 0;
}

uint64_t KnownMemory(uint64_t bytes, DroppedCounts* dropped) {
  if (bytes <= limits::kMemoryOfProcess) return bytes;
  CountNumber(dropped);
  return 0;
}

// The number of values beyond the limit, which it counts.
int Excess(int size, size_t most, Dropped what, DroppedCounts* dropped) {
  const int excess = std::max(size - static_cast<int>(most), 0);
  if (dropped != nullptr) (*dropped)[static_cast<size_t>(what)] += static_cast<uint64_t>(excess);
  return excess;
}

static_assert(limits::kRecordsOfUpdate >= segment::kRingCapacity, "an agent reads whole rings");
static_assert(limits::kCheckpointsOfUpdate >= segment::kCheckpointCapacity);

void ClampTimes(v1::RecordBatch* batch) {
  int64_t entered_ns = 0;
  for (int i = 0; i < batch->entered_delta_ns_size(); ++i) {
    const int64_t delta_ns =
        std::clamp(batch->entered_delta_ns(i), -entered_ns, kLatestNs - entered_ns);
    batch->set_entered_delta_ns(i, delta_ns);
    entered_ns += delta_ns;
    if (i >= batch->duration_ns_size()) continue;
    batch->set_duration_ns(i,
                           std::clamp<int64_t>(batch->duration_ns(i), -1, kLatestNs - entered_ns));
  }
}

// A time-out of days means that the program wants none.
bool WaitsForever(uint64_t timeout_ms) {
  constexpr uint64_t kDayMs = 24 * 3600 * 1000;
  const bool is_known = timeout_ms != segment::kUnknownTimeout;
  return is_known && (timeout_ms == 0 || timeout_ms >= kDayMs);
}

void ClampTimes(v1::Evidence* evidence) {
  evidence->set_ended_ns(Clamp(evidence->ended_ns()));
  evidence->set_ended_after_ns(Clamp(evidence->ended_after_ns()));
  evidence->set_error_ns(Clamp(evidence->error_ns()));
  if (evidence->has_thread_failure()) {
    v1::ThreadFailure* failure = evidence->mutable_thread_failure();
    failure->set_failed_ns(Clamp(failure->failed_ns()));
  }
  for (v1::BlockedCall& call : *evidence->mutable_blocked()) {
    call.set_since_ns(Clamp(call.since_ns()));
  }
}

void ClampTimes(v1::CommUpdate* update) {
#define COMM_TIME(name) update->set_##name##_ns(Clamp(update->name##_ns()));
#define COMM_WAIT(name) update->set_##name##_ns(Clamp(update->name##_ns()));
#include "proto/facts.def"
  if (update->has_records()) ClampTimes(update->mutable_records());
}

}  // namespace

void ClampTimes(v1::Tick* tick) {
  tick->set_now_ns(Clamp(tick->now_ns()));
  for (v1::ProcessUpdate& process : *tick->mutable_processes()) {
    if (process.has_identity()) {
      v1::Identity* identity = process.mutable_identity();
      identity->set_started_ns(Clamp(identity->started_ns()));
      identity->set_booted_ns(Clamp(identity->booted_ns()));
    }
    if (process.has_evidence()) ClampTimes(process.mutable_evidence());
    for (v1::CommUpdate& comm : *process.mutable_communicators()) ClampTimes(&comm);
  }
}

int32_t KnownRank(int32_t rank, int32_t unknown, DroppedCounts* dropped) {
  if (rank <= kMaxRanks) return rank;
  CountNumber(dropped);
  return unknown;
}

ProcessIdentity ToIdentity(const v1::Identity& update, DroppedCounts* dropped) {
  ProcessIdentity identity;
  identity.host = update.host();
  identity.global_rank = KnownRank(update.global_rank(), -1, dropped);
  identity.world_size = KnownRank(update.world_size(), -1, dropped);
  identity.local_rank = KnownRank(update.local_rank(), -1, dropped);
  identity.has_segment = update.has_segment();
  identity.inner_pid = update.inner_pid();
  identity.uid = update.has_uid() ? update.uid() : -1;
  identity.stacks_off = update.stacks_off();
#define PROCESS_TEXT(name) identity.name = update.name();
#define PROCESS_PLACE(name) identity.name = update.name();
#define PROCESS_DETAIL(name) identity.name = update.name();
#include "proto/facts.def"
  return identity;
}

ProcessEvidence ToEvidence(const v1::Evidence& update, const AgentTimes& times,
                           DroppedCounts* dropped) {
  ProcessEvidence evidence;
  evidence.liveness = ToLiveness(update.liveness());
  evidence.ended_ns = times.OnDaemonClock(update.ended_ns(), dropped);
  evidence.ended_after_ns = times.OnDaemonClock(update.ended_after_ns(), dropped);
  evidence.exit_code = update.exit_code();
  evidence.exit_signal = update.exit_signal();
  // Older agents report an end with unknown status as DIED.
  if (evidence.liveness == Liveness::kDied && evidence.exit_code < 0 && evidence.exit_signal == 0) {
    evidence.liveness = Liveness::kEnded;
  }
  evidence.error = update.error();
  evidence.error_ns = times.OnDaemonClock(update.error_ns(), dropped);
  const v1::ThreadFailure& failure = update.thread_failure();
  evidence.thread_failure = {failure.thread(), failure.error(),
                             times.OnDaemonClock(failure.failed_ns(), dropped)};
  evidence.step = update.has_step() ? update.step() : -1;
  evidence.phase = update.phase();
  evidence.state = update.state().empty() ? '?' : update.state()[0];
  evidence.cpu_moving = update.cpu_moving();
  evidence.traced = update.traced();
  evidence.wait_channel = update.wait_channel();
  evidence.cpu_seconds = KnownCpuSeconds(update.cpu_seconds(), dropped);
  evidence.memory_bytes = KnownMemory(update.memory_bytes(), dropped);
#define PROCESS_NUMBER(type, name) evidence.name = update.name();
#define PROCESS_COUNT(name) evidence.name = update.name();
#include "proto/facts.def"
  const int blocked = update.blocked_size() - Excess(update.blocked_size(), limits::kBlockedCalls,
                                                     Dropped::kBlockedCalls, dropped);
  size_t keys = 0;
  for (int i = 0; i < blocked; ++i) {
    const v1::BlockedCall& call = update.blocked(i);
    evidence.blocked.push_back({static_cast<uint32_t>(call.thread()), static_cast<Op>(call.op()),
                                call.communicator(), times.OnDaemonClock(call.since_ns(), dropped),
                                call.has_rank() ? call.rank() : -1});
    if (call.key().empty() || keys == limits::kAwaitedKeys) continue;
    ++keys;
    BlockedCall& wait = evidence.blocked.back();
    wait.key = call.key();
    wait.keys = call.keys();
    wait.key_waits_forever = WaitsForever(call.key_timeout_ms());
  }
  for (const v1::CallingThread& caller : update.callers()) {
    if (evidence.callers.size() == limits::kCallers) break;
    evidence.callers.push_back(
        {caller.thread(), static_cast<uint32_t>(std::max(caller.tid(), 0)), caller.name()});
  }
  return evidence;
}

namespace {

// Returns the number of complete rows. A column with one value has it in all rows; facts that an
// older agent does not send are 0 in all rows.
int Rows(const v1::RecordBatch& batch) {
  int rows = std::numeric_limits<int>::max();
#define RECORD_EACH(name) rows = std::min(rows, batch.name##_size());
#define RECORD_COLUMN(type, name) \
  if (batch.name##_size() != 1) rows = std::min(rows, batch.name##_size());
#define RECORD_FACT(type, name) \
  if (batch.name##_size() > 1) rows = std::min(rows, batch.name##_size());
#include "proto/record_columns.def"
  return rows;
}

template <typename Column>
auto At(const Column& column, int row) {
  return column.Get(column.size() == 1 ? 0 : row);
}

// `entered_ns`: on the agent's clock.
CallRecord ToRecord(const v1::RecordBatch& batch, int i, int64_t entered_ns,
                    const AgentTimes& times, ShapeShare* shapes, DroppedCounts* dropped) {
  CallRecord record;
  record.index = batch.first_index() + static_cast<uint64_t>(i);
  record.position = batch.position(i);
#define RECORD_ARGUMENT(model, type, name, none) \
  record.args.name = static_cast<model>(At(batch.name(), i));
#define RECORD_FACT(type, name) \
  if (batch.name##_size() > 0) record.name = static_cast<type>(At(batch.name(), i));
#include "proto/record_columns.def"
  record.entered_ns = times.OnDaemonClock(entered_ns, dropped);
  record.shift_ns = times.shift_ns();
  record.returned_ns = batch.duration_ns(i) < 0
                           ? 0
                           : times.OnDaemonClock(entered_ns + batch.duration_ns(i), dropped);
  if (i < batch.shape_size()) record.args.shape = InternShape(batch.shape(i), shapes);
  if (i < batch.site_size() && batch.site(i) <= segment::kSiteCapacity) {
    record.site = static_cast<uint16_t>(batch.site(i));
  }
  record.captured = (At(batch.flags(), i) & segment::kRecordCaptured) != 0;
  record.replayed = (At(batch.flags(), i) & segment::kRecordReplayed) != 0;
  return record;
}

// The newest rows that a ring can hold.
std::vector<CallRecord> ToRecords(const v1::RecordBatch& batch, const AgentTimes& times,
                                  ShapeShare* shapes, DroppedCounts* dropped) {
  std::vector<CallRecord> records;
  int64_t entered_ns = 0;
  const int rows = Rows(batch);
  const int first = Excess(rows, limits::kRecordsOfUpdate, Dropped::kRecords, dropped);
  records.reserve(static_cast<size_t>(rows - first));
  for (int i = 0; i < rows; ++i) {
    entered_ns += batch.entered_delta_ns(i);  // a time counts from that of the row before
    if (i >= first) records.push_back(ToRecord(batch, i, entered_ns, times, shapes, dropped));
  }
  return records;
}

std::vector<Checkpoint> ToCheckpoints(const v1::CommUpdate& update, DroppedCounts* dropped) {
  std::vector<Checkpoint> checkpoints;
  const int size =
      std::min(update.checkpoint_positions_size(), update.checkpoint_signatures_size());
  const int first = Excess(size, limits::kCheckpointsOfUpdate, Dropped::kRecords, dropped);
  for (int i = first; i < size; ++i) {
    checkpoints.push_back({update.checkpoint_positions(i), update.checkpoint_signatures(i)});
  }
  return checkpoints;
}

std::vector<GraphLaunch> ToGraphLaunches(const v1::CommUpdate& update, DroppedCounts* dropped) {
  std::vector<GraphLaunch> launches;
  const int size = update.graph_launches_size();
  const int first = Excess(size, limits::kGraphLaunches, Dropped::kGraphLaunches, dropped);
  for (int i = first; i < size; ++i) {
    const v1::GraphLaunch& launch = update.graph_launches(i);
    launches.push_back({launch.graph(), launch.launch(), launch.first_record(), launch.records()});
  }
  return launches;
}

bool CanBe(const PeerMessages& with) {
  return with.peer >= segment::kAnySource && with.tag >= segment::kMixedTags;
}

// By peer and tag, each once, as the queries to them need it.
void PutInOrder(std::vector<PeerMessages>* all) {
  all->erase(std::remove_if(all->begin(), all->end(),
                            [](const PeerMessages& with) { return !CanBe(with); }),
             all->end());
  const auto key = [](const PeerMessages& with) { return std::tie(with.peer, with.tag); };
  std::stable_sort(all->begin(), all->end(), [&key](const PeerMessages& a, const PeerMessages& b) {
    return key(a) < key(b);
  });
  all->erase(std::unique(
                 all->begin(), all->end(),
                 [&key](const PeerMessages& a, const PeerMessages& b) { return key(a) == key(b); }),
             all->end());
}

std::shared_ptr<const MessageCounts> ToMessages(const v1::CommUpdate& update,
                                                DroppedCounts* dropped) {
  if (!update.has_messages()) return nullptr;
  const v1::MessageCounts& sent = update.messages();
  auto counts = std::make_shared<MessageCounts>();
  const int size =
      std::min({sent.peer_size(), sent.tag_size(), sent.sends_size(), sent.receives_size(),
                sent.sends_awaited_size(), sent.receives_awaited_size()});
  const int first = Excess(size, limits::kPeersOfUpdate, Dropped::kPeers, dropped);
  for (int i = first; i < size; ++i) {
    counts->by_peer.push_back({sent.peer(i), sent.tag(i), sent.sends(i), sent.receives(i),
                               sent.sends_awaited(i), sent.receives_awaited(i)});
  }
  PutInOrder(&counts->by_peer);
  const auto kept = static_cast<int>(counts->by_peer.size());
  if (kept < size - first) CountNumber(dropped);
  counts->lost = sent.lost() || kept < size;
  counts->cancelled = sent.cancelled();
  return counts;
}

std::vector<GrownId> ToGrownIds(const v1::CommUpdate& update, DroppedCounts* dropped) {
  std::vector<GrownId> ids;
  const int size = update.grown_size();
  const int first = Excess(size, limits::kGrownIdsOfUpdate, Dropped::kIds, dropped);
  for (int i = first; i < size; ++i) {
    ids.push_back({update.grown(i).unique_id(), update.grown(i).id()});
  }
  return ids;
}

}  // namespace

std::vector<std::string> ToSites(const v1::ProcessUpdate& update, DroppedCounts* dropped) {
  const int size =
      update.sites_size() - Excess(update.sites_size(), limits::kSites, Dropped::kSites, dropped);
  return {update.sites().begin(), update.sites().begin() + size};
}

CommProgress ToProgress(const v1::CommUpdate& update, const AgentTimes& times, ShapeShare* shapes,
                        DroppedCounts* dropped) {
  CommProgress progress;
#define COMM_COUNT(type, name) progress.name = static_cast<type>(update.name());
#define COMM_SEEN(type, name) progress.name = static_cast<type>(update.name());
#define COMM_TIME(name) progress.name##_ns = times.OnDaemonClock(update.name##_ns(), dropped);
#define COMM_WAIT(name) progress.name##_ns = times.OnDaemonClock(update.name##_ns(), dropped);
#include "proto/facts.def"
  progress.index = update.index();
  progress.id = update.id();
  progress.parent = update.parent();
  progress.name = update.name();
  progress.kind = ToCommKind(update.kind());
  progress.rank = update.rank();
  progress.size = KnownRank(update.size(), 0, dropped);
  progress.device = update.device();
  progress.split_pending = update.split_pending();
  progress.state = ToMemberState(update.state());
  progress.async_error = ToError(update.async_error());
  progress.has_markers = update.has_markers();
  progress.records_lost =
      static_cast<uint32_t>(std::min<uint64_t>(update.records_lost(), UINT32_MAX));
  progress.checkpoints = ToCheckpoints(update, dropped);
  progress.has_graph_markers = update.has_graph_markers();
  progress.graph_launches = ToGraphLaunches(update, dropped);
  progress.messages = ToMessages(update, dropped);
  progress.grown = ToGrownIds(update, dropped);
  progress.records = ToRecords(update.records(), times, shapes, dropped);
  return progress;
}

}  // namespace rollcall
