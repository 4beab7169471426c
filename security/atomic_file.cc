// SPDX-License-Identifier: Apache-2.0
#include "security/atomic_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "security/write_all.h"

namespace rollcall {
namespace {

// Otherwise a crash may undo the renaming.
bool SyncFolderOf(const std::string& path) {
  const size_t slash = path.rfind('/');
  const std::string folder = slash == std::string::npos ? "." : path.substr(0, slash + 1);
  const int fd = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return false;
  const bool synced = fsync(fd) == 0;
  close(fd);
  return synced;
}

}  // namespace

absl::Status WriteAtomically(const std::string& path, std::string_view content, mode_t mode) {
  std::string unfinished = absl::StrCat(path, ".XXXXXX");
  const int fd = mkostemp(unfinished.data(), O_CLOEXEC);  // 0600
  bool ok = fd >= 0 && WriteAll(fd, content) && fchmod(fd, mode) == 0 && fsync(fd) == 0;
  int error = errno;
  if (fd >= 0) close(fd);
  if (ok) {
    ok = rename(unfinished.c_str(), path.c_str()) == 0 && SyncFolderOf(path);
    error = errno;
  }
  if (ok) return absl::OkStatus();
  if (fd >= 0) unlink(unfinished.c_str());
  return absl::ErrnoToStatus(error, absl::StrCat("cannot write ", path));
}

}  // namespace rollcall
