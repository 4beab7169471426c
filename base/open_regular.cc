// SPDX-License-Identifier: Apache-2.0
#include "base/open_regular.h"

#include <fcntl.h>

#include <cerrno>

#include "absl/strings/str_cat.h"
#include "base/read_file.h"

namespace rollcall {

UniqueFd ReopenRegular(const UniqueFd& path_only, int flags, struct stat* status) {
  struct stat about;
  if (status == nullptr) status = &about;
  if (!path_only.valid() || fstat(path_only.get(), status) != 0) return UniqueFd();
  if (!S_ISREG(status->st_mode)) {
    errno = EINVAL;
    return UniqueFd();
  }
  return UniqueFd(open(absl::StrCat("/proc/self/fd/", path_only.get()).c_str(),
                       flags | O_CLOEXEC | O_NONBLOCK));
}

UniqueFd OpenRegularAt(int folder, const std::string& name, int flags, struct stat* status) {
  const UniqueFd path_only(openat(folder, name.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
  return ReopenRegular(path_only, flags, status);
}

UniqueFd OpenRegular(const std::string& path, int flags, struct stat* status) {
  return OpenRegularAt(AT_FDCWD, path, flags, status);
}

std::optional<std::string> ReadRegularFile(const std::string& path, size_t most) {
  const UniqueFd fd = OpenRegular(path, O_RDONLY);
  return fd.valid() ? ReadUpTo(fd.get(), most) : std::nullopt;
}

}  // namespace rollcall
