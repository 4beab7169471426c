// SPDX-License-Identifier: Apache-2.0
#include "base/own_folder.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace rollcall {

absl::StatusOr<UniqueFd> OpenOwnFolder(const std::string& path, mode_t mode) {
  mkdir(path.c_str(), mode);
  UniqueFd folder(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  struct stat about;
  if (!folder.valid() || fstat(folder.get(), &about) != 0) {
    if (errno == ELOOP || errno == ENOTDIR) {
      return absl::PermissionDeniedError(absl::StrCat(path, " is a link or no folder"));
    }
    return absl::UnavailableError(absl::StrCat(path, ": ", strerror(errno)));
  }
  if (about.st_uid != geteuid()) {
    return absl::PermissionDeniedError(
        absl::StrCat(path, " belongs to user ", about.st_uid, ", not to ", geteuid()));
  }
  return folder;
}

}  // namespace rollcall
