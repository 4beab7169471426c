// SPDX-License-Identifier: Apache-2.0
#include "security/bearer_file.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace rollcall {
namespace {

absl::Status CheckToken(const std::string& path, absl::string_view token) {
  const bool printable = std::all_of(token.begin(), token.end(), [](char c) {
    return absl::ascii_isgraph(static_cast<unsigned char>(c));
  });
  if (!token.empty() && printable && token.size() <= BearerFile::kMaxTokenBytes) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat(path, token.empty() ? " is empty" : " does not hold exactly one token",
                   "; a client's file holds one line, which `rollcall token new` prints"));
}

// Kubernetes mounts secrets so that a new version appears at once: each file is a link to ..data/FILE.
bool IsInVolumeOfKubernetes(const std::string& path) {
  char target[16] = {};
  return readlink(path.c_str(), target, sizeof(target) - 1) > 0 &&
         absl::StartsWith(target, "..data/");
}

absl::Status CheckReaders(const WatchedFile& file) {
  if ((file.mode() & S_IROTH) == 0 || IsInVolumeOfKubernetes(file.path())) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("every user of this host can read the token in ", file.path(),
                   "; type: chmod o-rwx ", file.path()));
}

}  // namespace

BearerFile::BearerFile(std::string path) : file_(std::move(path)) {}

absl::StatusOr<std::string> BearerFile::Read() {
  const absl::MutexLock lock(&mutex_);
  const absl::StatusOr<std::optional<std::string>> content = file_.ReadIfChanged();
  if (content.ok() && content->has_value()) {
    const absl::string_view token = absl::StripAsciiWhitespace(**content);
    status_ = CheckReaders(file_);
    if (status_.ok()) status_ = CheckToken(file_.path(), token);
    if (status_.ok()) token_ = std::string(token);
  }
  if (!token_.empty()) return token_;
  return content.ok() ? status_ : content.status();
}

}  // namespace rollcall
