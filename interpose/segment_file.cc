// SPDX-License-Identifier: Apache-2.0
#include "interpose/old_glibc.h"

#include "interpose/segment_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>

#include "interpose/environment.h"
#include "interpose/measure_room.h"
#include "interpose/say.h"
#include "interpose/segment.h"

namespace rollcall {
namespace {

using segment::SegmentHeader;

constexpr char kSharedMemory[] = "/dev/shm";
constexpr size_t kLifeBytes = 4096;
constexpr size_t kLifeRoom = 65536;  // the largest page of any kernel
constexpr size_t kRegionBytes = kLifeRoom + segment::kMappedBytes;

char segment_path[PATH_MAX];
char segment_folder[PATH_MAX - 64];  // room for the file's name
uint64_t segment_inode;
std::atomic<size_t> reserved_end{0};  // bytes that the file had room for
std::atomic<uint64_t> free_mib{0};    // at the last look
// Where the file is mapped, or will be; nullptr: nowhere. Its first page comes first, alone: it keeps
// the file open, and so the lock, also when the segment's own mapping behind it has been given up.
// Known before anything is mapped there, so that a child finds it whenever it is forked.
std::atomic<char*> region{nullptr};
// Odd while the file is being made: its descriptor may be open then, and has the lock too.
std::atomic<uint16_t> makings{0};
std::atomic<bool> said{false};

// Once a process.
void Say(const char* what, const char* why, const char* detail) {
  if (said.exchange(true)) return;
  char line[700];
  const Place place = FindPlace(&getenv);
  // A path that is too long for a line is cut.
  snprintf(line, sizeof(line) - 1, "rollcall[rank %d, pid %d]: %s, training unaffected: %s %s",
           place.rank, static_cast<int>(getpid()), what, why, detail);
  strcat(line, "\n");
  SayLine(line);
}

void SayNotRecording(const char* why, const char* detail) { Say("not recording", why, detail); }

// Called directly: glibc 2.33 gave both new symbol versions.
int StatFd(int fd, struct stat* out) { return static_cast<int>(syscall(SYS_fstat, fd, out)); }
int Stat(const char* path, struct stat* out, int flags) {
  return static_cast<int>(syscall(SYS_newfstatat, AT_FDCWD, path, out, flags));
}

// False: it is too long. A program may change its directory later, so the path is made absolute.
bool NameFolder() {
  const char* wanted = getenv("ROLLCALL_DIR");
  const bool given = wanted != nullptr && *wanted != '\0';
  char start[sizeof(segment_folder)] = "";
  if (given && *wanted != '/' && syscall(SYS_getcwd, start, sizeof(start)) < 0) return false;
  const int length =
      given ? snprintf(segment_folder, sizeof(segment_folder), "%s%s%s", start,
                       *start != '\0' ? "/" : "", wanted)
            : snprintf(segment_folder, sizeof(segment_folder), "/dev/shm/rollcall-%u",
                       static_cast<unsigned>(geteuid()));
  return length > 0 && static_cast<size_t>(length) < sizeof(segment_folder);
}

// $ROLLCALL_DIR, or /dev/shm/rollcall-<uid>, made if need be. It must be ours
// and no link: others could else choose where this process writes.
bool PrepareFolder() {
  if (!NameFolder()) {
    SayNotRecording("too long a path for the segment directory:", segment_folder);
    return false;
  }
  mkdir(segment_folder, 0700);
  const int fd = open(segment_folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (fd < 0) {
    SayNotRecording("cannot use the segment directory", segment_folder);
    return false;
  }
  struct stat about;
  const bool ours = StatFd(fd, &about) == 0 && about.st_uid == geteuid();
  close(fd);
  if (!ours) SayNotRecording("another user owns the segment directory", segment_folder);
  return ours;
}

// Measured anew each time: NCCL and the program take from it too.
Room RoomOfFolder() {
  Room room;
  const int folder = open(segment_folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (folder < 0) return room;
  room = MeasureRoom(folder, kSharedMemory);
  close(folder);
  free_mib.store(room.free_bytes >> 20, std::memory_order_relaxed);
  return room;
}

// Gives the file room from `begin` to `end`, so that a full file system is an error here
// and not a SIGBUS in the middle of training.
bool Reserve(int fd, size_t begin, size_t end) {
  struct rlimit limit;
  if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY &&
      limit.rlim_cur < end) {
    return false;  // the kernel would send SIGXFSZ
  }
  if (syscall(SYS_fallocate, fd, 0, static_cast<long>(begin), static_cast<long>(end - begin)) !=
      0) {
    return false;
  }
  size_t seen = reserved_end.load(std::memory_order_relaxed);
  while (seen < end && !reserved_end.compare_exchange_weak(seen, end)) {
  }
  return true;
}

struct flock FirstByte(short type) {
  struct flock lock;
  memset(&lock, 0, sizeof(lock));  // for such locks l_pid must be 0
  lock.l_type = type;
  lock.l_whence = SEEK_SET;
  lock.l_len = 1;
  return lock;
}

// Held by the open file, not by the process: so it lasts as long as something has the file mapped,
// though the descriptor is closed. fcntl() itself has another version in newer glibc.
bool TakeLifeLock(int fd) {
  struct flock lock = FirstByte(F_WRLCK);
  return syscall(SYS_fcntl, fd, F_OFD_SETLK, &lock) == 0;
}

bool IsLocked(int fd) {
  struct flock lock = FirstByte(F_WRLCK);
  return syscall(SYS_fcntl, fd, F_OFD_GETLK, &lock) != 0 || lock.l_type != F_UNLCK;
}

uint64_t PidNamespace() {
  struct stat about;
  return Stat("/proc/self/ns/pid", &about, 0) == 0 ? about.st_ino : 0;
}

// Whether the file under our name is of this very process: it made it before an exec, whose memory
// is gone. In another pid namespace, on the same /dev/shm, a process may have our pid and even our
// start time; it holds its lock while it lives, and what it left is not ours to remove. A header
// that is not complete may become one.
bool IsOurEarlier(uint64_t own_namespace) {
  const int fd = open(segment_path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  if (fd < 0) return false;
  alignas(SegmentHeader) char bytes[sizeof(SegmentHeader)];
  const auto* header = reinterpret_cast<const SegmentHeader*>(bytes);
  const bool whole = pread(fd, bytes, sizeof(bytes), 0) == static_cast<ssize_t>(sizeof(bytes)) &&
                     header->magic.load(std::memory_order_relaxed) == segment::kMagic;
  const bool ours = whole && !IsLocked(fd) &&
                    (header->pid_namespace == 0 || header->pid_namespace == own_namespace);
  close(fd);
  return ours;
}

// "<pid>-<start time>.seg", or "<pid>-<start time>-<n>.seg" where others have the names before.
bool NameFile(uint64_t start_time, int n) {
  char number[16] = "";
  if (n > 0) snprintf(number, sizeof(number), "-%d", n);
  const int length =
      snprintf(segment_path, sizeof(segment_path), "%s/%d-%llu%s.seg", segment_folder,
               static_cast<int>(getpid()), static_cast<unsigned long long>(start_time), number);
  return length > 0 && static_cast<size_t>(length) < sizeof(segment_path);
}

int CreateFile(uint64_t start_time, uint64_t own_namespace) {
  constexpr int kMostNames = 16;
  const int flags = O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
  for (int n = 0; n < kMostNames; ++n) {
    if (!NameFile(start_time, n)) return -1;
    int fd = open(segment_path, flags, 0600);
    if (fd < 0 && errno == EEXIST && IsOurEarlier(own_namespace)) {
      unlink(segment_path);
      fd = open(segment_path, flags, 0600);
    }
    if (fd >= 0 || errno != EEXIST) return fd;
  }
  return -1;
}

// The mapping counts against the program's limit of address space, though nearly all of it stays
// empty: it takes a small part of that at most.
bool HasAddressSpace() {
  constexpr rlim_t kPart = 16;
  struct rlimit limit;
  return getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY ||
         segment::kMappedBytes <= limit.rlim_cur / kPart;
}

// Maps the file, and its first page once more. Where that fails, the region stays reserved: parts
// of it may be another's by now. False: there is no room, or no memory.
bool MapFile(int fd, SegmentFile* file) {
  struct stat about;
  reserved_end.store(0, std::memory_order_relaxed);
  if (StatFd(fd, &about) != 0 ||
      !HasRoom(RoomOfFolder(), segment::kHeaderBytes, RoomFor::kProcess) ||
      !Reserve(fd, 0, segment::kHeaderBytes)) {
    return false;
  }
  segment_inode = about.st_ino;
  void* reserved = mmap(nullptr, kRegionBytes, PROT_NONE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (reserved == MAP_FAILED) return false;
  char* const start = static_cast<char*>(reserved);
  region.store(start);
  void* memory = mmap(start + kLifeRoom, segment::kMappedBytes, PROT_READ | PROT_WRITE,
                      MAP_SHARED | MAP_FIXED, fd, 0);
  if (memory == MAP_FAILED) {
    region.store(nullptr);
    return false;
  }
  mmap(start, kLifeBytes, PROT_READ, MAP_SHARED | MAP_FIXED, fd, 0);
  file->memory = memory;
  return true;
}

// Any failure leaves the mapping as it is.
void ReplaceMapping(void* memory, size_t bytes) {
  mmap(memory, bytes, PROT_READ | PROT_WRITE,
       MAP_FIXED | MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
}

// The parent's descriptor of its file, if it was open when the parent forked. Its number is not
// known: between the opening and a note of that the process can be forked too.
void CloseInherited() {
  constexpr int kMost = 65536;  // the kernel gives low numbers first
  struct stat file, about;
  if (Stat(segment_path, &file, AT_SYMLINK_NOFOLLOW) != 0) return;
  for (int fd = 0; fd < kMost; ++fd) {
    if (StatFd(fd, &about) != 0 || about.st_ino != file.st_ino || about.st_dev != file.st_dev) {
      continue;
    }
    syscall(SYS_close, fd);
  }
}

// The segment's file, if it still has its name. -1: it has not.
int OpenAgain() {
  const int fd = open(segment_path, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
  if (fd < 0) return -1;
  struct stat about;
  if (StatFd(fd, &about) == 0 && about.st_ino == segment_inode) return fd;
  close(fd);
  return -1;
}

}  // namespace

SegmentFile MakeSegmentFile(uint64_t start_time) {
  SegmentFile file;
  if (!HasAddressSpace()) {
    SayNotRecording("the limit of address space is low", "(ulimit -v)");
    return file;
  }
  if (!PrepareFolder()) return file;
  file.pid_namespace = PidNamespace();
  makings.fetch_add(1);
  const int fd = CreateFile(start_time, file.pid_namespace);
  if (fd < 0) {
    makings.fetch_add(1);
    SayNotRecording("cannot create", segment_path);
    return file;
  }
  file.life_lock = TakeLifeLock(fd);
  const bool mapped = MapFile(fd, &file);
  close(fd);
  makings.fetch_add(1);
  if (mapped) return file;
  unlink(segment_path);
  char detail[600];
  snprintf(detail, sizeof(detail), "%.500s (%llu MiB free)", segment_path,
           static_cast<unsigned long long>(free_mib.load(std::memory_order_relaxed)));
  SayNotRecording("no room for", detail);
  return file;
}

const char* SegmentPath() { return segment_path; }

// The file is opened anew each time: the program may have closed descriptors that
// it does not know, and reused their numbers.
int ReserveOneOf(const Wish* wishes, int count) {
  const int fd = OpenAgain();
  if (fd < 0) return -1;
  const Room room = RoomOfFolder();
  int chosen = 0;
  while (chosen < count) {
    const Wish& wish = wishes[chosen];
    if (HasRoom(room, wish.end - wish.begin, wish.use) && Reserve(fd, wish.begin, wish.end)) break;
    ++chosen;
  }
  close(fd);
  return chosen < count ? chosen : -1;
}

bool ReserveInSegment(size_t begin, size_t end) {
  const Wish wish = {begin, end, RoomFor::kLongHistories};
  return ReserveOneOf(&wish, 1) == 0;
}

// Where the file has lost its name nobody can cut it by that.
bool SegmentIsCutShort() {
  // Read before the file's size: another thread may make the file longer at this moment.
  const size_t reserved = reserved_end.load(std::memory_order_acquire);
  struct stat about;
  return Stat(segment_path, &about, AT_SYMLINK_NOFOLLOW) == 0 && about.st_ino == segment_inode &&
         static_cast<size_t>(about.st_size) < reserved;
}

void GiveUpSegmentFile(void* memory) {
  ReplaceMapping(memory, segment::kMappedBytes);
  const int fd = OpenAgain();
  if (fd >= 0) {
    const uint64_t no_magic = 0;
    const ssize_t written = pwrite(fd, &no_magic, sizeof(no_magic), offsetof(SegmentHeader, magic));
    static_cast<void>(written);  // then it is as cut as it was
    close(fd);
  }
  said.store(false);  // more than a part is missing now
  SayNotRecording("somebody cut short", segment_path);
}

uint16_t SegmentMakings() { return makings.load(); }

// The kernel copies the descriptors before it copies the memory: so one that was open is that of a
// making that this memory knows of, as under way or as over since.
void ForgetSegmentFile(uint16_t makings_before_fork) {
  char* const inherited = region.exchange(nullptr);
  if (inherited != nullptr) ReplaceMapping(inherited, kRegionBytes);
  const uint16_t begun = makings.load();
  const bool under_way = begun % 2 != 0;
  if (under_way || begun != makings_before_fork) CloseInherited();
  if (under_way) makings.fetch_add(1);
  said.store(false);
}

void SayLess(const char* what, const char* reason) {
  char why[500];
  if (reason == nullptr) {
    snprintf(why, sizeof(why), "%.400s has %llu MiB free:", segment_folder,
             static_cast<unsigned long long>(free_mib.load(std::memory_order_relaxed)));
  } else {
    snprintf(why, sizeof(why), "%s:", reason);
  }
  Say("recording less", why, what);
}

}  // namespace rollcall
