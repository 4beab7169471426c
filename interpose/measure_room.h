// SPDX-License-Identifier: Apache-2.0
// Measures the file system of a folder of segments. Uses only system calls and the stack, for the
// library and the agent.
#pragma once

#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "interpose/room.h"

namespace rollcall {

// The bytes that the segments of a folder hold. In a folder with very many segments it examines the
// first ones, and assumes that the others have the same average size.
class SegmentsHeld {
 public:
  explicit SegmentsHeld(int folder) : folder_(folder) {
    alignas(8) char entries[4096];
    long bytes = 0;
    while (names_ < kMostNames &&
           (bytes = syscall(SYS_getdents64, folder, entries, sizeof(entries))) > 0) {
      for (long at = 0; at < bytes;) at += Count(entries + at);
    }
  }

  uint64_t bytes() const {
    if (seen_ == 0) return 0;
    return static_cast<uint64_t>(static_cast<double>(bytes_) * names_ / seen_);
  }

 private:
  static constexpr uint32_t kMostNames = 1 << 16;
  static constexpr uint32_t kMostSeen = 1024;

  // Offsets in a directory entry of the kernel (struct linux_dirent64).
  static constexpr size_t kLengthAt = 16, kNameAt = 19;

  // Counts one entry, and returns its length.
  uint16_t Count(const char* entry) {
    uint16_t length;
    memcpy(&length, entry + kLengthAt, sizeof(length));
    if (length == 0) return UINT16_MAX;  // no entry: skip the rest of the buffer
    const char* name = entry + kNameAt;
    const size_t size = strlen(name);
    if (size <= 4 || strcmp(name + size - 4, ".seg") != 0) return length;
    ++names_;
    struct stat about;
    if (seen_ < kMostSeen &&
        syscall(SYS_newfstatat, folder_, name, &about, AT_SYMLINK_NOFOLLOW) == 0) {
      ++seen_;
      bytes_ += static_cast<uint64_t>(about.st_blocks) * 512;
    }
    return length;
  }

  const int folder_;
  uint32_t names_ = 0, seen_ = 0;
  uint64_t bytes_ = 0;
};

// `folder` is open, and nothing has listed it before. `shared_memory` is the path of the /dev/shm
// of the segments' processes. Returns no room if the system returns an error.
inline Room MeasureRoom(int folder, const char* shared_memory) {
  Room room;
  struct statfs system;
  struct stat own, shared;
  if (syscall(SYS_fstatfs, folder, &system) != 0 || syscall(SYS_fstat, folder, &own) != 0) {
    return room;
  }
  room.unlimited = system.f_blocks == 0;
  room.free_bytes = static_cast<uint64_t>(system.f_bavail) * static_cast<uint64_t>(system.f_bsize);
  room.held_bytes = SegmentsHeld(folder).bytes();
  const bool is_shared = syscall(SYS_newfstatat, AT_FDCWD, shared_memory, &shared, 0) == 0 &&
                         shared.st_dev == own.st_dev;
  room.keep_bytes = is_shared ? kNcclBytes : 0;
  return room;
}

}  // namespace rollcall
