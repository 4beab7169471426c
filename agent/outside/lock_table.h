// SPDX-License-Identifier: Apache-2.0
// The locks on files of this host as /proc/locks lists them, and the locks of one descriptor as its
// fdinfo lists them. Pure.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace rollcall {

// Of a file, both ends included. As it is: all of it.
struct ByteRange {
  uint64_t first = 0;
  uint64_t last = UINT64_MAX;
};

// A lock of flock() or fcntl(), or a request that waits for one.
struct LockRow {
  bool is_of_descriptor = false;  // OFD: who has the open file has the lock
  bool waits = false;
  // Who has made it. 0: a process that has ended, or of another pid namespace; -1: of a descriptor.
  pid_t pid = 0;
  pid_t holder = 0;  // of a request: who has the lock that it waits for; as `pid`
  uint64_t inode = 0;
  ByteRange bytes;
};

// Ignores leases, and lines of another form. A request follows the lock that it waits for.
std::vector<LockRow> ParseLockTable(absl::string_view text);

// What fdinfo says of a descriptor.
struct DescriptorLocks {
  uint64_t inode = 0;  // 0: an older kernel does not say it, unless there are locks
  std::vector<LockRow> rows;
};
DescriptorLocks ParseDescriptorLocks(absl::string_view text);

}  // namespace rollcall
