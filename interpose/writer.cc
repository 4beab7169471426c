#include "interpose/old_glibc.h"

#include "interpose/writer.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <initializer_list>

#include "interpose/annotations.h"
#include "interpose/call_sites.h"
#include "interpose/creations.h"
#include "interpose/python_errors.h"
#include "interpose/torch_shapes.h"
#include "interpose/shapes.h"
#include "interpose/environment.h"
#include "interpose/group_lists.h"
#include "interpose/keep_cancel.h"
#include "interpose/keep_errno.h"
#include "interpose/markers.h"
#include "interpose/segment_file.h"
#include "interpose/stack_signals.h"
#include "interpose/thread_slots.h"

namespace rollcall {

Recorder recorder;

namespace {

using segment::BlockedEntry;
using segment::CommEntry;
using segment::CommState;
using segment::SegmentHeader;

// Times 100 us: how long a thread waits for another one to make the segment.
constexpr int kStartTries = 500;

// Handles, open addressing. 0: never used, 1: used and free again.
constexpr uint32_t kHandleSlots = 4 * segment::kCommCapacity;
struct HandleSlot {
  std::atomic<uintptr_t> handle;
  std::atomic<uint32_t> comm;
};
HandleSlot handles[kHandleSlots];

std::atomic<int> start_state{0};  // 0 not tried, 1 under way, 2 done, 3 in vain

// Reads a small file whole; "" when it cannot.
void ReadSmallFile(const char* path, char* out, size_t size) {
  out[0] = '\0';
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return;
  const ssize_t length = read(fd, out, size - 1);
  close(fd);
  out[length > 0 ? length : 0] = '\0';
}

uint64_t OwnStartTime() {
  char text[1024];
  ReadSmallFile("/proc/self/stat", text, sizeof(text));
  // The name is in parentheses and may hold blanks and parentheses itself.
  const char* at = strrchr(text, ')');
  if (at == nullptr) return 0;
  for (int field = 2; field < 22 && at != nullptr; ++field) at = strchr(at + 1, ' ');
  return at == nullptr ? 0 : strtoull(at, nullptr, 10);
}

// Up to the first line break; cut where it does not fit.
void CopyText(char* out, size_t size, const char* text) {
  size_t length = 0;
  if (text != nullptr) {
    while (length < size - 1 && text[length] != '\0' && text[length] != '\n') ++length;
    memcpy(out, text, length);
  }
  out[length] = '\0';
}

void ReadCommandLine(char* out, size_t size) {
  const int fd = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
  ssize_t length = fd < 0 ? 0 : read(fd, out, size - 1);
  if (fd >= 0) close(fd);
  if (length < 0) length = 0;
  while (length > 0 && out[length - 1] == '\0') --length;
  for (ssize_t i = 0; i < length; ++i) {
    if (out[i] == '\0' || out[i] == '\n') out[i] = ' ';
  }
  out[length] = '\0';
}

// The kernel takes a time-stamp counter off this list that it has found to differ between cores, or
// to stop. Where the list cannot be read, it has told nobody so.
bool KernelTrustsCounter() {
#if defined(__x86_64__)
  char list[256];
  const int fd = open("/sys/devices/system/clocksource/clocksource0/available_clocksource",
                      O_RDONLY | O_CLOEXEC);
  if (fd < 0) return true;
  const ssize_t size = read(fd, list, sizeof(list) - 1);
  close(fd);
  if (size <= 0) return true;
  list[size] = '\0';
  return strstr(list, "tsc") != nullptr;
#else
  return true;
#endif
}

void SetClock(segment::ClockPair* pair) {
  pair->ticks.store(Now(), std::memory_order_relaxed);
  pair->realtime_ns.store(ClockNs(CLOCK_REALTIME), std::memory_order_relaxed);
  pair->monotonic_ns.store(ClockNs(CLOCK_MONOTONIC), std::memory_order_release);
}

void FillHeader(SegmentHeader* header, uint64_t start_time) {
  header->layout_version = segment::kLayoutVersion;
  header->header_bytes = segment::kHeaderBytes;
  header->comm_block_bytes = segment::kCommBlockBytes;
  header->ring_capacity = segment::kRingCapacity;
  header->blocked_capacity = segment::kBlockedCapacity;
  header->checkpoint_interval = segment::kCheckpointInterval;
  header->stack_slots = segment::kStackSlots;
  header->pid = static_cast<int32_t>(getpid());
  header->start_time = start_time;
  gethostname(header->host, sizeof(header->host) - 1);
  char boot_id[sizeof(header->boot_id)];
  ReadSmallFile("/proc/sys/kernel/random/boot_id", boot_id, sizeof(boot_id));
  CopyText(header->boot_id, sizeof(header->boot_id), boot_id);
  CopyJobName(FindJob(&getenv), header->long_job);
  CopyText(header->job, sizeof(header->job), header->long_job);
  const Place place = FindPlace(&getenv);
  header->global_rank = place.rank;
  header->world_size = place.world_size;
  header->local_rank = place.local_rank;
  ReadCommandLine(header->command, sizeof(header->command));
  CopyText(header->library_version, sizeof(header->library_version), ROLLCALL_VERSION);
  CopyText(header->gpu_sharing, sizeof(header->gpu_sharing), FindGpuSharing(&getenv));
  header->clock_source = recorder.clock;
  SetClock(&header->first_clock);
  CopyAnnotations(&header->annotations);
}

// Its block stays: the fork may have come from inside a call, which writes there once more. That
// memory is the child's own by then.
void ForgetComm(LocalComm* comm) { comm->handle.store(nullptr, std::memory_order_relaxed); }

// A child of fork shares the parent's mapping and must neither write to it nor hold the parent's
// proof of life. It starts afresh at its own first NCCL call. Single-threaded at this point.
void ForgetParent() {
  const KeepErrno keep_errno;
  RemoveStackSignals();
  StopCallSites();
  ForgetShapes();
  recorder.header.store(nullptr);
  start_state.store(0, std::memory_order_release);
  ForEachComm(&ForgetComm);
  for (HandleSlot& slot : handles) slot.handle.store(0, std::memory_order_relaxed);
  ForgetCreations();
  ForgetThread();
  ForgetGroupLists();
  ForgetSegmentFile(this_thread.makings_before_fork);
}

void BeforeFork() { this_thread.makings_before_fork = SegmentMakings(); }

// Weak: musl has none, and nothing is recorded there.
extern "C" __attribute__((weak)) int __register_atfork(void (*)(), void (*)(), void (*)(), void*);
extern "C" void* __dso_handle;

bool MakeSegment() {
  const uint64_t start_time = OwnStartTime();
  const SegmentFile file = MakeSegmentFile(start_time);
  if (file.memory == nullptr) return false;
  auto* header = static_cast<SegmentHeader*>(file.memory);
  recorder.blocked =
      reinterpret_cast<BlockedEntry*>(static_cast<char*>(file.memory) + segment::kBlockedOffset);
  recorder.clock = CounterIsInvariant() && KernelTrustsCounter() ? segment::ClockSource::kCounter
                                                                 : segment::ClockSource::kMonotonic;
  FillHeader(header, start_time);
  header->pid_namespace = file.pid_namespace;
  header->life_lock.store(file.life_lock ? 1 : 0, std::memory_order_relaxed);
  header->magic.store(segment::kMagic, std::memory_order_release);
  PrepareStackSignals(SegmentPath());
  recorder.mapping.store(header, std::memory_order_release);
  recorder.header.store(header, std::memory_order_release);
  return true;
}

// Nothing more is recorded. Threads that are within a call go on writing where nobody reads.
void StopRecording() {
  SegmentHeader* header = recorder.header.load(std::memory_order_acquire);
  if (header == nullptr || !recorder.header.compare_exchange_strong(header, nullptr)) return;
  GiveUpSegmentFile(header);
}

uint32_t HandleHash(const void* handle) {
  return static_cast<uint32_t>(segment::Mix(0, reinterpret_cast<uintptr_t>(handle))) % kHandleSlots;
}

// What a communicator's block can do with how much room.
struct BlockSize {
  size_t bytes;
  uint32_t records;
  RoomFor use;
  uint32_t left_out;
  const char* words;
};
constexpr uint32_t kShortRing = 64;
constexpr BlockSize kBlockSizes[] = {
    {segment::kCommBlockBytes, segment::kRingCapacity, RoomFor::kLongHistories, 0, nullptr},
    {segment::kRingOffset + kShortRing * sizeof(segment::CallRecord), kShortRing,
     RoomFor::kShortHistories, segment::kLeftOutRecords, "shorter histories"},
    {segment::kRingOffset, 0, RoomFor::kPresence, segment::kLeftOutRings, "no histories of calls"}};
constexpr uint32_t kFirstComms = 8;  // of a process, without which nothing can be said of it
constexpr int kBlockSizeCount = sizeof(kBlockSizes) / sizeof(kBlockSizes[0]);

// nullptr: there is no room.
const BlockSize* ReserveBlock(uint32_t index) {
  Wish wishes[kBlockSizeCount];
  const size_t begin = segment::CommBlockOffset(index);
  for (int i = 0; i < kBlockSizeCount; ++i) {
    wishes[i] = {begin, begin + kBlockSizes[i].bytes, kBlockSizes[i].use};
  }
  if (index < kFirstComms) wishes[kBlockSizeCount - 1].use = RoomFor::kProcess;
  const int chosen = ReserveOneOf(wishes, kBlockSizeCount);
  return chosen < 0 ? nullptr : &kBlockSizes[chosen];
}

void NoteLeftOut(uint32_t what, const char* words, const char* reason) {
  recorder.mapping.load(std::memory_order_acquire)->left_out.fetch_or(what);
  SayLess(words, reason);
}

// Where the segment has no room for records they go where nobody reads them, so that the way of a
// call is always the same.
segment::CallRecord* PrivateRing(LocalComm* comm) {
  if (comm->private_ring != nullptr) return comm->private_ring;
  void* memory = mmap(nullptr, kShortRing * sizeof(segment::CallRecord), PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory != MAP_FAILED) comm->private_ring = static_cast<segment::CallRecord*>(memory);
  return comm->private_ring;
}

// Gives the communicator the block's parts. False: there is no memory.
bool SetBlock(LocalComm* comm, uint32_t index, uint32_t records) {
  char* block = reinterpret_cast<char*>(recorder.mapping.load(std::memory_order_acquire)) +
                segment::CommBlockOffset(index);
  comm->ring = records != 0 ? reinterpret_cast<segment::CallRecord*>(block + segment::kRingOffset)
                            : PrivateRing(comm);
  if (comm->ring == nullptr) return false;
  comm->ring_mask = (records != 0 ? records : kShortRing) - 1;
  comm->lanes = reinterpret_cast<segment::MarkerLane*>(block + segment::kMarkersOffset);
  comm->index = index;
  comm->entry = reinterpret_cast<CommEntry*>(block);
  return true;
}

bool ClaimIndex(uint32_t* index) {
  *index = recorder.comms_claimed.load(std::memory_order_relaxed);
  while (*index < segment::kCommCapacity) {
    if (recorder.comms_claimed.compare_exchange_weak(*index, *index + 1)) return true;
  }
  return false;
}

// A block that no communicator has had; nullptr: all are taken, or there is no room for it.
LocalComm* ClaimNewBlock() {
  uint32_t index;
  if (!ClaimIndex(&index)) return nullptr;
  LocalComm* comm = &recorder.comms[index];
  const BlockSize* size = ReserveBlock(index);
  if (size != nullptr && SetBlock(comm, index, size->records)) {
    if (size->left_out != 0) NoteLeftOut(size->left_out, size->words, nullptr);
    return comm;
  }
  // Given back, unless another thread has claimed the next one already.
  uint32_t end = index + 1;
  recorder.comms_claimed.compare_exchange_strong(end, index);
  return nullptr;
}

// Whether a thread is inside a call on it, and will note there how that went: a call may return
// after the one that aborts its communicator.
bool IsInCall(const LocalComm* comm) {
  for (uint32_t i = 0; i < segment::kBlockedCapacity; ++i) {
    const BlockedEntry& entry = recorder.blocked[i];
    if (entry.since.load(std::memory_order_acquire) == 0) continue;
    switch (KindOf(static_cast<Op>(entry.op.load(std::memory_order_relaxed)))) {
      case CallKind::kLocal:
      case CallKind::kWait:
      case CallKind::kHostWait:
        break;  // they note nothing of a communicator
      case CallKind::kGroup:
        if (GroupNames(entry.tid.load(std::memory_order_relaxed), comm)) return true;
        break;
      default:
        if (entry.comm.load(std::memory_order_relaxed) == comm->index) return true;
    }
  }
  return false;
}

// The block of the first communicator that ended, and into which nobody writes any more.
LocalComm* ClaimEndedBlock() {
  const uint32_t count = recorder.comms_claimed.load(std::memory_order_acquire);
  for (uint32_t i = 0; i < count; ++i) {
    LocalComm* comm = &recorder.comms[i];
    if (comm->entry == nullptr || !MarkersHaveLanded(comm)) continue;
    for (CommState ended :
         {CommState::kDestroyed, CommState::kAborted, CommState::kFailed, CommState::kPassedOver}) {
      uint32_t expected = static_cast<uint32_t>(ended);
      // The state first: it is set while `ending` is, and for the last time before that falls.
      if (comm->entry->state.load(std::memory_order_acquire) != expected ||
          comm->ending.load(std::memory_order_acquire) != 0 || IsInCall(comm)) {
        continue;
      }
      if (comm->entry->state.compare_exchange_strong(expected,
                                                     static_cast<uint32_t>(CommState::kEmpty))) {
        return comm;
      }
    }
  }
  return nullptr;
}

// Pages are touched now, so that the first calls don't pay for it. All but the state, which is set
// last.
void ClearBlock(LocalComm* comm) {
  char* block = reinterpret_cast<char*>(comm->entry);
  memset(block + sizeof(segment::HalfWord), 0, segment::kRingOffset - sizeof(segment::HalfWord));
  memset(static_cast<void*>(comm->ring), 0, (comm->ring_mask + 1) * sizeof(segment::CallRecord));
}

bool IsRecorded(const LocalComm* comm) { return comm->ring != comm->private_ring; }

void FillEntry(CommEntry* entry, const NewComm& what, bool recorded) {
  const auto relaxed = std::memory_order_relaxed;
  entry->id.store(what.id, relaxed);
  entry->base_id.store(what.base_id, relaxed);
  entry->parent_id.store(what.parent_id, relaxed);
  entry->split_id.store(what.split_id, relaxed);
  entry->rank.store(static_cast<uint32_t>(what.rank), relaxed);
  entry->size.store(static_cast<uint32_t>(what.size), relaxed);
  entry->parent_rank.store(static_cast<uint32_t>(what.parent_rank), relaxed);
  entry->parent_size.store(static_cast<uint32_t>(what.parent_size), relaxed);
  entry->device.store(static_cast<uint32_t>(-1), relaxed);
  CopyText(entry->name, sizeof(entry->name), what.name);
  entry->signature.store(segment::kSignatureSeed, relaxed);
  uint32_t flags = 0;
  if (recorded) flags |= segment::kFlagRing;
  if (what.non_blocking) flags |= segment::kFlagNonBlocking;
  entry->flags.store(flags, relaxed);
  entry->init_entered.store(Now(), relaxed);
  entry->state_since.store(Now(), relaxed);
  entry->state.store(static_cast<uint32_t>(CommState::kInitializing), std::memory_order_release);
}

void RaiseCommCount(uint32_t count) {
  SegmentHeader* header = recorder.mapping.load(std::memory_order_acquire);
  uint32_t seen = header->comm_count.load(std::memory_order_relaxed);
  while (seen < count && !header->comm_count.compare_exchange_weak(seen, count)) {
  }
}

// `rollcall run` wants to know whether the library got into the job at all.
// Nothing but one look at the environment happens in any other process.
__attribute__((constructor)) void SayLoaded() {
  const char* file = getenv("ROLLCALL_LOADED");
  if (file == nullptr) return;
  const KeepErrno keep_errno;
  syscall(SYS_utimensat, AT_FDCWD, file, nullptr, 0);
}

__attribute__((destructor)) void MarkExit() {
  SegmentHeader* header = recorder.header.load(std::memory_order_acquire);
  // A child of vfork or of clone, which ran no handler of ours, says nothing of its parent.
  if (header == nullptr || header->pid != static_cast<int32_t>(getpid())) return;
  SetClock(&header->last_clock);
  header->exit_ticks.store(Now(), std::memory_order_relaxed);
  header->exit_mark.store(static_cast<uint32_t>(segment::ExitMark::kExited),
                          std::memory_order_release);
}

}  // namespace

bool StartRecording() {
  if (Recording()) return true;
  const KeepErrno keep_errno;
  const KeepCancel keep_cancel;
  int state = 0;
  if (!start_state.compare_exchange_strong(state, 1)) {
    // A thread per device: all come at once, and each one's communicator counts.
    // Bounded; only calls that create communicators or open groups come here.
    for (int i = 0; i < kStartTries && start_state.load(std::memory_order_acquire) == 1; ++i) {
      const struct timespec pause = {0, 100000};
      syscall(SYS_nanosleep, &pause, nullptr);
    }
    // Its thread may have left for good, by a jump out of a signal handler: nobody waits again.
    int under_way = 1;
    start_state.compare_exchange_strong(under_way, 3);
    return Recording();
  }
  recorder.options = ReadLibraryOptions();
  static bool registered = false;
  if (!registered) {
    registered = &__register_atfork != nullptr &&
                 __register_atfork(&BeforeFork, nullptr, &ForgetParent, __dso_handle) == 0;
  }
  recorder.comms_claimed.store(0, std::memory_order_relaxed);
  // Without the handler a forked child would write into its parent's segment.
  const bool made =
      recorder.options.enabled && registered && !AnotherCopyIsFirst() && MakeSegment();
  start_state.store(made ? 2 : 3, std::memory_order_release);
  return made;
}

namespace {

// As a block that was never used has it.
void ResetComm(LocalComm* comm, bool non_blocking) {
  comm->marker_base = 0;
  comm->non_blocking = comm->on_trial = non_blocking;
  comm->maker.store(0, std::memory_order_relaxed);
  comm->late.since.store(0, std::memory_order_relaxed);
  comm->late.marking_thread.store(0, std::memory_order_relaxed);
  comm->beside = nullptr;
  comm->beside_left_out.store(false, std::memory_order_relaxed);
  comm->by_plugin = false;
  comm->placed_out_of_order = false;
  for (PlacedMarker& placed : comm->placed) placed = PlacedMarker();
}

// nullptr: there is no room (counted, and said).
LocalComm* ClaimComm() {
  LocalComm* comm = ClaimNewBlock();
  if (comm == nullptr) comm = ClaimEndedBlock();
  SegmentHeader* header = recorder.mapping.load(std::memory_order_acquire);
  if (comm != nullptr) {
    if (!IsRecorded(comm)) header->lost_rings.fetch_add(1);
    return comm;
  }
  header->lost_communicators.fetch_add(1);
  const bool is_full =
      recorder.comms_claimed.load(std::memory_order_relaxed) == segment::kCommCapacity;
  NoteLeftOut(segment::kLeftOutCommunicators, "some communicators are missing",
              is_full ? "1024 communicators are in use" : nullptr);
  return nullptr;
}

}  // namespace

LocalComm* AddComm(const NewComm& what) {
  if (!StartRecording()) return nullptr;
  const KeepErrno keep_errno;
  const KeepCancel keep_cancel;
  if (what.base_id != 0) NoteCreation(what.base_id, what.rank);
  if (SegmentIsCutShort()) {
    StopRecording();
    return nullptr;
  }
  LocalComm* comm = ClaimComm();
  if (comm == nullptr) return nullptr;
  ClearBlock(comm);
  ResetComm(comm, what.non_blocking);
  const uint64_t records = comm->ring_mask + 1;
  if (records != segment::kRingCapacity) {
    comm->entry->ring_capacity.store(static_cast<uint32_t>(records), std::memory_order_relaxed);
  }
  FillEntry(comm->entry, what, IsRecorded(comm));
  RaiseCommCount(comm->index + 1);
  InstallStackSignals();
  if (recorder.options.call_sites) StartCallSites();
  if (recorder.options.python_errors) StartPythonErrors();
  if (recorder.options.tensor_shapes) StartTensorShapes();
  return comm;
}

void SetState(LocalComm* comm, segment::CommState state) {
  comm->entry->state_since.store(Now(), std::memory_order_relaxed);
  comm->entry->state.store(static_cast<uint32_t>(state), std::memory_order_release);
}

void ChangeState(LocalComm* comm, segment::CommState from, segment::CommState to) {
  auto expected = static_cast<uint32_t>(from);
  if (comm->entry->state.load(std::memory_order_acquire) != expected) return;
  comm->entry->state_since.store(Now(), std::memory_order_relaxed);
  comm->entry->state.compare_exchange_strong(expected, static_cast<uint32_t>(to));
}

void BindHandle(LocalComm* comm, const void* handle) {
  LocalComm* earlier = FindComm(handle);
  if (earlier != nullptr) ForgetHandle(earlier);
  const auto key = reinterpret_cast<uintptr_t>(handle);
  for (uint32_t i = 0, at = HandleHash(handle); i < kHandleSlots;
       ++i, at = (at + 1) % kHandleSlots) {
    uintptr_t seen = handles[at].handle.load(std::memory_order_relaxed);
    if (seen > 1) continue;
    // Claimed as "free again" while the number is set: readers pass it by.
    if (!handles[at].handle.compare_exchange_strong(seen, 1)) continue;
    handles[at].comm.store(comm->index, std::memory_order_relaxed);
    handles[at].handle.store(key, std::memory_order_release);
    comm->handle.store(handle, std::memory_order_release);
    return;
  }
}

void ForgetHandle(LocalComm* comm) {
  const void* handle = comm->handle.exchange(nullptr, std::memory_order_acq_rel);
  if (handle == nullptr) return;
  const auto key = reinterpret_cast<uintptr_t>(handle);
  for (uint32_t i = 0, at = HandleHash(handle); i < kHandleSlots;
       ++i, at = (at + 1) % kHandleSlots) {
    const uintptr_t seen = handles[at].handle.load(std::memory_order_acquire);
    if (seen == 0) return;
    if (seen == key) {
      handles[at].handle.store(1, std::memory_order_release);
      return;
    }
  }
}

LocalComm* FindComm(const void* handle) {
  const auto key = reinterpret_cast<uintptr_t>(handle);
  if (key <= 1) return nullptr;
  for (uint32_t i = 0, at = HandleHash(handle); i < kHandleSlots;
       ++i, at = (at + 1) % kHandleSlots) {
    const uintptr_t seen = handles[at].handle.load(std::memory_order_acquire);
    if (seen == 0) return nullptr;
    if (seen == key) return &recorder.comms[handles[at].comm.load(std::memory_order_relaxed)];
  }
  return nullptr;
}

void RenewClock() {
  SegmentHeader* header = recorder.header.load(std::memory_order_acquire);
  if (header == nullptr) return;
  const uint64_t now = ClockNs(CLOCK_MONOTONIC);
  if (now - header->last_clock.monotonic_ns.load(std::memory_order_relaxed) < 1000000000u) return;
  SetClock(&header->last_clock);
}

segment::BlockedEntry* ClaimBlockedEntry() {
  const int slot = ClaimThreadSlot(segment::kBlockedCapacity,
                                   [](int i) { return &recorder.blocked[i].tid; });
  if (slot < 0) {
    recorder.mapping.load(std::memory_order_acquire)->lost_threads.fetch_add(1);
    return nullptr;
  }
  recorder.blocked[slot].since.store(0, std::memory_order_relaxed);
  return &recorder.blocked[slot];
}

int32_t ThreadId() { return static_cast<int32_t>(syscall(SYS_gettid)); }

}  // namespace rollcall
