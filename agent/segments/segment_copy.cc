// SPDX-License-Identifier: Apache-2.0
#include "agent/segments/segment_copy.h"

#include <algorithm>
#include <cstring>
#include <tuple>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "agent/segments/key_text.h"
#include "agent/segments/printable.h"
#include "agent/segments/word_copies.h"
#include "interpose/ops.h"
#include "security/whole_words.h"

namespace rollcall {
namespace {

using segment::CommEntry;
using segment::SegmentHeader;

constexpr uint64_t kMostSteps = uint64_t{1} << 53;  // what JSON can express

int64_t RealTime(const segment::Word& word) {
  const uint64_t ns = Get(word);
  return ns > static_cast<uint64_t>(kLatestNs) ? 0 : static_cast<int64_t>(ns);
}

// A text that has so many bytes, in a field of this size, was longer: the library has cut it.
constexpr size_t Full(size_t field) { return field - 1; }

// Returns a command line: each argument ends with a zero, which becomes a line break. Without the
// argument in which the library has cut it.
template <size_t N>
std::string Arguments(const char (&text)[N]) {
  size_t size = N;
  while (size > 0 && text[size - 1] == '\0') --size;
  std::vector<std::string> parts;
  for (const absl::string_view part : absl::StrSplit(absl::string_view(text, size), '\0')) {
    parts.push_back(Printable(part.data(), part.size()));
  }
  if (size >= Full(N) && parts.size() > 1) parts.pop_back();
  return absl::StrJoin(parts, "\n");
}

// The header is older than the entry: its key may be that of another thread's wait, or of none.
void AddKey(const SegmentHeader& header, uint32_t number, BlockedSnapshot* out) {
  if (number == 0 || number > segment::kAwaitedKeys) return;
  const segment::AwaitedKey& key = header.awaited_keys[number - 1];
  if (Get(key.tid) != out->tid) return;
  out->key = KeyText(Text(key.text), Full(sizeof(key.text)));
  out->keys = Get(key.keys);
  out->key_timeout_ms = Get(key.timeout_ms);
}

BlockedSnapshot CopyBlocked(const segment::BlockedEntry& entry, uint64_t since,
                            const TickClock& clock) {
  BlockedSnapshot blocked;
  blocked.tid = Get(entry.tid);
  blocked.op = Get(entry.op);
  blocked.comm = Get(entry.comm);
  blocked.since_ns = clock.ToNs(since);
  blocked.stream = Get(entry.stream);
  if (!IsTest(static_cast<Op>(blocked.op))) return blocked;
  blocked.polls = Get(entry.reserved_words[segment::kPollsWord]);
  const int64_t end_ns = clock.ToNs(since + Get(entry.reserved_words[segment::kPollTicksWord]));
  constexpr int64_t kMostNs = int64_t{366} * 24 * 3600 * 1'000'000'000;
  const bool is_sane = blocked.since_ns > 0 && end_ns >= blocked.since_ns;
  blocked.poll_ns = is_sane ? std::min(end_ns - blocked.since_ns, kMostNs) : 0;
  return blocked;
}

void CopyCheckpoints(const CommEntry& entry, CommSnapshot* comm) {
  // Goes from the oldest to the newest.
  const uint64_t newest = comm->entered / segment::kCheckpointInterval;
  for (uint64_t i = 1; i <= segment::kCheckpointCapacity; ++i) {
    const uint64_t slot = (newest + i) % segment::kCheckpointCapacity;
    const uint64_t position = Get(entry.checkpoints[slot].position);
    const uint64_t owner = position / segment::kCheckpointInterval % segment::kCheckpointCapacity;
    if (position == 0 || position % segment::kCheckpointInterval != 0 || owner != slot ||
        position > comm->entered) {
      continue;
    }
    comm->checkpoints.emplace_back(position, Get(entry.checkpoints[slot].signature));
  }
  if (!std::is_sorted(comm->checkpoints.begin(), comm->checkpoints.end())) {
    std::sort(comm->checkpoints.begin(), comm->checkpoints.end());
  }
}

// Skips the oldest entry: the process may be overwriting it with a new launch.
void CopyGraphLaunches(const CommEntry& entry, CommSnapshot* comm) {
  const uint64_t end = Get(entry.graph_launches);
  constexpr uint64_t kKept = segment::kGraphLaunches - 1;
  for (uint64_t n = end - std::min(end, kKept); n < end; ++n) {
    const segment::GraphLaunchEntry& launch = entry.graph_launch[n % segment::kGraphLaunches];
    const uint64_t graph = Get(launch.graph);
    if (graph == 0 || graph > UINT32_MAX) continue;
    comm->graph_launches.push_back({static_cast<uint32_t>(graph), Get(launch.launch),
                                    Get(launch.first_record), Get(launch.records)});
  }
}

template <typename T>
T Value(const T& field) {
  return field;
}
template <typename T>
T Value(const std::atomic<T>& field) {
  return field.load(std::memory_order_relaxed);
}

// Add a new field of a record to the table, or to those that are read by hand below.
constexpr size_t BytesOfColumns() {
  size_t bytes = 0;
#define RECORD_COLUMN(type, name) bytes += sizeof(type);
#include "proto/record_columns.def"
  return bytes;
}
static_assert(BytesOfColumns() + sizeof(segment::RecordEntry::seq) +
                  sizeof(segment::RecordEntry::position) + sizeof(segment::RecordEntry::entered) +
                  sizeof(segment::RecordEntry::returned) + sizeof(segment::RecordEntry::shape) ==
              sizeof(segment::RecordEntry));

}  // namespace

absl::Status CheckHeader(const std::string& path, const SegmentHeader& header) {
  if (Get(header.magic) == 0) {
    return absl::FailedPreconditionError(absl::StrCat(path, ": not a complete Rollcall segment"));
  }
  if (Get(header.magic) != segment::kMagic) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": not a Rollcall segment"));
  }
  if (header.layout_version != segment::kLayoutVersion) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": segment layout ", header.layout_version, ", this rollcall reads ",
                     segment::kLayoutVersion, ": use the rollcall of the library's release"));
  }
  if (header.header_bytes != segment::kHeaderBytes ||
      header.comm_block_bytes != segment::kCommBlockBytes ||
      header.ring_capacity != segment::kRingCapacity ||
      header.blocked_capacity != segment::kBlockedCapacity ||
      header.checkpoint_interval != segment::kCheckpointInterval || header.pid <= 0) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": damaged segment header"));
  }
  return absl::OkStatus();
}

ClockSample SampleFrom(const segment::ClockPair& pair) {
  return {Get(pair.ticks), Get(pair.monotonic_ns), RealTime(pair.realtime_ns)};
}

void CopyHeader(const SegmentHeader& header, const TickClock& clock, SegmentSnapshot* out) {
  out->pid = header.pid;
  out->start_time = header.start_time;
  out->host = Text(header.host);
  out->boot_id = Text(header.boot_id);
  out->job = header.long_job[0] != '\0' ? Text(header.long_job) : Text(header.job);
#define PROCESS_TEXT(name) out->name = Text(header.name);
#define PROCESS_NUMBER(type, name) out->name = header.name;
#define PROCESS_COUNT(name) out->name = Get(header.name);
#include "proto/facts.def"
  out->command = Arguments(header.command);
  out->global_rank = header.global_rank < kMostRanks ? std::max(header.global_rank, -1) : -1;
  out->world_size = header.world_size <= kMostRanks ? std::max(header.world_size, -1) : -1;
  out->local_rank = header.local_rank < kMostRanks ? std::max(header.local_rank, -1) : -1;
  out->exited = Get(header.exit_mark) == static_cast<uint32_t>(segment::ExitMark::kExited);
  // A thread that may read no clock sets the mark alone.
  const uint64_t exit_ticks = Get(header.exit_ticks);
  out->exit_ns = out->exited && exit_ticks != 0 ? clock.ToNs(exit_ticks) : 0;
  if (const uint64_t error_ticks = Get(header.error_ticks); error_ticks != 0) {
    out->error = WithoutCutMessage(Text(header.error), Full(segment::kErrorBytes));
    out->error_ns = clock.ToNs(error_ticks);
  }
  if (const uint64_t ticks = Get(header.thread_error_ticks); ticks != 0) {
    out->thread_failure = {
        WithoutCutEnd(Text(header.failed_thread), Full(segment::kThreadNameBytes)),
        WithoutCutMessage(Text(header.thread_error), Full(segment::kErrorBytes)),
        clock.ToNs(ticks)};
  }
  const uint64_t step = Get(header.annotations.step);
  out->step = step == 0 || step > kMostSteps ? -1 : static_cast<int64_t>(step - 1);
  char phase[sizeof(header.annotations.phase)];
  memcpy(phase, &header.annotations.phase, sizeof(phase));
  out->phase = WithoutCutEnd(Printable(phase, sizeof(phase)), Full(sizeof(phase)));
  const segment::ClockPair& last = header.last_clock;
  const segment::ClockPair& first = header.first_clock;
  out->newest_ns = std::max(RealTime(last.realtime_ns), RealTime(first.realtime_ns));
}

std::vector<BlockedSnapshot> CopyBlocked(
    const SegmentHeader& header, const segment::BlockedEntry (&entries)[segment::kBlockedCapacity],
    const TickClock& clock) {
  std::vector<BlockedSnapshot> blocked;
  for (const segment::BlockedEntry& entry : entries) {
    const uint64_t since = Get(entry.since);
    if (Get(entry.tid) == 0 || since == 0) continue;
    blocked.push_back(CopyBlocked(entry, since, clock));
    AddKey(header, Get(entry.key), &blocked.back());
  }
  return blocked;
}

std::string SiteText(const segment::Site& site) {
  std::string text = Text(site.file);
  if (site.line > 0) absl::StrAppend(&text, ":", site.line);
  return absl::StrCat(text, " in ", Text(site.function));
}

std::string ShapeText(const segment::Shape& shape) {
  const uint32_t dims = Get(shape.dims);
  if (dims == 0 || dims > segment::kNoSizes) return "";
  std::string text = Text(shape.call);
  if (dims == segment::kNoSizes) return text;
  absl::StrAppend(&text, text.empty() ? "[" : " [",
                  absl::StrJoin(shape.sizes, shape.sizes + dims - 1, ", "), "]");
  return text;
}

void CopyEntry(const CommEntry& entry, const TickClock& clock, CommSnapshot* comm) {
  comm->state = static_cast<segment::CommState>(Get(entry.state));
  comm->flags = Get(entry.flags);
  comm->id = Get(entry.id);
  comm->parent_id = Get(entry.parent_id);
  comm->split_id = Get(entry.split_id);
  comm->base_id = Get(entry.base_id);
  comm->grow_base_id = Get(entry.grow_base_id);
  comm->grow_id = Get(entry.grow_id);
  comm->rank = Signed(entry.rank);
  comm->size = Signed(entry.size);
  comm->device = Signed(entry.device);
  comm->parent_rank = Signed(entry.parent_rank);
  comm->parent_size = Signed(entry.parent_size);
  comm->name = Text(entry.name);
  comm->init_ticks = Get(entry.init_entered);
#define COMM_COUNT(type, name) comm->name = Get(entry.name);
#define COMM_TIME(name) comm->name##_ns = clock.ToNs(Get(entry.name));
#include "proto/facts.def"
  comm->last_entered_ns = clock.ToNs(Get(entry.last_entered));
  comm->kind = ToCommKind(Get(entry.kind));
  comm->async_error = Get(entry.async_error);
  comm->recorded = Get(entry.recorded);
  CopyCheckpoints(entry, comm);
  CopyGraphLaunches(entry, comm);
}

std::string FindInconsistency(const CommSnapshot& comm) {
  if (static_cast<uint32_t>(comm.state) > static_cast<uint32_t>(segment::CommState::kPassedOver)) {
    return "unknown state";
  }
  const bool splitting = comm.split_id != 0;
  const bool not_there_yet = splitting && comm.state == segment::CommState::kInitializing;
  if (comm.size == 0 && comm.rank >= 0 && !not_there_yet) {
    return absl::StrCat("rank ", comm.rank, " of none");
  }
  if (comm.size < 0 || comm.size > kMostRanks || (comm.size > 0 && comm.rank >= comm.size) ||
      (comm.rank < 0 && !splitting)) {
    return absl::StrCat("rank ", comm.rank, " of ", comm.size);
  }
  if (comm.parent_size < 0 || comm.parent_size > kMostRanks ||
      (splitting && (comm.parent_rank < 0 || comm.parent_rank >= comm.parent_size))) {
    return absl::StrCat("parent rank ", comm.parent_rank, " of ", comm.parent_size);
  }
  if (comm.returned > comm.entered + 1 || comm.p2p_returned > comm.p2p_entered + 1) {
    return "more calls returned than entered";
  }
  return "";
}

void CopyMessages(const segment::MessageTable& table, CommSnapshot* comm) {
  comm->messages_lost = Get(table.lost) != 0;
  comm->messages_cancelled = Get(table.cancelled) != 0;
  uint64_t issued = Get(table.lost);
  for (const segment::MessageEntry& entry : table.entries) {
    const uint64_t key = Get(entry.key);
    const int32_t peer = segment::PeerOf(key), tag = segment::TagOf(key);
    if (key == 0 || peer < segment::kAnySource || peer >= comm->size || tag < segment::kMixedTags) {
      continue;
    }
    comm->messages.push_back({peer, tag, Get(entry.sends), Get(entry.receives),
                              Get(entry.sends_awaited), Get(entry.receives_awaited)});
    issued += uint64_t{Get(entry.sends)} + Get(entry.receives);
  }
  std::sort(comm->messages.begin(), comm->messages.end(),
            [](const MessagesSnapshot& a, const MessagesSnapshot& b) {
              return std::tie(a.peer, a.tag) < std::tie(b.peer, b.tag);
            });
  comm->messages_issued = issued;
  if (comm->kind != CommKind::kGloo) comm->p2p_entered = comm->p2p_returned = issued;
}

bool HasEnded(segment::CommState state) {
  for (const segment::CommState ended :
       {segment::CommState::kEmpty, segment::CommState::kDestroyed, segment::CommState::kAborted,
        segment::CommState::kFailed, segment::CommState::kPassedOver}) {
    if (state == ended) return true;
  }
  return false;
}

uint64_t RingCapacity(const CommEntry& entry) {
  const uint64_t capacity = Get(entry.ring_capacity);
  if (capacity == 0) return segment::kRingCapacity;
  const bool is_power_of_two = (capacity & (capacity - 1)) == 0;
  return is_power_of_two && capacity <= segment::kRingCapacity ? capacity : 0;
}

RecordSnapshot CopyRecord(const segment::RecordEntry& record, uint64_t index, uint64_t entered,
                          const TickClock& clock) {
  RecordSnapshot out;
  out.index = index;
  // The record has the low 32 bits. The high bits are those of the newest position, or one less.
  out.position = (entered & ~uint64_t{0xffffffff}) | record.position;
  if (out.position > entered && out.position >= (uint64_t{1} << 32))
    out.position -= uint64_t{1} << 32;
#define RECORD_COLUMN(type, name)                     \
  static_assert(sizeof(record.name) == sizeof(type)); \
  out.name = Value(record.name);
#include "proto/record_columns.def"
  out.caller &= (uint64_t{1} << segment::kSiteShift) - 1;
  out.site = static_cast<uint32_t>(record.caller >> segment::kSiteShift);
  out.entered_ns = clock.ToNs(record.entered);
  const uint64_t returned = Get(record.returned);
  out.returned_ns = returned == 0 ? 0 : std::max(clock.ToNs(returned), out.entered_ns);
  return out;
}

void IgnoreExitOfChild(SegmentSnapshot* snapshot) {
  constexpr int64_t kLongestEndNs = 10'000'000'000;
  if (!snapshot->exited || snapshot->exit_ns == 0) return;
  for (const CommSnapshot& comm : snapshot->communicators) {
    if (comm.last_entered_ns > snapshot->exit_ns + kLongestEndNs) snapshot->exited = false;
  }
  if (!snapshot->exited) snapshot->exit_ns = 0;
}

}  // namespace rollcall
