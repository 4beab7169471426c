// SPDX-License-Identifier: Apache-2.0
#include "agent/segments/segment_reader.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <iterator>
#include <set>
#include <tuple>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "agent/processes/this_host.h"
#include "agent/segments/key_text.h"
#include "base/open_regular.h"
#include "interpose/ops.h"
#include "interpose/segment_messages.h"
#include "interpose/segment_network.h"
#include "security/whole_words.h"

namespace rollcall {
namespace {

using segment::CommEntry;
using segment::SegmentHeader;

constexpr int32_t kMostRanks = 1 << 24;
constexpr uint64_t kMostSteps = uint64_t{1} << 53;  // what JSON can express
constexpr int kTries = 3;

// Raw memory for a struct of atomics, filled by pread.
template <typename T>
struct Copy {
  alignas(T) unsigned char bytes[sizeof(T)];
  const T& operator*() const { return *reinterpret_cast<const T*>(bytes); }
  const T* operator->() const { return reinterpret_cast<const T*>(bytes); }
};

uint64_t Get(const segment::Word& word) { return word.load(std::memory_order_relaxed); }
uint32_t Get(const segment::HalfWord& word) { return word.load(std::memory_order_relaxed); }
int32_t Signed(const segment::HalfWord& word) { return static_cast<int32_t>(Get(word)); }

int64_t RealTime(const segment::Word& word) {
  const uint64_t ns = Get(word);
  return ns > static_cast<uint64_t>(kLatestNs) ? 0 : static_cast<int64_t>(ns);
}

ClockSample SampleFrom(const segment::ClockPair& pair) {
  return {Get(pair.ticks), Get(pair.monotonic_ns), RealTime(pair.realtime_ns)};
}

// Whether the file is on a local file system, which no server implements. Older headers lack xfs.
bool IsLocal(int fd) {
  constexpr long kXfsMagic = 0x58465342;
  struct statfs about;
  if (fstatfs(fd, &about) != 0) return false;
  for (const long magic : {long{TMPFS_MAGIC}, long{RAMFS_MAGIC}, long{EXT4_SUPER_MAGIC}, kXfsMagic,
                           long{BTRFS_SUPER_MAGIC}, long{OVERLAYFS_SUPER_MAGIC}}) {
    if (about.f_type == magic) return true;
  }
  return false;
}

// Whether the same call may succeed later: no free descriptors or memory, an unreachable server.
bool IsTransient(int error) {
  for (const int transient : {EMFILE, ENFILE, ENOMEM, EINTR, EIO, ESTALE, ETIMEDOUT, ENOTCONN}) {
    if (error == transient) return true;
  }
  return false;
}

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

template <size_t N>
std::string Text(const char (&text)[N]) {
  return Printable(text, N);
}

// Of a field of this size, a text that is longer has so many bytes: the library has cut it.
constexpr size_t Full(size_t field) { return field - 1; }

// A command line: each argument ends with a zero, which becomes a line break. Without the argument
// in which the library has cut it.
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

// Returns "" if the entry is consistent, or a description of the first contradiction.
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

// Capacity of the communicator's ring, in records; 0 if the entry has an invalid capacity.
uint64_t RingCapacity(const CommEntry& entry) {
  const uint64_t capacity = Get(entry.ring_capacity);
  if (capacity == 0) return segment::kRingCapacity;
  const bool is_power_of_two = (capacity & (capacity - 1)) == 0;
  return is_power_of_two && capacity <= segment::kRingCapacity ? capacity : 0;
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

// Whether a communicator in this state has no transfers any more.
bool HasEnded(segment::CommState state) {
  for (const segment::CommState ended :
       {segment::CommState::kEmpty, segment::CommState::kDestroyed, segment::CommState::kAborted,
        segment::CommState::kFailed, segment::CommState::kPassedOver}) {
    if (state == ended) return true;
  }
  return false;
}

// A process that calls long after its exit mark has not set it: a child of vfork that ends by
// exit() runs in its parent's memory. Other threads may call while a process ends.
void IgnoreExitOfChild(SegmentSnapshot* snapshot) {
  constexpr int64_t kLongestEndNs = 10'000'000'000;
  if (!snapshot->exited || snapshot->exit_ns == 0) return;
  for (const CommSnapshot& comm : snapshot->communicators) {
    if (comm.last_entered_ns > snapshot->exit_ns + kLongestEndNs) snapshot->exited = false;
  }
  if (!snapshot->exited) snapshot->exit_ns = 0;
}

}  // namespace

absl::StatusOr<std::unique_ptr<SegmentReader>> SegmentReader::Open(const std::string& path) {
  UniqueFd fd = OpenRegular(path, O_RDONLY);
  if (!fd.valid()) {
    const int error = errno;
    if (error == EINVAL) {
      return absl::InvalidArgumentError(absl::StrCat(path, ": not a regular file"));
    }
    const std::string why = absl::StrCat(path, ": ", strerror(error));
    if (error == ENOENT) return absl::NotFoundError(why);
    return IsTransient(error) ? absl::UnavailableError(why) : absl::InvalidArgumentError(why);
  }
  return FromDescriptor(path, std::move(fd));
}

absl::StatusOr<std::unique_ptr<SegmentReader>> SegmentReader::FromDescriptor(
    const std::string& path, UniqueFd fd) {
  std::unique_ptr<SegmentReader> reader(new SegmentReader(path, std::move(fd)));
  struct stat about;
  if (fstat(reader->fd_.get(), &about) != 0 || !S_ISREG(about.st_mode)) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": not a regular file"));
  }
  reader->device_ = about.st_dev;
  reader->inode_ = about.st_ino;
  reader->user_ = about.st_uid;
  reader->may_block_ = !IsLocal(reader->fd_.get());
  Copy<SegmentHeader> header;
  if (!reader->ReadAt(0, header.bytes, sizeof(header.bytes))) {
    return absl::DataLossError(absl::StrCat(path, ": cut short: ", about.st_size,
                                            " bytes, a segment has at least ",
                                            segment::kHeaderBytes));
  }
  absl::Status status = CheckHeader(path, *header);
  if (!status.ok()) return status;
  return reader;
}

absl::StatusOr<std::unique_ptr<SegmentReader>> SegmentReader::Again() const {
  UniqueFd fd(fcntl(fd_.get(), F_DUPFD_CLOEXEC, 0));
  if (!fd.valid()) return absl::UnavailableError(absl::StrCat(path_, ": ", strerror(errno)));
  return FromDescriptor(path_, std::move(fd));
}

absl::StatusOr<SegmentClaim> SegmentReader::Claim() const {
  Copy<SegmentHeader> header;
  if (!ReadAt(0, header.bytes, sizeof(header.bytes))) {
    return absl::DataLossError(absl::StrCat(path_, ": cut short"));
  }
  absl::Status status = CheckHeader(path_, *header);
  if (!status.ok()) return status;
  SegmentClaim claim;
  claim.pid = header->pid;
  claim.start_time = header->start_time;
  claim.pid_namespace = header->pid_namespace;
  claim.of_this_boot = Text(header->boot_id) == OwnBootId();
  claim.life_lock = Get(header->life_lock) == 1;
  claim.lock = Lock();
  return claim;
}

bool SegmentReader::Deleted() const {
  struct stat about;
  return fstat(fd_.get(), &about) == 0 && about.st_nlink == 0;
}

bool SegmentReader::ReadAt(uint64_t offset, void* out, size_t size) const {
  size_t done = 0;
  while (done < size) {
    const ssize_t n = pread(fd_.get(), static_cast<char*>(out) + done, size - done,
                            static_cast<off_t>(offset + done));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    done += static_cast<size_t>(n);
  }
  return true;
}

const TickClock& SegmentReader::Clock(const SegmentHeader& header, const HostClock* host,
                                      int64_t ahead_ns) {
  const bool live = Text(header.boot_id) == OwnBootId();
  if (live && host != nullptr) return clock_.emplace(host->ClockFor(header.clock_source, ahead_ns));
  if (!clock_) clock_.emplace(header.clock_source, SampleFrom(header.first_clock));
  const ClockSample last = SampleFrom(header.last_clock);
  if (live) {
    clock_->Update(SampleClocks());
  } else if (last.ticks != 0) {
    clock_->Update(last);
  }
  return *clock_;
}

namespace {

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

}  // namespace

absl::StatusOr<SegmentSnapshot> SegmentReader::Read(const HostClock* host, int64_t ahead_ns) {
  Copy<SegmentHeader> header;
  Copy<segment::BlockedEntry[segment::kBlockedCapacity]> blocked;
  if (!ReadAt(0, header.bytes, sizeof(header.bytes)) ||
      !ReadAt(segment::kBlockedOffset, blocked.bytes, sizeof(blocked.bytes))) {
    return absl::DataLossError(absl::StrCat(path_, ": cut short"));
  }
  absl::Status status = CheckHeader(path_, *header);
  if (!status.ok()) return status;
  const TickClock& clock = Clock(*header, host, ahead_ns);
  SegmentSnapshot snapshot;
  CopyHeader(*header, clock, &snapshot);
  for (const segment::BlockedEntry& entry : *blocked) {
    const uint64_t since = Get(entry.since);
    if (Get(entry.tid) == 0 || since == 0) continue;
    snapshot.blocked.push_back(CopyBlocked(entry, since, clock));
    AddKey(*header, Get(entry.key), &snapshot.blocked.back());
  }
  ReadSites(Get(header->site_count));
  snapshot.sites = sites_;
  const uint32_t count = std::min(Get(header->comm_count), segment::kCommCapacity);
  progress_.resize(std::max<size_t>(progress_.size(), count));
  for (uint32_t i = 0; i < count; ++i) {
    if (!ReadComm(i, clock, &snapshot)) {
      snapshot.warnings.push_back(
          absl::StrCat(path_, ": cut short: ", i, " of ", count, " communicators are in the file"));
      break;
    }
  }
  IgnoreExitOfChild(&snapshot);
  return snapshot;
}

void SegmentReader::ReadSites(uint32_t count) {
  while (sites_.size() < std::min(count, segment::kSiteCapacity)) {
    Copy<segment::Site> site;
    if (!ReadAt(segment::kSitesOffset + sites_.size() * sizeof(segment::Site), site.bytes,
                sizeof(site.bytes))) {
      return;
    }
    std::string text = Text(site->file);
    if (site->line > 0) absl::StrAppend(&text, ":", site->line);
    sites_.push_back(absl::StrCat(text, " in ", Text(site->function)));
  }
}

bool SegmentReader::ReadComm(uint32_t index, const TickClock& clock, SegmentSnapshot* snapshot) {
  const uint64_t offset = segment::CommBlockOffset(index);
  Copy<CommEntry> entry, again;
  bool stable = false;
  // The process writes position and signature one after the other, so read both again.
  constexpr size_t kWithProgress = offsetof(CommEntry, graph_launch);
  for (int i = 0; i < kTries && !stable; ++i) {
    if (!ReadAt(offset, entry.bytes, sizeof(entry.bytes)) ||
        !ReadAt(offset, again.bytes, kWithProgress)) {
      return false;
    }
    stable = Get(entry->entered) == Get(again->entered) &&
             Get(entry->signature) == Get(again->signature) && Get(entry->id) == Get(again->id);
  }
  CommSnapshot comm;
  comm.index = index;
  CopyEntry(*entry, clock, &comm);
  if (comm.state == segment::CommState::kEmpty) return true;
  if (!stable) comm.signature = 0;
  const std::string wrong = FindInconsistency(comm);
  if (!wrong.empty()) {
    snapshot->warnings.push_back(
        absl::StrCat(path_, ": communicator ", index, " left out: ", wrong));
    return true;
  }
  ReadProgress* progress = &progress_[index];
  const uint64_t id = Get(entry->init_entered);
  if (progress->id != id) *progress = {id, 0, 0, 0, 0, 0, 0};
  ReadMarkers(index, progress, &comm);
  const uint64_t capacity = RingCapacity(*entry);
  if ((comm.flags & segment::kFlagRing) != 0 && capacity != 0) {
    ReadRecords(clock, capacity, progress, &comm);
  }
  snapshot->newest_ns = std::max({snapshot->newest_ns, comm.last_entered_ns, comm.state_since_ns});
  snapshot->communicators.push_back(std::move(comm));
  return true;
}

void SegmentReader::ReadMarkers(uint32_t index, ReadProgress* progress, CommSnapshot* comm) const {
  if ((comm->flags & segment::kFlagHostCalls) != 0) {
    // A call of MPI or gloo has finished when it has returned, so the return replaces the marker.
    comm->flags |= segment::kFlagMarkers;
    comm->started = comm->entered;
    comm->finished = std::min(comm->returned, comm->entered);
    if ((comm->flags & segment::kFlagMessages) != 0) ReadMessages(index, comm);
    comm->p2p_started = comm->p2p_entered;
    comm->p2p_finished = std::min(comm->p2p_returned, comm->p2p_entered);
    return;
  }
  if ((comm->flags & segment::kFlagMarkers) == 0) return;
  if (!comm->graph_launches.empty()) ReadGraphMarkers(index, progress);
  Copy<segment::MarkerLane[segment::kMarkerLanes]> lanes;
  if (!ReadAt(segment::CommBlockOffset(index) + segment::kMarkersOffset, lanes.bytes,
              sizeof(lanes.bytes))) {
    return;
  }
  for (const segment::MarkerLane& lane : *lanes) {
    progress->started = std::max(progress->started, Get(lane.started));
    progress->finished = std::max(progress->finished, Get(lane.finished));
    progress->p2p_started = std::max(progress->p2p_started, Get(lane.p2p_started));
    progress->p2p_finished = std::max(progress->p2p_finished, Get(lane.p2p_finished));
  }
  // The reader reads the markers after the counters, so the markers may be ahead.
  comm->started = std::min(progress->started, comm->entered);
  comm->finished = std::min(progress->finished, comm->entered);
  comm->p2p_started = std::min(progress->p2p_started, comm->p2p_entered);
  comm->p2p_finished = std::min(progress->p2p_finished, comm->p2p_entered);
}

// Counts the messages as sends and receives, too. They have no records.
void SegmentReader::ReadMessages(uint32_t index, CommSnapshot* comm) const {
  Copy<segment::MessageTable> table;
  if (!ReadAt(segment::CommBlockOffset(index) + segment::kMarkersOffset, table.bytes,
              sizeof(table.bytes))) {
    return;
  }
  comm->messages_lost = Get(table->lost) != 0;
  comm->messages_cancelled = Get(table->cancelled) != 0;
  uint64_t issued = Get(table->lost);
  for (const segment::MessageEntry& entry : table->entries) {
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
  comm->p2p_entered = comm->p2p_returned = issued;
}

void SegmentReader::ReadGraphMarkers(uint32_t index, ReadProgress* progress) const {
  Copy<segment::GraphLane[segment::kGraphLanes]> lanes;
  if (!ReadAt(segment::CommBlockOffset(index) + segment::kGraphLanesOffset, lanes.bytes,
              sizeof(lanes.bytes))) {
    return;
  }
  const auto add = [](uint64_t base, uint64_t word, uint64_t* started, uint64_t* finished) {
    if (word == 0) return;
    *started = std::max(*started, base + (word & UINT32_MAX));
    *finished = std::max(*finished, base + (word >> 32));
  };
  for (const segment::GraphLane& lane : *lanes) {
    add(Get(lane.base), Get(lane.reached), &progress->started, &progress->finished);
    add(Get(lane.p2p_base), Get(lane.p2p_reached), &progress->p2p_started, &progress->p2p_finished);
  }
}

// Reads the records `begin` to `end`, at most as many as the ring has.
bool SegmentReader::ReadRing(uint32_t index, uint64_t capacity, uint64_t begin, uint64_t end,
                             segment::RecordEntry* records) const {
  const uint64_t ring = segment::CommBlockOffset(index) + segment::kRingOffset;
  const uint64_t first = begin % capacity;
  const uint64_t before_wrap = std::min(capacity - first, end - begin);
  constexpr size_t kBytes = sizeof(segment::RecordEntry);
  return ReadAt(ring + first * kBytes, static_cast<void*>(records), before_wrap * kBytes) &&
         ReadAt(ring, static_cast<void*>(records + before_wrap),
                (end - begin - before_wrap) * kBytes);
}

void SegmentReader::ReadRecords(const TickClock& clock, uint64_t capacity, ReadProgress* progress,
                                CommSnapshot* comm) {
  const uint64_t end = comm->recorded;
  if (end < progress->next) *progress = {progress->id, 0, 0, 0, 0, 0, 0};
  uint64_t begin = progress->next;
  if (end > capacity && begin < end - capacity) {
    progress->lost += end - capacity - begin;
    begin = end - capacity;
  }
  progress->next = end;
  if (begin == end) {
    comm->records_lost = progress->lost;
    return;
  }
  if (records_ == nullptr) {
    records_ = std::make_unique<segment::RecordEntry[]>(segment::kRingCapacity);
    again_ = std::make_unique<segment::RecordEntry[]>(segment::kRingCapacity);
  }
  if (!ReadRing(comm->index, capacity, begin, end, records_.get()) ||
      !ReadRing(comm->index, capacity, begin, end, again_.get())) {
    return;
  }
  const bool unchanged =
      memcmp(static_cast<const void*>(records_.get()), static_cast<const void*>(again_.get()),
             (end - begin) * sizeof(segment::RecordEntry)) == 0;
  comm->records.reserve(end - begin);
  for (uint64_t n = begin; n < end; ++n) {
    const segment::RecordEntry& record = records_[n - begin];
    const bool same =
        unchanged || memcmp(static_cast<const void*>(&record),
                            static_cast<const void*>(&again_[n - begin]), sizeof(record)) == 0;
    const bool whole = same && Get(record.seq) == static_cast<uint32_t>(2 * n + 2);
    if (!whole) {
      // The process is writing this record (read it next time) or has overwritten it (lost).
      if (n + capacity / 2 < end) {
        ++progress->lost;
      } else {
        progress->next = std::min(progress->next, n);
      }
      continue;
    }
    comm->records.push_back(CopyRecord(record, n, comm->entered, clock));
    if (record.shape != 0) comm->records.back().shape = ReadShape(record.shape);
    if (comm->records.back().returned_ns == 0) progress->next = std::min(progress->next, n);
  }
  comm->records_lost = progress->lost;
}

// Returns "" if the shape is missing or invalid.
const std::string& SegmentReader::ReadShape(uint8_t number) {
  static_assert(segment::kShapeCapacity == UINT8_MAX);
  shapes_.resize(segment::kShapeCapacity);
  std::string& text = shapes_[number - 1];
  if (!text.empty()) return text;
  Copy<segment::Shape> shape;
  const uint64_t offset = segment::kShapesOffset + (number - 1) * sizeof(segment::Shape);
  if (!ReadAt(offset, shape.bytes, sizeof(shape.bytes))) return text;
  const uint32_t dims = Get(shape->dims);
  if (dims == 0 || dims > segment::kNoSizes) return text;
  text = Text(shape->call);
  if (dims == segment::kNoSizes) return text;
  absl::StrAppend(&text, text.empty() ? "[" : " [",
                  absl::StrJoin(shape->sizes, shape->sizes + dims - 1, ", "), "]");
  return text;
}

std::vector<NetworkSnapshot> SegmentReader::ReadNetwork(const HostClock* host, int64_t ahead_ns,
                                                        const std::vector<uint64_t>* wanted) {
  Copy<SegmentHeader> header;
  if (!ReadAt(0, header.bytes, sizeof(header.bytes)) || !CheckHeader(path_, *header).ok())
    return {};
  const std::vector<NetworkEntryCopy> entries = ReadNetworkEntries(Get(header->network_chunks));
  if (entries.empty()) return {};
  // Read after the entries: a block that another communicator has taken since does not fit them.
  const std::map<uint32_t, NetworkComm> comms =
      ReadNetworkComms(entries, std::min(Get(header->comm_count), segment::kCommCapacity), wanted);
  std::vector<NetworkSnapshot> all =
      ToNetworkSnapshots(entries, comms, Clock(*header, host, ahead_ns));
  const bool is_whole = Get(header->lost_network_states) == 0 &&
                        (Get(header->left_out) & segment::kLeftOutNetwork) == 0;
  for (NetworkSnapshot& one : all) one.is_whole = one.is_whole && is_whole;
  return all;
}

// The used entries. Bit n of `chunks`: chunk n has some.
std::vector<NetworkEntryCopy> SegmentReader::ReadNetworkEntries(uint32_t chunks) const {
  static_assert(sizeof(NetworkEntryCopy) == sizeof(segment::NetworkEntry));
  std::vector<NetworkEntryCopy> used;
  std::vector<NetworkEntryCopy> chunk(segment::kNetworkChunkEntries);
  for (uint32_t i = 0; i < segment::kNetworkChunks; ++i) {
    if ((chunks >> i & 1) == 0) continue;
    if (!ReadAt(segment::kNetworkOffset + i * segment::kNetworkChunkBytes, chunk.data(),
                segment::kNetworkChunkBytes)) {
      continue;
    }
    std::copy_if(chunk.begin(), chunk.end(), std::back_inserter(used),
                 [](const NetworkEntryCopy& entry) { return entry.key != 0; });
  }
  return used;
}

// The wanted communicators of the entries, at most kMostNetworkComms, without those that have
// ended.
std::map<uint32_t, NetworkComm> SegmentReader::ReadNetworkComms(
    const std::vector<NetworkEntryCopy>& entries, uint32_t count,
    const std::vector<uint64_t>* wanted) const {
  std::set<uint32_t> indexes;
  for (const NetworkEntryCopy& entry : entries) {
    const uint32_t index = segment::NetworkTransferOf(entry.key).comm;
    if (index < count) indexes.insert(index);
  }
  std::map<uint32_t, NetworkComm> comms;
  for (const uint32_t index : indexes) {
    Copy<CommEntry> entry;
    if (comms.size() == kMostNetworkComms) break;
    if (!ReadAt(segment::CommBlockOffset(index), entry.bytes, sizeof(entry.bytes))) continue;
    if (HasEnded(static_cast<segment::CommState>(Get(entry->state)))) continue;
    const NetworkComm comm = {Get(entry->id), Get(entry->init_entered), Signed(entry->rank),
                              Signed(entry->size)};
    const bool is_wanted =
        wanted == nullptr || std::find(wanted->begin(), wanted->end(), comm.id) != wanted->end();
    if (!is_wanted) continue;
    if (comm.rank >= 0 && comm.rank < comm.size && comm.size <= kMostRanks) comms[index] = comm;
  }
  return comms;
}

bool IsSegmentName(const std::string& name) {
  absl::string_view rest = name;
  if (!absl::ConsumeSuffix(&rest, ".seg")) return false;
  const std::vector<absl::string_view> numbers = absl::StrSplit(rest, '-');
  if (numbers.size() != 2 && numbers.size() != 3) return false;
  return std::all_of(numbers.begin(), numbers.end(), [](absl::string_view number) {
    return !number.empty() &&
           std::all_of(number.begin(), number.end(), [](char c) { return c >= '0' && c <= '9'; });
  });
}

std::string Printable(const char* text, size_t most) {
  std::string out(text, strnlen(text, most));
  for (char& c : out) {
    if (c < 0x20 || c > 0x7e) c = '?';
  }
  return out;
}

}  // namespace rollcall
