// SPDX-License-Identifier: Apache-2.0
#include "agent/collector/comm_update.h"

#include <algorithm>

#include "absl/types/span.h"
#include "base/durations.h"
#include "interpose/ops.h"

namespace rollcall {
namespace {

constexpr size_t kMaxEntered = 512;
constexpr int64_t kMessagesApartNs = kSecond;

// Returns the time at which the collective at `position` was entered; 0 if no longer recorded.
int64_t FindEnteredNs(const CommHistory& history, uint64_t position) {
  const auto at = std::lower_bound(
      history.entered.begin(), history.entered.end(), position,
      [](const std::pair<uint64_t, int64_t>& entry, uint64_t p) { return entry.first < p; });
  return at != history.entered.end() && at->first == position ? at->second : 0;
}

void RecordEntered(const CommSnapshot& comm, CommHistory* history) {
  for (const RecordSnapshot& record : comm.records) {
    constexpr int kNoPosition = segment::kRecordP2p | segment::kRecordCaptured;
    if ((record.flags & kNoPosition) != 0) continue;
    // NCCL refused the earlier call at this position, so the next call reuses the position.
    while (!history->entered.empty() && history->entered.back().first >= record.position) {
      history->entered.pop_back();
    }
    history->entered.emplace_back(record.position, record.entered_ns);
  }
  while (history->entered.size() > kMaxEntered) history->entered.pop_front();
}

// Since when the first unfinished collective could have finished.
int64_t OpenSince(const CommSnapshot& comm, const CommHistory& history) {
  const int64_t entered = FindEnteredNs(history, comm.finished);
  return std::max(entered != 0 ? entered : comm.last_entered_ns, history.finished_changed_ns);
}

// Returns the start of the wait for the first collective that is not known to be finished; 0 if
// there is no wait. Calls in an open group have not started.
int64_t WaitingSince(const CommSnapshot& comm, const HostWaits& waits, const CommHistory& history) {
  if ((comm.flags & segment::kFlagHostCalls) != 0) {
    if (comm.entered <= comm.finished || waits.host_blocked_since_ns != 0) {
      return comm.entered > comm.finished ? waits.host_blocked_since_ns : 0;
    }
    // An open nonblocking call of MPI is not a wait while its host works on. Of gloo's calls the
    // library sees the end at once; of oneCCL's only when the program looks.
    return comm.kind == CommKind::kGloo ? OpenSince(comm, history) : 0;
  }
  const uint64_t begun = waits.host_blocked_since_ns != 0 ? comm.entered : comm.returned;
  if ((comm.flags & segment::kFlagMarkers) == 0) {
    return comm.entered > comm.returned ? waits.host_blocked_since_ns : 0;
  }
  return begun <= comm.finished ? 0 : OpenSince(comm, history);
}

// Returns the start of the wait in a send or receive: the time at which the host entered the call,
// or the first tick with a send or receive that the GPU has started and not finished; 0 if there is
// no wait.
int64_t P2pWaitingSince(const CommSnapshot& comm, const HostWaits& waits, int64_t now_ns,
                        CommHistory* history) {
  const bool open =
      (comm.flags & segment::kFlagMarkers) != 0 && comm.p2p_started > comm.p2p_finished;
  if (!open) {
    history->p2p_open_since_ns = 0;
  } else if (history->p2p_open_since_ns == 0 || comm.p2p_finished != history->p2p_finished) {
    history->p2p_open_since_ns = now_ns;
  }
  history->p2p_finished = comm.p2p_finished;
  if (waits.message_since_ns != 0) return waits.message_since_ns;
  if (waits.host_blocked_since_ns != 0 && comm.p2p_entered > comm.p2p_returned) {
    return waits.host_blocked_since_ns;
  }
  return history->p2p_open_since_ns;
}

v1::MessageCounts ToMessageCounts(const CommSnapshot& comm) {
  v1::MessageCounts counts;
  for (const MessagesSnapshot& messages : comm.messages) {
    counts.add_peer(messages.peer);
    counts.add_tag(messages.tag);
    counts.add_sends(messages.sends);
    counts.add_receives(messages.receives);
    counts.add_sends_awaited(messages.sends_awaited);
    counts.add_receives_awaited(messages.receives_awaited);
  }
  counts.set_lost(comm.messages_lost);
  counts.set_cancelled(comm.messages_cancelled);
  return counts;
}

// Counts that change with each tick are sent now and then: of a rank that goes on with some
// messages, others may wait for other ones.
void FillMessages(const CommSnapshot& comm, int64_t now_ns, CommHistory* history,
                  v1::CommUpdate* update) {
  if ((comm.flags & segment::kFlagMessages) == 0) return;
  const v1::MessageCounts counts = ToMessageCounts(comm);
  std::string now = counts.SerializeAsString();
  const bool is_due = now == history->messages || history->messages_sent.empty() ||
                      now_ns - history->messages_sent_ns >= kMessagesApartNs;
  history->messages = std::move(now);
  if (!is_due || history->messages == history->messages_sent) return;
  history->messages_sent = history->messages;
  history->messages_sent_ns = now_ns;
  *update->mutable_messages() = counts;
}

void AddGrown(uint64_t unique_id, uint64_t id, v1::CommUpdate* update) {
  if (unique_id == 0) return;
  v1::GrownId* added = update->add_grown();
  added->set_unique_id(unique_id);
  added->set_id(id);
}

// Without it each column would grow in many steps.
void ReserveColumns(int rows, v1::RecordBatch* batch) {
#define RECORD_COLUMN(type, name) batch->mutable_##name()->Reserve(rows);
#define RECORD_EACH(name) batch->mutable_##name()->Reserve(rows);
#include "proto/record_columns.def"
}

bool IsKnown(uint32_t site) { return site != 0; }
bool IsKnown(const std::string& shape) { return !shape.empty(); }

}  // namespace

namespace {

// Whether the process holds several ranks of the communicator, by a thread each.
bool HasSibling(const SegmentSnapshot& snapshot, const CommSnapshot& comm) {
  return std::any_of(snapshot.communicators.begin(), snapshot.communicators.end(),
                     [&comm](const CommSnapshot& other) {
                       return other.index != comm.index && other.id == comm.id && comm.id != 0;
                     });
}

// Whether the thread waits for messages of MPI: such a wait names no collective.
bool IsMessageWait(const CommSnapshot& comm, const BlockedSnapshot& blocked) {
  const CallKind kind = OpKind(static_cast<Op>(blocked.op));
  return (comm.flags & segment::kFlagMessages) != 0 && blocked.stream == 0 &&
         (kind == CallKind::kP2p || kind == CallKind::kHostWait || kind == CallKind::kTest);
}

}  // namespace

HostWaits FindHostWaits(const SegmentSnapshot& snapshot, const CommSnapshot& comm) {
  HostWaits waits;
  const bool has_sibling = HasSibling(snapshot, comm);
  const CommSnapshot* newest = nullptr;
  for (const CommSnapshot& other : snapshot.communicators) {
    // Calls of MPI and gloo run on the host, so a wait for the GPU is not a wait for them.
    if ((other.flags & segment::kFlagHostCalls) != 0) continue;
    if (other.last_entered_ns != 0 &&
        (newest == nullptr || other.last_entered_ns > newest->last_entered_ns)) {
      newest = &other;
    }
  }
  const auto earliest = [](int64_t a, int64_t b) { return a == 0 ? b : std::min(a, b); };
  const auto record_call = [&](const BlockedSnapshot& blocked) {
    if (blocked.comm != comm.index) return;
    if (IsMessageWait(comm, blocked)) {
      waits.message_since_ns = earliest(waits.message_since_ns, blocked.since_ns);
      return;
    }
    const bool first =
        waits.host_blocked_since_ns == 0 || blocked.since_ns < waits.host_blocked_since_ns;
    if (first) waits.awaited = (comm.flags & segment::kFlagHostCalls) != 0 ? blocked.stream : 0;
    waits.host_blocked_since_ns = earliest(waits.host_blocked_since_ns, blocked.since_ns);
  };
  for (const BlockedSnapshot& blocked : snapshot.blocked) {
    switch (OpKind(static_cast<Op>(blocked.op))) {
      case CallKind::kCollective:
      case CallKind::kP2p:
      case CallKind::kGroup:
      case CallKind::kHostWait:
      case CallKind::kTest:
        record_call(blocked);
        break;
      case CallKind::kWait:
        // A thread's wait is for the communicator of its last call.
        if (has_sibling ? blocked.comm == comm.index && comm.last_entered_ns <= blocked.since_ns
                        : newest == &comm && newest->last_entered_ns <= blocked.since_ns) {
          waits.host_waits_since_ns = earliest(waits.host_waits_since_ns, blocked.since_ns);
        }
        break;
      default:
        break;
    }
  }
  return waits;
}

void FillProgress(const CommSnapshot& comm, const HostWaits& waits, int64_t now_ns,
                  CommHistory* history, v1::CommUpdate* update) {
  RecordEntered(comm, history);
  if (comm.finished != history->finished) {
    history->finished = comm.finished;
    history->finished_changed_ns = now_ns;
  }
  const bool splitting =
      comm.split_id != 0 && (comm.state == segment::CommState::kInitializing ||
                             comm.state == segment::CommState::kPassedOver || comm.rank < 0);
  update->set_index(comm.index);
  update->set_id(splitting ? comm.split_id : comm.id);
  update->set_parent(comm.parent_id);
  update->set_name(comm.name);
  update->set_kind(static_cast<uint32_t>(comm.kind));
  update->set_rank(splitting ? comm.parent_rank : comm.rank);
  update->set_size(splitting ? comm.parent_size : comm.size);
  update->set_split_pending(splitting);
  update->set_device(comm.device);
  update->set_state(static_cast<uint32_t>(comm.state));
  update->set_async_error(comm.async_error);
  update->set_has_markers((comm.flags & segment::kFlagMarkers) != 0);
#define COMM_COUNT(type, name) update->set_##name(comm.name);
#define COMM_SEEN(type, name) update->set_##name(comm.name);
#define COMM_TIME(name) update->set_##name##_ns(comm.name##_ns);
#include "proto/facts.def"
  const bool later = waits.awaited > comm.finished + 1 && waits.awaited <= comm.entered;
  update->set_awaited(later ? waits.awaited : 0);
  update->set_waiting_since_ns(WaitingSince(comm, waits, *history));
  update->set_p2p_waiting_since_ns(P2pWaitingSince(comm, waits, now_ns, history));
  // A thread inside a send or receive is not inside a collective.
  const bool in_collective = comm.entered > comm.returned;
  update->set_host_blocked_since_ns(in_collective ? waits.host_blocked_since_ns : 0);
  const bool inferred = (comm.flags & segment::kFlagMarkers) == 0;
  update->set_host_waits_since_ns(inferred ? waits.host_waits_since_ns : 0);
  update->set_records_lost(comm.records_lost);
  update->set_has_graph_markers((comm.flags & segment::kFlagGraphMarkers) != 0);
  FillMessages(comm, now_ns, history, update);
  AddGrown(comm.grow_base_id, comm.grow_id, update);
  if (comm.parent_id != 0) AddGrown(comm.base_id, comm.id, update);
  for (const GraphLaunchSnapshot& launch : comm.graph_launches) {
    v1::GraphLaunch* added = update->add_graph_launches();
    added->set_graph(launch.graph);
    added->set_launch(launch.launch);
    added->set_first_record(launch.first_record);
    added->set_records(launch.records);
  }
  for (const auto& [position, signature] : comm.checkpoints) {
    if (position <= history->checkpoint_sent) continue;
    update->add_checkpoint_positions(position);
    update->add_checkpoint_signatures(signature);
    history->checkpoint_sent = position;
  }
}

void ApplyWaitFloor(int64_t from_ns, v1::CommUpdate* update) {
  const auto raise = [from_ns](int64_t since_ns) {
    return since_ns == 0 ? 0 : std::max(since_ns, from_ns);
  };
#define COMM_WAIT(name) update->set_##name##_ns(raise(update->name##_ns()));
#include "proto/facts.def"
  const auto state = static_cast<segment::CommState>(update->state());
  if (state == segment::CommState::kInitializing) {
    update->set_init_entered_ns(raise(update->init_entered_ns()));
  }
  if (state == segment::CommState::kInitializing || state == segment::CommState::kFinalizing) {
    update->set_state_since_ns(raise(update->state_since_ns()));
  }
}

void FillRecords(const CommSnapshot& comm, size_t most, v1::RecordBatch* batch) {
  const absl::Span<const RecordSnapshot> records =
      absl::MakeConstSpan(comm.records).last(std::min(most, comm.records.size()));
  if (records.empty()) return;
  batch->set_first_index(records.front().index);
  ReserveColumns(static_cast<int>(records.size()), batch);
  const auto any = [&records](auto has) {
    return std::any_of(records.begin(), records.end(), has);
  };
#define RECORD_SOME(name) \
  const bool any_##name = any([](const RecordSnapshot& record) { return IsKnown(record.name); });
#include "proto/record_columns.def"
  int64_t before_ns = 0;
  for (const RecordSnapshot& record : records) {
    // Rows of a batch have consecutive indices, so a gap ends the batch. The next tick reads the
    // records behind the gap again.
    if (record.index != batch->first_index() + static_cast<uint64_t>(batch->op_size())) break;
    batch->add_position(record.position);
    batch->add_entered_delta_ns(record.entered_ns - before_ns);
    batch->add_duration_ns(record.returned_ns == 0 ? -1 : record.returned_ns - record.entered_ns);
#define RECORD_COLUMN(type, name) batch->add_##name(record.name);
#define RECORD_SOME(name) \
  if (any_##name) batch->add_##name(record.name);
#include "proto/record_columns.def"
    before_ns = record.entered_ns;
  }
}

}  // namespace rollcall
