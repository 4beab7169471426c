// SPDX-License-Identifier: Apache-2.0
#include "base/watched_file.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstdlib>
#include <functional>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/monotonic_clock.h"
#include "base/read_file.h"
#include "base/unique_fd.h"

namespace rollcall {
namespace {

// Longer than a tick of the kernel's clock, which stamps files (at most 10 ms).
constexpr int64_t kYoungNs = 50'000'000;

bool IsYoung(int64_t modified_ns) { return std::llabs(UnixNs() - modified_ns) < kYoungNs; }

absl::Status CannotRead(const std::string& path, int error) {
  return absl::ErrnoToStatus(error, absl::StrCat("cannot read ", path));
}

}  // namespace

WatchedFile::WatchedFile(std::string path) : path_(std::move(path)) {}

bool WatchedFile::Version::operator==(const Version& other) const {
  return device == other.device && inode == other.inode && size == other.size &&
         modified_ns == other.modified_ns && changed_ns == other.changed_ns;
}

WatchedFile::Version WatchedFile::VersionOf(const struct ::stat& facts) {
  return {facts.st_dev, facts.st_ino, facts.st_size, NsOf(facts.st_mtim), NsOf(facts.st_ctim)};
}

absl::StatusOr<std::optional<std::string>> WatchedFile::ReadIfChanged() {
  struct stat facts;
  if (stat(path_.c_str(), &facts) != 0) return CannotRead(path_, errno);
  if (!S_ISREG(facts.st_mode)) {
    return absl::InvalidArgumentError(absl::StrCat(path_, " is not a regular file"));
  }
  if (version_ == VersionOf(facts) && !young_hash_.has_value()) return std::nullopt;

  const UniqueFd fd(open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (!fd.valid()) return CannotRead(path_, errno);
  if (fstat(fd.get(), &facts) != 0) return CannotRead(path_, errno);
  if (!S_ISREG(facts.st_mode)) {
    return absl::InvalidArgumentError(absl::StrCat(path_, " is not a regular file"));
  }
  const Version before = VersionOf(facts);
  std::optional<std::string> content = ReadUpTo(fd.get(), kMaxBytes + 1);
  if (!content.has_value()) return CannotRead(path_, errno);
  if (content->size() > kMaxBytes) {
    return absl::InvalidArgumentError(absl::StrCat(path_, " is larger than 1 MiB"));
  }
  if (fstat(fd.get(), &facts) != 0) return CannotRead(path_, errno);
  if (!(VersionOf(facts) == before)) {
    return absl::UnavailableError(absl::StrCat(path_, " changes while it is read"));
  }
  const size_t hash = std::hash<std::string>()(*content);
  const bool same = young_hash_ == hash && version_ == before;
  version_ = before;
  mode_ = facts.st_mode & 07777;
  owner_ = facts.st_uid;
  young_hash_.reset();
  if (IsYoung(before.modified_ns)) young_hash_ = hash;
  if (same) return std::nullopt;
  return content;
}

absl::StatusOr<std::string> ReadWatchedFile(const std::string& path) {
  absl::StatusOr<std::optional<std::string>> content = WatchedFile(path).ReadIfChanged();
  if (!content.ok()) return content.status();
  return *std::move(*content);
}

}  // namespace rollcall
