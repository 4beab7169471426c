// SPDX-License-Identifier: Apache-2.0
#include "agent/processes/held_lock.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "base/unique_fd.h"

namespace rollcall {
namespace {

struct flock FirstByte() {
  struct flock lock = {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  lock.l_start = 0;
  lock.l_len = 1;
  return lock;
}

}  // namespace

HeldLock QueryLock(int fd) {
  struct flock lock = FirstByte();
  // A query for F_RDLCK ignores read locks: anybody with read permission can hold one.
  lock.l_type = F_RDLCK;
  if (fcntl(fd, F_OFD_GETLK, &lock) != 0) return HeldLock::kUnknown;
  return lock.l_type == F_UNLCK ? HeldLock::kFree : HeldLock::kHeld;
}

HeldLock QueryLockAt(const std::string& path) {
  const UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  return fd.valid() ? QueryLock(fd.get()) : HeldLock::kUnknown;
}

bool TakeLock(int fd) {
  struct flock lock = FirstByte();
  return fcntl(fd, F_OFD_SETLK, &lock) == 0;
}

bool ServedByRun(const std::string& folder) {
  const UniqueFd fd(open(absl::StrCat(folder, "/", kRunLock).c_str(),
                         O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  struct stat about;
  return fd.valid() && fstat(fd.get(), &about) == 0 && S_ISREG(about.st_mode) &&
         QueryLock(fd.get()) == HeldLock::kHeld;
}

}  // namespace rollcall
