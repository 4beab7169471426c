// SPDX-License-Identifier: Apache-2.0
#include "cli/run/job_directory.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cstddef>
#include <filesystem>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "agent/link/agent.h"
#include "agent/link/agent_info.h"
#include "agent/processes/held_lock.h"
#include "agent/processes/proc_stat.h"
#include "agent/processes/this_host.h"
#include "interpose/segment.h"
#include "interpose/segment_folder.h"

namespace rollcall {
namespace {

constexpr char kOwnerFile[] = "run.owner";
constexpr char kOwnerLine[] = "This folder belongs to a `rollcall run`, which removes it.";
constexpr size_t kMostOwnerBytes = 1024;
constexpr int kMostNames = 100;
constexpr time_t kMadeWithinS = 60;  // a process completes its segment in less time

// Sets `taken` if another user has the usual folder, so that this is another one.
std::string BaseDirectory(bool* taken) {
  *taken = false;
  const char* given = getenv("ROLLCALL_DIR");
  if (given != nullptr && *given != '\0') return given;
  char path[kSegmentFolderBytes];
  *taken = SegmentFolderSearch::Find(path, sizeof(path)) != SegmentFolderChoice::kUsual;
  return path;
}

// People read the host name. The boot id identifies the host.
std::string OwnerText() {
  return absl::StrCat(kOwnerLine, "\nhost ", HostName(), "\nboot ", OwnBootId(), "\n");
}

// Whether a run under this kernel has made the folder. The locks of another host prove nothing: a
// shared file system may keep locks local to each host.
bool IsOfThisBoot(int owner) {
  char text[kMostOwnerBytes];
  const ssize_t size = pread(owner, text, sizeof(text), 0);
  if (size <= 0 || OwnBootId().empty()) return false;
  const std::vector<std::string> lines =
      absl::StrSplit(absl::string_view(text, static_cast<size_t>(size)), '\n');
  return lines.size() >= 3 && lines[0] == kOwnerLine &&
         lines[2] == absl::StrCat("boot ", OwnBootId());
}

uint64_t ReadStartTime(pid_t pid) {
  const auto stat = ReadProcStat("/proc", pid);
  return stat.ok() ? stat->start_time : 0;
}

// Returns true also if this cannot be found out.
bool SomebodyHoldsLock(int fd) { return QueryLock(fd) != HeldLock::kFree; }

// Opens the file only if it is a regular file that this user owns.
UniqueFd OpenOwn(int folder, const char* name) {
  UniqueFd fd(openat(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  struct stat about;
  const bool ours = fd.valid() && fstat(fd.get(), &about) == 0 && S_ISREG(about.st_mode) &&
                    about.st_uid == geteuid();
  return ours ? std::move(fd) : UniqueFd();
}

std::vector<std::string> NamesIn(int folder) {
  std::vector<std::string> names;
  UniqueFd copy(openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  DIR* list = copy.valid() ? fdopendir(copy.get()) : nullptr;
  if (list == nullptr) return names;
  copy.Release();
  while (const dirent* entry = readdir(list)) names.emplace_back(entry->d_name);
  closedir(list);
  return names;
}

uint64_t OwnPidNamespace() {
  struct stat about;
  return stat("/proc/self/ns/pid", &about) == 0 ? about.st_ino : 0;
}

bool IsSegment(const std::string& name) { return absl::EndsWith(name, ".seg"); }

// A copy of a segment's header.
class HeaderCopy {
 public:
  explicit HeaderCopy(int fd)
      : complete_(pread(fd, bytes_, sizeof(bytes_), 0) == static_cast<ssize_t>(sizeof(bytes_)) &&
                  get()->magic.load(std::memory_order_relaxed) == segment::kMagic) {}

  // False if the process makes the segment, or ended before the segment was complete.
  bool complete() const { return complete_; }

  bool IsOfThisBoot() const {
    return absl::string_view(get()->boot_id, strnlen(get()->boot_id, sizeof(get()->boot_id))) ==
           OwnBootId();
  }

  const segment::SegmentHeader* get() const {
    return reinterpret_cast<const segment::SegmentHeader*>(bytes_);
  }

 private:
  alignas(segment::SegmentHeader) unsigned char bytes_[sizeof(segment::SegmentHeader)];
  const bool complete_;
};

// Whether a process may still write this segment. An old library holds no lock. Then /proc decides,
// if the process lives in this pid namespace.
bool MayBeInUse(int fd) {
  if (QueryLock(fd) == HeldLock::kHeld) return true;
  const HeaderCopy header(fd);
  if (!header.complete()) return false;
  if (!header.IsOfThisBoot()) return true;  // a rank on another host holds its lock there
  if (header.get()->life_lock.load(std::memory_order_relaxed) != 0) return false;
  const uint64_t pid_namespace = header.get()->pid_namespace;
  if (pid_namespace != 0 && pid_namespace != OwnPidNamespace()) return true;
  return ReadStartTime(header.get()->pid) == header.get()->start_time;
}

// Whether the folder has a segment for which this is true.
bool AnySegment(int folder, bool (*is_such)(int fd)) {
  for (const std::string& name : NamesIn(folder)) {
    if (!IsSegment(name)) continue;
    const UniqueFd segment = OpenOwn(folder, name.c_str());
    if (segment.valid() && is_such(segment.get())) return true;
  }
  return false;
}

bool AnyMayBeInUse(int folder) { return AnySegment(folder, MayBeInUse); }

bool AnyIsOfThisBoot(int folder) {
  return !OwnBootId().empty() && AnySegment(folder, [](int fd) {
    const HeaderCopy header(fd);
    return header.complete() && header.IsOfThisBoot();
  });
}

// A process has no lock on its segment at first.
bool AnyIsInTheMaking(int folder) {
  return AnySegment(folder, [](int fd) {
    struct stat about;
    return !HeaderCopy(fd).complete() && fstat(fd, &about) == 0 &&
           time(nullptr) - about.st_mtime < kMadeWithinS;
  });
}

bool IsOurFile(const std::string& name) {
  const bool socket = absl::StartsWith(name, segment::kRequesterSocketPrefix) &&
                      absl::EndsWith(name, segment::kSocketSuffix);
  return IsSegment(name) || socket || name == segment::kAgentSocket || name == kAgentInfo ||
         name == "loaded" || name == kIncidentFile || absl::StartsWith(name, kLinkerPrefix) ||
         name == kRunLock || name == kOwnerFile;
}

// Removes the files of runs, jobs and agents, and the folder if no other file is in it.
void RemoveFolder(const std::string& base, const std::string& name, int folder) {
  for (const std::string& file : NamesIn(folder)) {
    if (IsOurFile(file)) unlinkat(folder, file.c_str(), 0);
  }
  rmdir(absl::StrCat(base, "/", name).c_str());
}

// Whether the name is "run-<pid>-<start time>" or "run-<pid>-<start time>-<n>".
bool IsRunName(const std::string& name) {
  const std::vector<std::string> parts = absl::StrSplit(name, '-');
  if (parts.size() < 3 || parts.size() > 4 || parts[0] != "run") return false;
  uint64_t number;
  for (size_t i = 1; i < parts.size(); ++i) {
    if (!absl::SimpleAtoi(parts[i], &number)) return false;
  }
  return true;
}

UniqueFd OpenFolder(const std::string& path) {
  UniqueFd fd(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  struct stat about;
  const bool ours = fd.valid() && fstat(fd.get(), &about) == 0 && about.st_uid == geteuid();
  return ours ? std::move(fd) : UniqueFd();
}

// Of a folder without an owner, segments of processes under this kernel show it. A run can remove
// the folder of a killed run whose ranks have yet to start: they make it again.
bool IsLeftOver(int folder) {
  const UniqueFd owner = OpenOwn(folder, kOwnerFile);
  const bool is_abandoned = owner.valid()
                                ? IsOfThisBoot(owner.get()) && !SomebodyHoldsLock(owner.get())
                                : AnyIsOfThisBoot(folder);
  return is_abandoned && !AnyMayBeInUse(folder) && !AnyIsInTheMaking(folder);
}

void RemoveLeftOvers(const std::string& base) {
  const UniqueFd all = OpenFolder(base);
  if (!all.valid()) return;
  for (const std::string& name : NamesIn(all.get())) {
    if (!IsRunName(name)) continue;
    const UniqueFd folder = OpenFolder(absl::StrCat(base, "/", name));
    if (folder.valid() && IsLeftOver(folder.get())) RemoveFolder(base, name, folder.get());
  }
}

// The usual folder is below a folder that everybody may write: somebody else may have made it.
absl::Status CheckBase(const std::string& base) {
  struct stat about;
  if (getenv("ROLLCALL_DIR") != nullptr || lstat(base.c_str(), &about) != 0) {
    return absl::OkStatus();
  }
  if (S_ISDIR(about.st_mode) && about.st_uid == geteuid()) return absl::OkStatus();
  return absl::PermissionDeniedError(absl::StrCat(
      base,
      S_ISDIR(about.st_mode) ? absl::StrCat(" belongs to uid ", about.st_uid) : " is not a folder",
      ", so what this job writes there would be in other hands"
      "\n  another folder?  export ROLLCALL_DIR=/a/folder/of/mine"));
}

absl::Status Errno(const std::string& what) {
  return absl::UnavailableError(
      absl::StrCat("cannot create ", what, ": ", strerror(errno),
                   "\n  another folder?  export ROLLCALL_DIR=/a/folder/of/mine"));
}

// Makes the base folder and the run's folder. Another run that ends at this moment may remove the
// empty base folder. A run in another pid namespace may have the same pid and start time.
absl::StatusOr<std::string> MakeBoth(const std::string& base) {
  const std::string wanted = absl::StrCat(base, "/run-", getpid(), "-", ReadStartTime(getpid()));
  std::string path = wanted;
  for (int i = 1; i <= kMostNames; ++i) {
    if (mkdir(base.c_str(), 0700) != 0 && errno != EEXIST) break;
    if (const absl::Status ours = CheckBase(base); !ours.ok()) return ours;
    if (mkdir(path.c_str(), 0700) == 0) return path;
    if (errno == EEXIST) {
      path = absl::StrCat(wanted, "-", i);
    } else if (errno != ENOENT) {
      break;
    }
  }
  return Errno(wanted);
}

// Makes a file with this text. The descriptor holds the file's lock. The file gets its name after
// the lock, so no other run finds it unlocked.
absl::StatusOr<UniqueFd> MakeLocked(const std::string& path, const std::string& text) {
  const std::string unnamed = path + ".new";
  UniqueFd fd(open(unnamed.c_str(), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!fd.valid() ||
      write(fd.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size()) ||
      !TakeLock(fd.get()) || rename(unnamed.c_str(), path.c_str()) != 0) {
    const absl::Status failed = Errno(path);
    unlink(unnamed.c_str());
    return failed;
  }
  return fd;
}

}  // namespace

absl::Status JobDirectory::Make() {
  const std::string base = BaseDirectory(&taken_);
  RemoveLeftOvers(base);
  const absl::StatusOr<std::string> path = MakeBoth(base);
  if (!path.ok()) return path.status();
  path_ = *path;
  absl::StatusOr<UniqueFd> owner = MakeLocked(absl::StrCat(path_, "/", kOwnerFile), OwnerText());
  if (!owner.ok()) return owner.status();
  owner_ = *std::move(owner);
  const UniqueFd fd(open(loaded_file().c_str(), O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!fd.valid()) return Errno(loaded_file());
  const timespec long_ago[2] = {{1, 0}, {1, 0}};
  futimens(fd.get(), long_ago);
  return absl::OkStatus();
}

absl::StatusOr<UniqueFd> JobDirectory::LockAsServed() const {
  return MakeLocked(absl::StrCat(path_, "/", kRunLock), "");
}

std::string JobDirectory::base() const {
  return std::filesystem::path(path_).parent_path().string();
}

bool JobDirectory::loaded() const {
  struct stat about;
  return stat(loaded_file().c_str(), &about) == 0 && about.st_mtim.tv_sec > 1;
}

void JobDirectory::Remove() {
  if (path_.empty()) return;
  const std::filesystem::path path(path_);
  const UniqueFd folder = OpenFolder(path_);
  if (folder.valid() && !AnyMayBeInUse(folder.get())) {
    RemoveFolder(path.parent_path(), path.filename(), folder.get());
  }
  // The last run removes the default base folder. A folder that the user gave stays.
  if (getenv("ROLLCALL_DIR") == nullptr) rmdir(base().c_str());
  owner_ = UniqueFd();
  path_.clear();
}

}  // namespace rollcall
