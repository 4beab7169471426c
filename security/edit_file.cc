// SPDX-License-Identifier: Apache-2.0
#include "security/edit_file.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <optional>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "security/atomic_file.h"
#include "security/watched_file.h"

namespace rollcall {
namespace {

constexpr int kTries = 50;
constexpr absl::Duration kPause = absl::Milliseconds(100);
constexpr mode_t kOwnersOnly = 0600;

absl::Status Cannot(absl::string_view what, const std::string& path) {
  return absl::ErrnoToStatus(errno, absl::StrCat("cannot ", what, " ", path));
}

std::string FolderOf(const std::string& path) {
  const size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

std::string FollowLinks(const std::string& path) {
  char* resolved = realpath(path.c_str(), nullptr);
  if (resolved == nullptr) return path;
  const absl::Cleanup release = [resolved] { free(resolved); };
  return resolved;
}

// Locks the folder, so that no lock file stays behind. The lock ends with the descriptor.
absl::StatusOr<int> LockFolder(const std::string& folder) {
  const int fd = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return Cannot("open the folder", folder);
  for (int i = 0; i < kTries; ++i) {
    if (flock(fd, LOCK_EX | LOCK_NB) == 0) return fd;
    absl::SleepFor(kPause);
  }
  close(fd);
  return absl::UnavailableError(
      absl::StrCat("another program has locked the folder ", folder, "; try again"));
}

}  // namespace

absl::Status EditFile(const std::string& given_path, bool create,
                      const std::function<absl::StatusOr<std::string>(std::string)>& edit) {
  const std::string path = FollowLinks(given_path);
  const absl::StatusOr<int> folder = LockFolder(FolderOf(path));
  if (!folder.ok()) return folder.status();
  const absl::Cleanup unlock = [fd = *folder] { close(fd); };
  mode_t mode = kOwnersOnly;
  std::optional<FileOwner> owner;
  std::string text;
  struct stat old;
  if (stat(path.c_str(), &old) == 0) {
    mode = old.st_mode & 07777;
    owner = FileOwner{old.st_uid, old.st_gid};
    absl::StatusOr<std::optional<std::string>> content = WatchedFile(path).ReadIfChanged();
    if (!content.ok()) return content.status();
    text = *std::move(*content);
  } else if (errno != ENOENT || !create) {
    return Cannot("read", path);
  }
  const absl::StatusOr<std::string> result = edit(std::move(text));
  return result.ok() ? WriteAtomically(path, *result, mode, owner) : result.status();
}

}  // namespace rollcall
