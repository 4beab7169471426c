// SPDX-License-Identifier: Apache-2.0
#include "daemon/report/report_files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <filesystem>
#include <system_error>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/open_file.h"
#include "base/unique_fd.h"
#include "base/write_all.h"

namespace rollcall {
namespace {

// Reports contain command lines and stacks, so only the owner and the group may read them.
constexpr mode_t kFolderMode = 0750;
constexpr mode_t kFileMode = 0640;
constexpr char kTemporary[] = ".rollcall-XXXXXX";
constexpr size_t kFixedPart = sizeof(kTemporary) - sizeof("XXXXXX");  // without the terminating 0
constexpr int kMostTries = 10;
// Some file servers have no locks. No writer needs so long for a report.
constexpr time_t kOldSeconds = 3600;

UniqueFd OpenFolder(const std::string& path) {
  return UniqueFd(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
}

enum class Lock { kTaken, kOfAnother, kUnknown };  // kUnknown: this file system has no locks

Lock TryToLock(int folder) {
  if (flock(folder, LOCK_EX | LOCK_NB) == 0) return Lock::kTaken;
  return errno == EWOULDBLOCK ? Lock::kOfAnother : Lock::kUnknown;
}

bool IsOwn(int folder) {
  struct stat info;
  return fstat(folder, &info) == 0 && info.st_uid == geteuid();
}

bool IsOld(int folder) {
  struct stat info;
  return fstat(folder, &info) == 0 && time(nullptr) - info.st_mtime > kOldSeconds;
}

void RemoveFilesAndFolder(int folder, const std::string& path) {
  for (const char* name : kReportFiles) unlinkat(folder, name, 0);
  rmdir(path.c_str());
}

bool IsTemporaryName(const std::string& name) {
  return name.size() == sizeof(kTemporary) - 1 &&
         absl::StartsWith(name, std::string(kTemporary, kFixedPart));
}

}  // namespace

absl::Status FileError(const std::string& what, const std::string& path, int error) {
  const std::string message = absl::StrCat("cannot ", what, " ", path, ": ", strerror(error));
  if (error == ENOSPC || error == EDQUOT) return absl::ResourceExhaustedError(message);
  if (error == EMFILE || error == ENFILE) return absl::UnavailableError(message);
  if (error == ENOENT) return absl::NotFoundError(message);
  if (error == EACCES || error == EPERM || error == EROFS) {
    return absl::PermissionDeniedError(message);
  }
  return absl::FailedPreconditionError(message);
}

absl::Status MakeFolder(const std::string& path) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) return absl::OkStatus();
  const std::filesystem::path above = std::filesystem::path(path).parent_path();
  if (!above.empty() && above != path) {
    const absl::Status made = MakeFolder(above.string());
    if (!made.ok()) return made;
  }
  if (mkdir(path.c_str(), kFolderMode) == 0) return absl::OkStatus();
  const int error = errno;
  if (error == EEXIST && std::filesystem::is_directory(path, ignored)) return absl::OkStatus();
  return FileError("create the report folder", path, error);
}

absl::Status WriteFile(const std::string& path, const std::string& content) {
  const int fd =
      open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, kFileMode);
  if (fd < 0) return FileError("create", path, errno);
  absl::Status status = WriteAll(fd, content) ? absl::OkStatus() : FileError("write", path, errno);
  if (close(fd) != 0 && status.ok()) status = FileError("write", path, errno);
  return status;
}

absl::Status SyncReport(const std::string& folder) {
  const UniqueFd fd = OpenFolder(folder);
  if (!fd.valid()) return FileError("open", folder, errno);
  absl::Status status;
  for (const char* name : kReportFiles) {
    // O_NONBLOCK: somebody may have put a FIFO there.
    const UniqueFd file(openat(fd.get(), name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
    if (!file.valid()) continue;  // somebody has removed it
    if (fsync(file.get()) != 0) {
      status.Update(FileError("write", absl::StrCat(folder, "/", name), errno));
    }
  }
  fsync(fd.get());  // some file systems cannot do this with folders
  const UniqueFd above(openat(fd.get(), "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (above.valid()) fsync(above.get());
  return status;
}

absl::StatusOr<std::unique_ptr<TemporaryFolder>> TemporaryFolder::Create(
    const std::string& report_dir) {
  for (int i = 0; i < kMostTries; ++i) {
    std::string path = absl::StrCat(report_dir, "/", kTemporary);
    if (mkdtemp(path.data()) == nullptr) return FileError("write into", report_dir, errno);
    UniqueFd folder = OpenFolder(path);
    if (!folder.valid()) {
      const int error = errno;
      rmdir(path.c_str());
      if (error == ENOENT) continue;  // RemoveLeftovers() of another process has removed it
      return FileError("write into", report_dir, error);
    }
    // RemoveLeftovers() of another process may have the lock, and then removes the folder.
    // Where others may write without the sticky bit, the folder of that name can be theirs by now.
    if (TryToLock(folder.get()) != Lock::kOfAnother && IsOwn(folder.get()) &&
        IsStillAt(folder.get(), path)) {
      fchmod(folder.get(), kFolderMode);  // mkdtemp gives the group no access
      return std::unique_ptr<TemporaryFolder>(
          new TemporaryFolder(std::move(path), std::move(folder)));
    }
  }
  return FileError("write into", report_dir, EAGAIN);
}

TemporaryFolder::~TemporaryFolder() {
  if (!is_renamed_) RemoveFilesAndFolder(lock_.get(), path_);
}

int TemporaryFolder::Rename(const std::string& path) {
  if (rename(path_.c_str(), path.c_str()) != 0) return errno;
  is_renamed_ = true;
  return 0;
}

void RemoveLeftovers(const std::string& report_dir) {
  DIR* const all = opendir(report_dir.c_str());
  if (all == nullptr) return;
  while (const dirent* const entry = readdir(all)) {
    if (!IsTemporaryName(entry->d_name)) continue;
    const std::string path = absl::StrCat(report_dir, "/", entry->d_name);
    const UniqueFd folder = OpenFolder(path);
    if (!folder.valid()) continue;
    const Lock lock = TryToLock(folder.get());
    const bool is_left_over =
        lock == Lock::kTaken || (lock == Lock::kUnknown && IsOld(folder.get()));
    // Its writer may have renamed it just now.
    if (is_left_over && IsStillAt(folder.get(), path)) RemoveFilesAndFolder(folder.get(), path);
  }
  closedir(all);
}

}  // namespace rollcall
