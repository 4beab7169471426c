// SPDX-License-Identifier: Apache-2.0
#include "interpose/old_glibc.h"

#include "interpose/segment_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>

#include "interpose/copy_text.h"
#include "interpose/environment.h"
#include "interpose/measure_room.h"
#include "interpose/pod_environment.h"
#include "interpose/segment.h"
#include "interpose/segment_folder.h"
#include "interpose/stderr_line.h"

namespace rollcall {
namespace {

using segment::SegmentHeader;

constexpr int kTries = 3;
constexpr size_t kLifeBytes = 4096;
constexpr size_t kLargestPage = 65536;  // of any kernel
// The first page of the file, alone; a page that only the maker has; the segment.
constexpr size_t kOwnPageAt = kLargestPage;
constexpr size_t kSegmentAt = 2 * kLargestPage;
constexpr size_t kRegionBytes = kSegmentAt + segment::kMappedBytes;

char segment_path[PATH_MAX];
char segment_folder[PATH_MAX - 64];  // room for the file's name
uint64_t segment_inode;
std::atomic<size_t> reserved_end{0};  // bytes that the file reserved
std::atomic<uint64_t> free_mib{0};    // when last measured
// The address of the mapping, during and after the making, or nullptr. The first page of the file
// is mapped there alone: it keeps the file open, and so the lock, also after the segment's mapping
// behind it has been replaced. Set before anything is mapped there, so that a forked child always
// finds it.
std::atomic<char*> region{nullptr};
// Which pages of the segment are mapped, in units of the smallest page. The rest of the region
// cannot be read: the file has no such pages.
constexpr size_t kSmallestPage = 4096;
std::atomic<bool> mapped[segment::kMappedBytes / kSmallestPage + 1];
enum Ownership : int { kAskKernel = 0, kAskPage = 1 };
// Whether the kernel empties the maker's own page in a child.
std::atomic<int> ownership{kAskKernel};
// Odd while this process makes the file: the file's descriptor, which has the lock too, may be
// open.
std::atomic<uint16_t> file_epoch{0};
std::atomic<bool> reported{false};

// A copy of the path or folder that this thread may hand to the C library (copy_text.h).
struct PathCopy {
  explicit PathCopy(const char* path) { CopyText(text, sizeof(text), path); }
  char text[512];
};

// Writes one line in a process.
void ReportOnce(const char* what, const char* why, const char* path) {
  if (reported.exchange(true)) return;
  char line[700];
  const PathCopy detail(path);
  const Place place = FindPlace(&getenv);
  // Leave a byte for the line break; a long path is cut.
  snprintf(line, sizeof(line) - 1, "rollcall[rank %d, pid %d]: %s, training unaffected: %s %s",
           place.rank, static_cast<int>(getpid()), what, why, detail.text);
  strcat(line, "\n");
  WriteStderrLine(line);
}

// System calls: glibc 2.33 gave both functions new symbol versions.
int StatFd(int fd, struct stat* out) { return static_cast<int>(syscall(SYS_fstat, fd, out)); }
int Stat(const char* path, struct stat* out, int flags) {
  return static_cast<int>(syscall(SYS_newfstatat, AT_FDCWD, path, out, flags));
}

// Any thread may open by the segment's path, which another one has written (copy_text.h).
int Open(const char* path, int flags) {
  return static_cast<int>(syscall(SYS_openat, AT_FDCWD, path, flags, 0));
}

// False if the path is too long. Makes the path absolute: the program may change its directory
// later.
bool NameFolder() {
  const char* wanted = GetSetting("ROLLCALL_DIR");
  if (wanted == nullptr || *wanted == '\0') {
    SegmentFolderSearch::Find(segment_folder, sizeof(segment_folder));
    return true;
  }
  char start[sizeof(segment_folder)] = "";
  if (*wanted != '/' && syscall(SYS_getcwd, start, sizeof(start)) < 0) return false;
  const int length = snprintf(segment_folder, sizeof(segment_folder), "%s%s%s", start,
                              *start != '\0' ? "/" : "", wanted);
  return length > 0 && static_cast<size_t>(length) < sizeof(segment_folder);
}

// Prepares the folder. It must belong to our user and must not be a link: otherwise other users
// could choose where this process writes.
bool PrepareFolder() {
  if (!NameFolder()) {
    ReportNotRecording("too long a path for the segment directory:", segment_folder);
    return false;
  }
  int fd = -1;
  for (int i = 0; i < kTries; ++i) {
    mkdir(segment_folder, 0700);
    fd = open(segment_folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd >= 0 || errno != ENOENT) break;
  }
  if (fd < 0) {
    ReportNotRecording("cannot use the segment directory", segment_folder);
    return false;
  }
  struct stat about;
  const bool ours = StatFd(fd, &about) == 0 && about.st_uid == geteuid();
  close(fd);
  if (!ours) ReportNotRecording("another user owns the segment directory", segment_folder);
  return ours;
}

// Measures anew each time, because NCCL and the program take from the same room.
Room MeasureFolderRoom() {
  Room room;
  const int folder = Open(segment_folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (folder < 0) return room;
  room = MeasureRoom(folder, kSharedMemory);
  close(folder);
  free_mib.store(room.free_bytes >> 20, std::memory_order_relaxed);
  return room;
}

// False if the kernel would send SIGXFSZ.
bool MayWriteTo(size_t end) {
  struct rlimit limit;
  return getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY ||
         end <= limit.rlim_cur;
}

// Reserves room from `begin` to `end`, so that a full file system is an error here and not a SIGBUS
// in the middle of training.
bool Reserve(int fd, size_t begin, size_t end) {
  if (!MayWriteTo(end)) return false;
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
  memset(&lock, 0, sizeof(lock));  // l_pid must be 0 for an OFD lock
  lock.l_type = type;
  lock.l_whence = SEEK_SET;
  lock.l_len = 1;
  return lock;
}

// The open file holds the lock, not the process, so the lock lasts as long as a mapping keeps the
// file open, also without the descriptor. fcntl() has another symbol version in newer glibc.
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

// Whether this very process made the file with our name, before an exec discarded its memory. In
// another pid namespace with the same /dev/shm, a process may have our pid and even our start time.
// It holds its lock while it lives, and we must not remove its file after that. A file without a
// complete header may be in the making.
bool IsFromEarlierExec(uint64_t own_namespace) {
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

// "<pid>-<start time>.seg", or "<pid>-<start time>-<n>.seg" if other processes have the earlier
// names.
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
    bool is_taken = fd < 0 && errno == EEXIST;
    if (is_taken && IsFromEarlierExec(own_namespace)) {
      unlink(segment_path);
      fd = open(segment_path, flags, 0600);
      is_taken = fd < 0 && errno == EEXIST;
    }
    if (!is_taken) return fd;
  }
  return -1;
}

// A process that ends removes the folder if it is empty, so it can go between our making it and
// using it.
int CreateFileInFolder(uint64_t start_time, uint64_t own_namespace) {
  for (int i = 0; i < kTries; ++i) {
    if (!PrepareFolder()) return -1;
    const int fd = CreateFile(start_time, own_namespace);
    if (fd >= 0 || errno != ENOENT) return fd;
  }
  return -1;
}

// The region counts against the program's limit of address space, though nearly all of it stays
// empty. It may take a small part of the limit.
bool HasAddressSpace() {
  constexpr rlim_t kPart = 16;
  struct rlimit limit;
  return getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY ||
         segment::kMappedBytes <= limit.rlim_cur / kPart;
}

// A page that reads 1 in this process and 0 in each child that has a copy of its memory, also in
// one that no fork handler has seen. Linux before 4.14 has no such pages.
void MakeOwnPage(char* page) {
#ifndef MADV_WIPEONFORK
#define MADV_WIPEONFORK 18
#endif
  ownership.store(kAskKernel);
  if (mprotect(page, kLargestPage, PROT_READ | PROT_WRITE) != 0) return;
  if (madvise(page, kLargestPage, MADV_WIPEONFORK) != 0) return;
  *page = 1;
  ownership.store(kAskPage, std::memory_order_release);
}

size_t PageBytes() { return getauxval(AT_PAGESZ); }
size_t PageOf(size_t offset) { return offset / PageBytes() * PageBytes(); }
bool IsMapped(size_t offset) {
  return mapped[offset / kSmallestPage].load(std::memory_order_acquire);
}

// Maps the bytes in the place of the segment, for reading and writing. The file must have them: a
// tool that looks for pointers in all memory of a process (valgrind's search for leaks) reads
// everything that is mapped for reading, and a page without a file behind it costs a SIGBUS for
// each word. A page that is mapped stays as it is, because the GPU may write there.
bool MapPart(int fd, size_t begin, size_t end) {
  const size_t page = PageBytes();
  begin = PageOf(begin);
  end = PageOf(end + page - 1);
  while (begin < end && IsMapped(begin)) begin += page;
  while (begin < end && IsMapped(end - page)) end -= page;
  char* const start = region.load() + kSegmentAt;
  if (begin < end && mmap(start + begin, end - begin, PROT_READ | PROT_WRITE,
                          MAP_SHARED | MAP_FIXED, fd, static_cast<off_t>(begin)) == MAP_FAILED) {
    return false;
  }
  for (size_t at = begin; at < end; at += page) {
    mapped[at / kSmallestPage].store(true, std::memory_order_release);
  }
  return true;
}

size_t StackAreaBegin() { return PageOf(segment::kStackAreaOffset); }
size_t StackAreaEnd() { return PageOf(segment::kSitesOffset + PageBytes() - 1); }

// Maps the stack area, which is a hole in the file until an agent requests stacks. Only for
// writing: so it is not memory that one may read.
void MapStackArea(int fd) {
  const size_t begin = StackAreaBegin();
  mmap(region.load() + kSegmentAt + begin, StackAreaEnd() - begin, PROT_WRITE,
       MAP_SHARED | MAP_FIXED, fd, static_cast<off_t>(begin));
}

// Maps what the file has, and its first page once more. After a failure the address range stays
// reserved, because another thread may have mapped parts of it by then. False if there is no room,
// or no memory.
bool MapFile(int fd, SegmentFile* file) {
  struct stat about;
  reserved_end.store(0, std::memory_order_relaxed);
  if (StatFd(fd, &about) != 0 ||
      !HasRoom(MeasureFolderRoom(), segment::kHeaderBytes, RoomFor::kProcess) ||
      !Reserve(fd, 0, segment::kHeaderBytes)) {
    return false;
  }
  segment_inode = about.st_ino;
  void* reserved =
      mmap(nullptr, kRegionBytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (reserved == MAP_FAILED) return false;
  char* const start = static_cast<char*>(reserved);
  region.store(start);
  MakeOwnPage(start + kOwnPageAt);
  for (std::atomic<bool>& page : mapped) page.store(false, std::memory_order_relaxed);
  if (!MapPart(fd, 0, segment::kHeaderBytes)) {
    region.store(nullptr);
    return false;
  }
  MapStackArea(fd);
  mmap(start, kLifeBytes, PROT_READ, MAP_SHARED | MAP_FIXED, fd, 0);
  file->memory = start + kSegmentAt;
  return true;
}

// False if mmap failed, and the mapping stays as it is.
bool ReplaceMapping(char* memory, size_t bytes) {
  return bytes == 0 ||
         mmap(memory, bytes, PROT_READ | PROT_WRITE,
              MAP_FIXED | MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0) != MAP_FAILED;
}

// Puts private memory in the place of what is mapped of the segment, and of nothing else: all of it
// would be 47 MB of those that the process may have (RLIMIT_DATA, vm.overcommit_memory=2), and it
// may have few. False if it may have less still.
bool ReplaceMapped(char* segment) {
  const size_t page = PageBytes(), stacks = StackAreaBegin();
  bool all = ReplaceMapping(segment + stacks, StackAreaEnd() - stacks);
  for (size_t begin = 0, end = 0; begin < segment::kMappedBytes; begin = end + page) {
    for (end = begin; end < segment::kMappedBytes && IsMapped(end);) end += page;
    all = ReplaceMapping(segment + begin, end - begin) && all;
  }
  return all;
}

// Closes the parent's descriptor of its file, if it was open at the fork. Searches all numbers: the
// fork may come between the open and a record of its number.
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

// Opens the segment's file, if it still has its name; -1 if it does not.
int OpenAgain() {
  const int fd = Open(segment_path, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
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
    ReportNotRecording("the limit of address space is low", "(ulimit -v)");
    return file;
  }
  file.pid_namespace = PidNamespace();
  file_epoch.fetch_add(1);
  const int fd = CreateFileInFolder(start_time, file.pid_namespace);
  if (fd < 0) {
    file_epoch.fetch_add(1);
    ReportNotRecording("cannot create", segment_path);
    return file;
  }
  file.life_lock = TakeLifeLock(fd);
  const bool mapped = MapFile(fd, &file);
  close(fd);
  file_epoch.fetch_add(1);
  if (mapped) return file;
  unlink(segment_path);
  char detail[512];
  snprintf(detail, sizeof(detail), "%.450s (%llu MiB free)", segment_path,
           static_cast<unsigned long long>(free_mib.load(std::memory_order_relaxed)));
  ReportNotRecording("no room for", detail);
  return file;
}

bool MadeSegmentFile(int32_t maker) {
  const char* const start = region.load(std::memory_order_acquire);
  if (start == nullptr) return false;
  if (ownership.load(std::memory_order_acquire) == kAskPage) return start[kOwnPageAt] != 0;
  return maker == static_cast<int32_t>(getpid());
}

const char* SegmentPath() { return segment_path; }

// Opens the file each time: the program may have closed a descriptor that it did not open, and used
// its number again.
int ReserveFirstFit(const SegmentPart* parts, int count) {
  const int fd = OpenAgain();
  if (fd < 0) return -1;
  const Room room = MeasureFolderRoom();
  int chosen = 0;
  while (chosen < count) {
    const SegmentPart& part = parts[chosen];
    if (HasRoom(room, part.end - part.begin, part.use) && Reserve(fd, part.begin, part.end) &&
        MapPart(fd, part.begin, part.end)) {
      break;
    }
    ++chosen;
  }
  close(fd);
  return chosen < count ? chosen : -1;
}

bool ReserveInSegment(size_t begin, size_t end) {
  const SegmentPart part = {begin, end, RoomFor::kLongHistories};
  return ReserveFirstFit(&part, 1) == 0;
}

// False if the file has lost its name: another process then cannot truncate it by path.
bool SegmentIsCutShort() {
  // Read this before the file's size: another thread may be extending the file.
  const size_t reserved = reserved_end.load(std::memory_order_acquire);
  struct stat about;
  return Stat(segment_path, &about, AT_SYMLINK_NOFOLLOW) == 0 && about.st_ino == segment_inode &&
         static_cast<size_t>(about.st_size) < reserved;
}

bool CoverSegment(const void* address) {
  char* const start = region.load(std::memory_order_acquire);
  const char* const at = static_cast<const char*>(address);
  if (start == nullptr || at < start + kSegmentAt || at >= start + kRegionBytes) return false;
  return ReplaceMapped(start + kSegmentAt);
}

void GiveUpSegmentFile(void* memory, const char* why) {
  ReplaceMapped(static_cast<char*>(memory));
  const int fd = OpenAgain();
  struct stat about;
  constexpr size_t kEnd = offsetof(SegmentHeader, magic) + sizeof(SegmentHeader::magic);
  if (fd >= 0 && StatFd(fd, &about) == 0 && static_cast<size_t>(about.st_size) >= kEnd &&
      MayWriteTo(kEnd)) {
    const uint64_t no_magic = 0;
    const ssize_t written = pwrite(fd, &no_magic, sizeof(no_magic), offsetof(SegmentHeader, magic));
    static_cast<void>(written);  // on an error the file stays truncated, with its magic number
  }
  if (fd >= 0) close(fd);
  reported.store(false);  // report again: now everything is missing
  ReportNotRecording(why, segment_path);
}

uint16_t SegmentFileEpoch() { return file_epoch.load(); }

// The kernel copies the descriptors before it copies the memory. So if a descriptor was open at the
// fork, this memory shows its making as in progress, or as ended since the fork began.
void ForgetSegmentFile(uint16_t epoch_before_fork) {
  char* const inherited = region.exchange(nullptr);
  if (inherited != nullptr) ReplaceMapping(inherited, kRegionBytes);
  const uint16_t begun = file_epoch.load();
  const bool under_way = begun % 2 != 0;
  if (under_way || begun != epoch_before_fork) CloseInherited();
  if (under_way) file_epoch.fetch_add(1);
  reported.store(false);
}

void ReportNotRecording(const char* why, const char* detail) {
  ReportOnce("not recording", why, detail);
}

void ReportPartialRecording(const char* what, const char* reason) {
  char why[500];
  if (reason == nullptr) {
    snprintf(why, sizeof(why), "%.400s has %llu MiB free:", PathCopy(segment_folder).text,
             static_cast<unsigned long long>(free_mib.load(std::memory_order_relaxed)));
  } else {
    snprintf(why, sizeof(why), "%s:", reason);
  }
  ReportOnce("recording less", why, what);
}

}  // namespace rollcall
