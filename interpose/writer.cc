#include "interpose/old_glibc.h"

#include "interpose/writer.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <initializer_list>

#include "interpose/annotations.h"
#include "interpose/call_sites.h"
#include "interpose/python_errors.h"
#include "interpose/torch_shapes.h"
#include "interpose/shapes.h"
#include "interpose/environment.h"
#include "interpose/keep_cancel.h"
#include "interpose/keep_errno.h"
#include "interpose/say.h"
#include "interpose/stack_signals.h"

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
char segment_path[512];
uint64_t segment_inode;

// One line, once a process.
void SayNotRecording(const char* why, const char* detail) {
  char line[700];
  const Place place = FindPlace(&getenv);
  snprintf(line, sizeof(line),
           "rollcall[rank %d, pid %d]: not recording, training unaffected: %s %s\n", place.rank,
           static_cast<int>(getpid()), why, detail);
  SayLine(line);
}

int StatFd(int fd, struct stat* out) {
  // Called directly: glibc 2.33 gave fstat a new symbol version.
  return static_cast<int>(syscall(SYS_fstat, fd, out));
}

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

// $ROLLCALL_DIR, or /dev/shm/rollcall-<uid>, made if need be. It must be ours
// and no link: others could else choose where this process writes.
bool PrepareDirectory(char* out, size_t size) {
  const char* wanted = getenv("ROLLCALL_DIR");
  if (wanted != nullptr && *wanted != '\0') {
    snprintf(out, size, "%s", wanted);
  } else {
    snprintf(out, size, "/dev/shm/rollcall-%u", static_cast<unsigned>(geteuid()));
  }
  mkdir(out, 0700);
  const int fd = open(out, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (fd < 0) {
    SayNotRecording("cannot use the segment directory", out);
    return false;
  }
  struct stat about;
  const bool ours = StatFd(fd, &about) == 0 && about.st_uid == geteuid();
  close(fd);
  if (!ours) SayNotRecording("another user owns the segment directory", out);
  return ours;
}

// Gives the file room from `begin` to `end`, so that a full file system is an error here
// and not a SIGBUS in the middle of training.
bool Reserve(int fd, size_t begin, size_t end) {
  struct rlimit limit;
  if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY &&
      limit.rlim_cur < end) {
    return false;  // the kernel would send SIGXFSZ
  }
  return syscall(SYS_fallocate, fd, 0, static_cast<long>(begin), static_cast<long>(end - begin)) ==
         0;
}

int CreateFile(const char* directory, uint64_t start_time) {
  const int length =
      snprintf(segment_path, sizeof(segment_path), "%s/%d-%llu.seg", directory,
               static_cast<int>(getpid()), static_cast<unsigned long long>(start_time));
  if (length < 0 || static_cast<size_t>(length) >= sizeof(segment_path)) return -1;
  const int flags = O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
  int fd = open(segment_path, flags, 0600);
  if (fd < 0 && errno == EEXIST) {
    // This very process made it before an exec, whose memory is gone.
    unlink(segment_path);
    fd = open(segment_path, flags, 0600);
  }
  return fd;
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
  CopyText(header->job, sizeof(header->job), FindJob(&getenv));
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

// A child that outlives its parent must not hold the parent's file. Empty memory stays in its
// place: the fork may have come from inside a call, which writes there once more.
void LetGoOfMapping(SegmentHeader* header) {
  if (header == nullptr) return;
  const KeepErrno keep_errno;
  const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED;
  if (mmap(header, segment::kMappedBytes, PROT_READ | PROT_WRITE, flags, -1, 0) == MAP_FAILED) {
    munmap(header, segment::kMappedBytes);
  }
}

// A child of fork shares the parent's mapping and must not write to it. It
// starts afresh at its own first NCCL call. Single-threaded at this point.
void ForgetParent() {
  RemoveStackSignals();
  StopCallSites();
  ForgetShapes();
  LetGoOfMapping(recorder.header.exchange(nullptr, std::memory_order_acq_rel));
  start_state.store(0, std::memory_order_release);
  // To the end: another thread may have been making the first while this one made the second.
  for (LocalComm& comm : recorder.comms) {
    comm.handle.store(nullptr, std::memory_order_relaxed);
    comm.entry = nullptr;
  }
  for (HandleSlot& slot : handles) slot.handle.store(0, std::memory_order_relaxed);
  ForgetThread();
}

// Weak: musl has none, and nothing is recorded there.
extern "C" __attribute__((weak)) int __register_atfork(void (*)(), void (*)(), void (*)(), void*);
extern "C" void* __dso_handle;

bool MakeSegment() {
  char directory[400];
  if (!PrepareDirectory(directory, sizeof(directory))) return false;
  const uint64_t start_time = OwnStartTime();
  const int fd = CreateFile(directory, start_time);
  if (fd < 0) {
    SayNotRecording("cannot create", segment_path);
    return false;
  }
  struct stat about;
  void* memory = MAP_FAILED;
  if (StatFd(fd, &about) == 0 && Reserve(fd, 0, segment::kHeaderBytes)) {
    memory = mmap(nullptr, segment::kMappedBytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  }
  close(fd);
  if (memory == MAP_FAILED) {
    unlink(segment_path);
    SayNotRecording("no room for", segment_path);
    return false;
  }
  segment_inode = about.st_ino;
  auto* header = static_cast<SegmentHeader*>(memory);
  recorder.blocked =
      reinterpret_cast<BlockedEntry*>(static_cast<char*>(memory) + segment::kBlockedOffset);
  recorder.clock = CounterIsInvariant() && KernelTrustsCounter() ? segment::ClockSource::kCounter
                                                                 : segment::ClockSource::kMonotonic;
  FillHeader(header, start_time);
  header->magic.store(segment::kMagic, std::memory_order_release);
  recorder.header.store(header, std::memory_order_release);
  return true;
}

}  // namespace

// The file is opened anew each time: the program may have closed descriptors that
// it does not know, and reused their numbers.
bool ReserveInSegment(size_t begin, size_t end) {
  const int fd = open(segment_path, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
  if (fd < 0) return false;
  struct stat about;
  const bool same = StatFd(fd, &about) == 0 && about.st_ino == segment_inode;
  const bool reserved = same && Reserve(fd, begin, end);
  close(fd);
  return reserved;
}

namespace {

bool ReserveBlock(uint32_t index) {
  return ReserveInSegment(segment::CommBlockOffset(index), segment::CommBlockOffset(index + 1));
}

uint32_t HandleHash(const void* handle) {
  return static_cast<uint32_t>(segment::Mix(0, reinterpret_cast<uintptr_t>(handle))) % kHandleSlots;
}

std::atomic<uint32_t> comms_claimed{0};

// The next unused block; when all were used, the first whose communicator ended.
uint32_t ClaimBlock() {
  uint32_t index = comms_claimed.load(std::memory_order_relaxed);
  while (index < segment::kCommCapacity) {
    if (comms_claimed.compare_exchange_weak(index, index + 1)) return index;
  }
  for (uint32_t i = 0; i < segment::kCommCapacity; ++i) {
    CommEntry* entry = recorder.comms[i].entry;
    if (entry == nullptr) continue;
    for (CommState ended :
         {CommState::kDestroyed, CommState::kAborted, CommState::kFailed, CommState::kPassedOver}) {
      uint32_t expected = static_cast<uint32_t>(ended);
      if (entry->state.compare_exchange_strong(expected,
                                               static_cast<uint32_t>(CommState::kEmpty))) {
        return i;
      }
    }
  }
  return segment::kNoComm;
}

// Pages are touched now, so that the first calls don't pay for it.
void ClearBlock(char* block, bool reused) {
  if (reused) {
    memset(block + sizeof(segment::HalfWord), 0,
           segment::kMarkersOffset - sizeof(segment::HalfWord));
    memset(block + segment::kMarkersOffset, 0, segment::kRingOffset - segment::kMarkersOffset);
  }
  memset(block + segment::kRingOffset, 0, segment::kCommBlockBytes - segment::kRingOffset);
}

void FillEntry(CommEntry* entry, const NewComm& what) {
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
  uint32_t flags = segment::kFlagRing;
  if (what.non_blocking) flags |= segment::kFlagNonBlocking;
  entry->flags.store(flags, relaxed);
  entry->init_entered.store(Now(), relaxed);
  entry->state_since.store(Now(), relaxed);
  entry->state.store(static_cast<uint32_t>(CommState::kInitializing), std::memory_order_release);
}

void RaiseCommCount(uint32_t count) {
  SegmentHeader* header = recorder.header.load(std::memory_order_acquire);
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
                 __register_atfork(nullptr, nullptr, &ForgetParent, __dso_handle) == 0;
  }
  comms_claimed.store(0, std::memory_order_relaxed);
  // Without the handler a forked child would write into its parent's segment.
  const bool made =
      recorder.options.enabled && registered && !AnotherCopyIsFirst() && MakeSegment();
  start_state.store(made ? 2 : 3, std::memory_order_release);
  return made;
}

LocalComm* AddComm(const NewComm& what) {
  if (!StartRecording()) return nullptr;
  const KeepErrno keep_errno;
  const KeepCancel keep_cancel;
  SegmentHeader* header = recorder.header.load(std::memory_order_acquire);
  const uint32_t index = ClaimBlock();
  const bool reused = index != segment::kNoComm && recorder.comms[index].entry != nullptr;
  if (index == segment::kNoComm || !(reused || ReserveBlock(index))) {
    if (header->lost_communicators.fetch_add(1) == 0) {
      SayNotRecording("no room for one more communicator in", segment_path);
    }
    return nullptr;
  }
  char* block = reinterpret_cast<char*>(header) + segment::CommBlockOffset(index);
  ClearBlock(block, reused);
  LocalComm* comm = &recorder.comms[index];
  comm->entry = reinterpret_cast<CommEntry*>(block);
  comm->lanes = reinterpret_cast<segment::MarkerLane*>(block + segment::kMarkersOffset);
  comm->ring = reinterpret_cast<segment::CallRecord*>(block + segment::kRingOffset);
  comm->index = index;
  comm->marker_base = 0;
  comm->non_blocking = comm->on_trial = what.non_blocking;
  comm->maker.store(0, std::memory_order_relaxed);
  comm->late.since.store(0, std::memory_order_relaxed);
  comm->late.marking_thread.store(0, std::memory_order_relaxed);
  comm->beside = nullptr;
  comm->by_plugin = false;
  FillEntry(comm->entry, what);
  RaiseCommCount(index + 1);
  InstallStackSignals(segment_path);
  if (recorder.options.call_sites) StartCallSites();
  if (recorder.options.python_errors) StartPythonErrors();
  if (recorder.options.tensor_shapes) StartTensorShapes();
  return comm;
}

uint32_t TimesCreated(uint64_t base_id, int32_t rank) {
  uint32_t times = 0;
  for (const LocalComm& comm : recorder.comms) {
    if (comm.entry == nullptr) break;
    times += comm.entry->base_id.load(std::memory_order_relaxed) == base_id &&
             comm.entry->rank.load(std::memory_order_relaxed) == static_cast<uint32_t>(rank);
  }
  return times;
}

void SetState(LocalComm* comm, segment::CommState state) {
  comm->entry->state_since.store(Now(), std::memory_order_relaxed);
  comm->entry->state.store(static_cast<uint32_t>(state), std::memory_order_release);
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
  const KeepErrno keep_errno;
  const auto tid = static_cast<uint32_t>(ThreadId());
  for (bool reclaim : {false, true}) {
    for (uint32_t i = 0; i < segment::kBlockedCapacity; ++i) {
      BlockedEntry* entry = &recorder.blocked[i];
      uint32_t owner = entry->tid.load(std::memory_order_relaxed);
      const bool gone =
          owner != 0 && reclaim && syscall(SYS_tgkill, getpid(), static_cast<int>(owner), 0) != 0;
      if (owner != 0 && !gone) continue;
      if (!entry->tid.compare_exchange_strong(owner, tid)) continue;
      entry->since.store(0, std::memory_order_relaxed);
      return entry;
    }
  }
  recorder.header.load(std::memory_order_acquire)->lost_threads.fetch_add(1);
  return nullptr;
}

int32_t ThreadId() { return static_cast<int32_t>(syscall(SYS_gettid)); }

}  // namespace rollcall
