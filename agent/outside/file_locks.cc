// SPDX-License-Identifier: Apache-2.0
#include "agent/outside/file_locks.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "agent/outside/waited_descriptors.h"
#include "agent/processes/proc_files.h"
#include "agent/processes/proc_lines.h"
#include "agent/processes/process_memory.h"
#include "base/monotonic_clock.h"
#include "base/read_file.h"

namespace rollcall {
namespace {

constexpr size_t kMostListed = 4096;  // of the process
constexpr size_t kMostFiles = 512;    // of these
constexpr size_t kFdinfoBytes = 16 << 10;
constexpr size_t kMostOwn = 4096;
constexpr size_t kMountBytes = 4 << 20;
// A busy host is slow with fewer, which is nothing that an operator can mend.
constexpr size_t kManyRows = 1000;

struct OpenFile {
  int fd = -1;
  std::string path;
  uint64_t device = 0;
  DescriptorLocks locks;
};

// Asks no file server.
uint64_t DeviceByStat(const std::string& descriptor) {
  struct statx about;
  const bool is_known =
      statx(AT_FDCWD, descriptor.c_str(), AT_STATX_DONT_SYNC, STATX_INO, &about) == 0;
  return is_known ? DeviceNumber(about.stx_dev_major, about.stx_dev_minor) : 0;
}

// Finds the devices of a mount in another namespace, as the file itself shows.
void FindDevices(const std::string& proc_root, pid_t pid, std::vector<OpenFile>* files) {
  const auto mounts = ParseMountDevices(
      ReadProcFile(ProcPath(proc_root, pid, "mountinfo"), kMountBytes).value_or(""));
  for (OpenFile& file : *files) {
    const auto mount = mounts.find(file.locks.mount);
    file.device = mount != mounts.end()
                      ? mount->second
                      : DeviceByStat(ProcPath(proc_root, pid, absl::StrCat("fd/", file.fd)));
  }
}

// Reads no more than it looks at: a process may have millions of descriptors.
std::vector<OpenFile> ListOpenFiles(const std::string& proc_root, pid_t pid) {
  std::vector<OpenFile> files;
  const std::string path = ProcPath(proc_root, pid, "fd");
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(opendir(path.c_str()), closedir);
  for (size_t i = 0; folder != nullptr && i < kMostListed; ++i) {
    const dirent* entry = readdir(folder.get());
    if (entry == nullptr || files.size() == kMostFiles) break;
    OpenFile file;
    file.path = ReadLink(absl::StrCat(path, "/", entry->d_name));
    if (!absl::SimpleAtoi(entry->d_name, &file.fd) || !absl::StartsWith(file.path, "/")) continue;
    const std::string info = ProcPath(proc_root, pid, absl::StrCat("fdinfo/", file.fd));
    file.locks = ParseDescriptorLocks(ReadProcFile(info, kFdinfoBytes).value_or(""));
    files.push_back(std::move(file));
  }
  FindDevices(proc_root, pid, &files);
  return files;
}

// The kernel may still name a process that has ended. Its lock lives with the descriptor, which
// others have inherited.
pid_t IfItLives(const std::string& proc_root, pid_t pid) {
  return pid > 0 && access(ProcPath(proc_root, pid, "").c_str(), F_OK) == 0 ? pid : 0;
}

// The descriptor for whose lock a thread waits.
struct Awaited {
  int fd = -1;
  ByteRange bytes;
};

// The argument of fcntl(). All of the file if it counts from a place that is not known.
ByteRange ReadRange(pid_t pid, uint64_t address) {
  TracerMemory memory(pid);
  struct flock lock = {};
  if (!memory.ReadValue(address, &lock) || lock.l_whence != SEEK_SET || lock.l_start < 0) return {};
  ByteRange bytes;
  bytes.first = static_cast<uint64_t>(lock.l_start);
  if (lock.l_len > 0) bytes.last = bytes.first + static_cast<uint64_t>(lock.l_len) - 1;
  return bytes;
}

std::optional<Awaited> FindAwaited(const std::string& proc_root, pid_t pid, pid_t tid) {
  const std::optional<SystemCall> call = ReadSystemCall(proc_root, pid, tid);
  if (!call.has_value()) return std::nullopt;
  const int fd = static_cast<int>(call->arguments[0]);
  if (call->number == SYS_flock) return Awaited{fd, {}};
  const uint64_t command = call->arguments[1];
  if (call->number != SYS_fcntl || (command != F_SETLKW && command != F_OFD_SETLKW)) {
    return std::nullopt;
  }
  return Awaited{fd, ReadRange(pid, call->arguments[2])};
}

// What matters of the table of all locks, which is as long as its users like.
struct TableOfHost {
  std::vector<LockRow> own;  // of the process, at most kMostOwn
  bool has_orphans = false;  // locks that no living process has made
  bool cut = false;
};

TableOfHost ReadTable(const std::string& proc_root, pid_t pid, int64_t deadline_ns) {
  TableOfHost found;
  LockTable table;
  pid_t living = 0;  // the last one that was asked for: most rows are of the same ones
  size_t rows = 0;
  const bool whole =
      ForEachProcLine(proc_root + "/locks", deadline_ns, [&](absl::string_view line) {
        ++rows;
        const std::optional<LockRow> row = table.Read(line);
        if (!row.has_value()) return;
        if (row->pid == pid && found.own.size() < kMostOwn) found.own.push_back(*row);
        if (found.has_orphans || row->pid == living || row->pid == pid) return;
        living = IfItLives(proc_root, row->pid);
        found.has_orphans = living == 0;
      });
  found.cut = !whole && MonotonicNs() > deadline_ns && rows >= kManyRows;
  return found;
}

class LocksOfProcess {
 public:
  LocksOfProcess(const std::string& proc_root, pid_t pid)
      : proc_root_(proc_root), pid_(pid), files_(ListOpenFiles(proc_root, pid)) {}

  void AddRow(const LockRow& row) {
    if (row.pid != pid_) return;
    const pid_t holder = row.waits ? IfItLives(proc_root_, row.holder) : pid_;
    Add({row.device, row.inode, PathOf(row), holder, row.waits, row.bytes});
  }

  void AddAwaited(const Awaited& awaited) {
    for (const OpenFile& file : files_) {
      if (file.fd != awaited.fd) continue;
      const auto unnamed = std::find_if(locks_.begin(), locks_.end(), [](const FileLock& lock) {
        return lock.waits && lock.path.empty();
      });
      if (unnamed == locks_.end()) {
        return Add({file.device, file.locks.inode, file.path, 0, true, awaited.bytes});
      }
      unnamed->path = file.path;  // an older kernel has not shown the inode
    }
  }

  // The locks that the open files have and no living process has made.
  void AddInherited() {
    for (const OpenFile& file : files_) {
      for (const LockRow& row : file.locks.rows) {
        if (!row.waits && IfItLives(proc_root_, row.pid) == 0) {
          Add({row.device, row.inode, file.path, pid_, false, row.bytes});
        }
      }
    }
  }

  std::vector<FileLock> Take() {
    std::stable_partition(locks_.begin(), locks_.end(),
                          [](const FileLock& lock) { return lock.waits; });
    if (locks_.size() > kMostFileLocks) locks_.resize(kMostFileLocks);
    return std::move(locks_);
  }

 private:
  std::string PathOf(const LockRow& row) const {
    const auto file = std::find_if(files_.begin(), files_.end(), [&row](const OpenFile& one) {
      return one.locks.inode == row.inode && one.device == row.device;
    });
    return file == files_.end() ? "" : file->path;
  }

  void Add(FileLock lock) {
    const bool is_known = std::any_of(locks_.begin(), locks_.end(), [&](const FileLock& known) {
      return known.waits == lock.waits && known.device == lock.device &&
             known.inode == lock.inode && known.path == lock.path &&
             known.bytes.first == lock.bytes.first && known.bytes.last == lock.bytes.last;
    });
    if (!is_known) locks_.push_back(std::move(lock));
  }

  const std::string& proc_root_;
  const pid_t pid_;
  const std::vector<OpenFile> files_;
  std::vector<FileLock> locks_;
};

}  // namespace

FileLocks FindFileLocks(const std::string& proc_root, pid_t pid, const std::vector<pid_t>& tids,
                        int64_t deadline_ns) {
  std::vector<Awaited> awaited;
  for (const pid_t tid : tids) {
    if (const auto one = FindAwaited(proc_root, pid, tid)) awaited.push_back(*one);
  }
  // Afterwards: it has the requests of these threads.
  const TableOfHost table = ReadTable(proc_root, pid, deadline_ns);
  if (table.own.empty() && !table.has_orphans && awaited.empty()) return {{}, table.cut};
  LocksOfProcess locks(proc_root, pid);
  for (const LockRow& row : table.own) locks.AddRow(row);
  for (const Awaited& one : awaited) locks.AddAwaited(one);
  locks.AddInherited();
  return {locks.Take(), table.cut};
}

}  // namespace rollcall
