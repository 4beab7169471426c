// SPDX-License-Identifier: Apache-2.0
// The locks on files that a process holds or waits for, of flock() and fcntl(). Who tries again and
// again, as some libraries do, waits for none here.
//
// Opens none of the files: closing one would end the locks of fcntl() that this program has there,
// and its server may not answer. Reads may block: see spare_threads.h.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "agent/outside/lock_table.h"

namespace rollcall {

struct FileLock {
  uint64_t device = 0, inode = 0;  // DeviceNumber()
  std::string path;                // as the process has opened it; empty if unknown
  pid_t holder = 0;                // 0 if unknown
  bool waits = false;
  ByteRange bytes = {};  // all of the file, if it is not known
  pid_t child = 0;       // the process that waits, if it is a child of the one that is asked about
};

inline constexpr size_t kMostFileLocks = 8;

struct FileLocks {
  std::vector<FileLock> locks;  // first those that the process waits for
  bool cut = false;             // the host has too many to read before the deadline: some may lack
};

// `tids`: the threads that may wait in flock() or fcntl(): a request for a descriptor's lock has no
// pid, nor has one whose holder is of another pid namespace. `deadline_ns`: of the monotonic clock.
FileLocks FindFileLocks(const std::string& proc_root, pid_t pid, const std::vector<pid_t>& tids,
                        int64_t deadline_ns);

}  // namespace rollcall
