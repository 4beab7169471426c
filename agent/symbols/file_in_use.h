// SPDX-License-Identifier: Apache-2.0
// The file of a job that this process reads now, for another process that watches: a read may block
// forever, or cost too much.
#pragma once

#include <atomic>
#include <cstdint>

#include "agent/processes/proc_maps.h"

namespace rollcall {

// A file as /proc/PID/maps shows it.
struct FileId {
  uint64_t device = 0;
  uint64_t inode = 0;

  bool operator==(const FileId& other) const {
    return device == other.device && inode == other.inode;
  }
};

inline FileId IdOf(const ProcMap& map) { return {map.device, map.inode}; }

// Lies in memory that both processes share.
struct FileInUse {
  std::atomic<uint64_t> device{0}, inode{0};

  void Set(const FileId& file) {
    device.store(file.device, std::memory_order_relaxed);
    inode.store(file.inode, std::memory_order_relaxed);
  }
  FileId Get() const {
    return {device.load(std::memory_order_relaxed), inode.load(std::memory_order_relaxed)};
  }
};

// The file that this process uses, if another one watches it.
inline FileInUse* watched_file_in_use = nullptr;

inline void SetFileInUse(const FileId& file) {
  if (watched_file_in_use != nullptr) watched_file_in_use->Set(file);
}

}  // namespace rollcall
