// SPDX-License-Identifier: Apache-2.0
// Whether a path still leads to a file or folder that is open: another program may have renamed,
// removed or replaced it meanwhile.
#pragma once

#include <fcntl.h>
#include <sys/stat.h>

#include <string>

namespace rollcall {

// `path` may be relative to the open folder `folder`. False where it is a symbolic link now.
inline bool IsStillAt(int fd, const std::string& path, int folder = AT_FDCWD) {
  struct stat open_one, named;
  return fstat(fd, &open_one) == 0 &&
         fstatat(folder, path.c_str(), &named, AT_SYMLINK_NOFOLLOW) == 0 &&
         open_one.st_dev == named.st_dev && open_one.st_ino == named.st_ino;
}

}  // namespace rollcall
