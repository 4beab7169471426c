// SPDX-License-Identifier: Apache-2.0
// A file system of a test's own. It is so small that the test can fill it, or the test can make it
// read-only.
#pragma once

#include <errno.h>
#include <sched.h>
#include <string.h>
#include <sys/mount.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace rollcall {

class SmallDisk {
 public:
  // Only this thread and the threads that it starts see the mount.
  explicit SmallDisk(const std::string& folder) : folder_(folder) {
    std::filesystem::create_directories(folder);
    if (unshare(CLONE_NEWNS) != 0 ||
        mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
        mount("small", folder.c_str(), "tmpfs", 0, "size=2m") != 0) {
      problem_ = std::string("a file system cannot be mounted here: ") + strerror(errno);
    }
  }
  ~SmallDisk() { umount2(folder_.c_str(), MNT_DETACH); }
  SmallDisk(const SmallDisk&) = delete;
  SmallDisk& operator=(const SmallDisk&) = delete;

  const std::string& problem() const { return problem_; }  // may be empty
  void Fill() const {
    std::ofstream file(filler(), std::ios::app);
    const std::string block(4096, 'x');
    while (file << block << std::flush) {
    }
  }
  void Free() const { std::filesystem::remove(filler()); }
  bool SetReadOnly(bool read_only) const {
    const unsigned long flags =
        MS_REMOUNT | (read_only ? static_cast<unsigned long>(MS_RDONLY) : 0ul);
    return mount("small", folder_.c_str(), "tmpfs", flags, nullptr) == 0;
  }

 private:
  std::string filler() const { return folder_ + "/filler"; }
  const std::string folder_;
  std::string problem_;
};

}  // namespace rollcall
