// SPDX-License-Identifier: Apache-2.0
#include "agent/processes/held_lock.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "base/open_regular.h"
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
  const UniqueFd fd = OpenRegular(path, O_RDONLY);
  return fd.valid() ? QueryLock(fd.get()) : HeldLock::kUnknown;
}

bool TakeLock(int fd) {
  struct flock lock = FirstByte();
  return fcntl(fd, F_OFD_SETLK, &lock) == 0;
}

bool ServedByRun(const std::string& folder) {
  return QueryLockAt(absl::StrCat(folder, "/", kRunLock)) == HeldLock::kHeld;
}

}  // namespace rollcall
