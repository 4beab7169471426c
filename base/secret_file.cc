// SPDX-License-Identifier: Apache-2.0
#include "base/secret_file.h"

#include <sys/stat.h>
#include <unistd.h>

#include <optional>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/read_file.h"

namespace rollcall {
namespace {

constexpr mode_t kOthers = S_IROTH | S_IWOTH;
constexpr mode_t kGroup = S_IRGRP | S_IWGRP;

// Kubernetes mounts secrets so that a new version appears at once: each file is a link to
// ..data/FILE.
bool IsInVolumeOfKubernetes(const std::string& path) {
  return absl::StartsWith(ReadLink(path), "..data/");
}

absl::Status Refuse(const WatchedFile& file, absl::string_view secret, absl::string_view who,
                    absl::string_view others) {
  return absl::InvalidArgumentError(absl::StrCat(who, " can read the ", secret, " in ", file.path(),
                                                 "; type: chmod ", others, "-rwx ", file.path()));
}

}  // namespace

absl::Status CheckSecretFile(const WatchedFile& file, absl::string_view secret) {
  const mode_t group = file.mode() & kGroup;
  const bool is_for_group = group == S_IRGRP && file.owner() == 0;
  const bool is_open = (file.mode() & kOthers) != 0;
  if ((!is_open && (group == 0 || is_for_group)) || IsInVolumeOfKubernetes(file.path())) {
    return absl::OkStatus();
  }
  return is_open ? Refuse(file, secret, "every user of this host", "go")
                 : Refuse(file, secret, "a group of users", "g");
}

absl::StatusOr<std::string> ReadSecretFile(const std::string& path, absl::string_view secret) {
  WatchedFile file(path);
  const absl::StatusOr<std::optional<std::string>> content = file.ReadIfChanged();
  if (!content.ok()) return content.status();
  const absl::Status status = CheckSecretFile(file, secret);
  if (!status.ok()) return status;
  return std::string(absl::StripAsciiWhitespace(content->value_or("")));
}

}  // namespace rollcall
