// SPDX-License-Identifier: Apache-2.0
#include "base/edit_file.h"

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
#include "base/atomic_file.h"
#include "base/cannot.h"
#include "base/open_file.h"
#include "base/unique_fd.h"
#include "base/watched_file.h"

namespace rollcall {
namespace {

constexpr int kTries = 250;
constexpr absl::Duration kPause = absl::Milliseconds(20);
constexpr mode_t kOwnersOnly = 0600;

std::string FollowLinks(const std::string& path) {
  char* resolved = realpath(path.c_str(), nullptr);
  if (resolved == nullptr) return path;
  const absl::Cleanup release = [resolved] { free(resolved); };
  return resolved;
}

// A file beside the one that changes. Only its owner may open it, so no other user can hold the
// lock.
class FileLock {
 public:
  static absl::StatusOr<FileLock> Take(const std::string& path) {
    for (int i = 0; i < kTries; ++i) {
      UniqueFd fd(
          open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, kOwnersOnly));
      if (!fd.valid()) return Cannot("lock", path);
      // The previous holder of the lock has removed the file.
      if (flock(fd.get(), LOCK_EX | LOCK_NB) == 0 && IsStillAt(fd.get(), path)) {
        return FileLock(path, std::move(fd));
      }
      absl::SleepFor(kPause);
    }
    return absl::UnavailableError(absl::StrCat("another program has locked ", path, "; try again"));
  }
  FileLock(FileLock&& other) noexcept = default;
  ~FileLock() {
    if (fd_.valid()) unlink(path_.c_str());
  }

 private:
  FileLock(std::string path, UniqueFd fd) : path_(std::move(path)), fd_(std::move(fd)) {}

  const std::string path_;
  UniqueFd fd_;
};

}  // namespace

absl::Status EditFile(const std::string& given_path, bool create,
                      const std::function<absl::StatusOr<std::string>(std::string)>& edit) {
  const std::string path = FollowLinks(given_path);
  const absl::StatusOr<FileLock> lock = FileLock::Take(path + ".lock");
  if (!lock.ok()) return lock.status();
  mode_t mode = kOwnersOnly;
  std::optional<FileOwner> owner;
  std::string text;
  struct stat old;
  if (stat(path.c_str(), &old) == 0) {
    mode = old.st_mode & 07777;
    owner = FileOwner{old.st_uid, old.st_gid};
    absl::StatusOr<std::string> content = ReadWatchedFile(path);
    if (!content.ok()) return content.status();
    text = *std::move(content);
  } else if (errno != ENOENT || !create) {
    return Cannot("read", path);
  }
  const absl::StatusOr<std::string> result = edit(std::move(text));
  return result.ok() ? WriteAtomically(path, *result, mode, owner) : result.status();
}

}  // namespace rollcall
