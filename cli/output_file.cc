// SPDX-License-Identifier: Apache-2.0
#include "cli/output_file.h"

#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <cerrno>

#include "absl/strings/str_cat.h"
#include "base/atomic_file.h"
#include "base/unique_fd.h"
#include "base/write_all.h"

namespace rollcall {
namespace {

absl::Status WriteInPlace(const std::string& path, const std::string& text) {
  const UniqueFd fd(open(path.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY));
  struct stat about;
  if (fd.valid() && (fstat(fd.get(), &about) != 0 || S_ISREG(about.st_mode))) {
    return absl::AbortedError(absl::StrCat(path, " has become another file: try again"));
  }
  // Only to open it must not wait: a pipe takes a long text bit by bit.
  if (fd.valid() && fcntl(fd.get(), F_SETFL, 0) == 0 && WriteAll(fd.get(), text)) {
    return absl::OkStatus();
  }
  return absl::ErrnoToStatus(errno, absl::StrCat("cannot write ", path));
}

mode_t UsualMode() {
  const mode_t mask = umask(0);
  umask(mask);
  return 0666 & ~mask;
}

}  // namespace

absl::Status WriteOutputFile(const std::string& path, const std::string& text) {
  struct stat about;
  if (stat(path.c_str(), &about) != 0) return WriteAtomically(path, text, UsualMode());
  if (!S_ISREG(about.st_mode)) return WriteInPlace(path, text);
  char resolved[PATH_MAX];
  if (realpath(path.c_str(), resolved) == nullptr) {
    return absl::ErrnoToStatus(errno, absl::StrCat("cannot write ", path));
  }
  return WriteAtomically(resolved, text, about.st_mode & 07777);
}

}  // namespace rollcall
