// SPDX-License-Identifier: Apache-2.0
#include "base/memory_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <ctime>

#include "absl/strings/str_cat.h"
#include "base/write_all.h"

namespace rollcall {
absl::Status MemoryFile::Replace(std::string_view content) {
  const int fd = memfd_create("rollcall", MFD_CLOEXEC);
  // gRPC reads twice, key and certificate, and compares the times in seconds to notice a change in
  // between.
  modified_s_ = std::max<int64_t>(std::time(nullptr), modified_s_ + 1);
  const timespec times[2] = {{modified_s_, 0}, {modified_s_, 0}};
  const bool written =
      fd >= 0 && WriteAll(fd, content) && fchmod(fd, 0600) == 0 && futimens(fd, times) == 0;
  // dup3 replaces the open file of this number in one step.
  const bool replaced = written && (fd_ < 0 || dup3(fd, fd_, O_CLOEXEC) >= 0);
  const int error = errno;
  if (replaced && fd_ < 0) {
    fd_ = fd;
    path_ = absl::StrCat("/proc/self/fd/", fd_);
  } else if (fd >= 0) {
    close(fd);
  }
  return replaced ? absl::OkStatus() : absl::ErrnoToStatus(error, "cannot make a file in memory");
}

}  // namespace rollcall
