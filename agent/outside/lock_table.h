// SPDX-License-Identifier: Apache-2.0
// The locks on files of this host as /proc/locks lists them, and the locks of one descriptor as its
// fdinfo lists them. Pure.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace rollcall {

// A range of a file, both ends included. By default the whole file.
struct ByteRange {
  uint64_t first = 0;
  uint64_t last = UINT64_MAX;
};

// A lock of flock() or fcntl(), or a request that waits for one.
struct LockRow {
  bool is_of_descriptor = false;  // OFD: who has the open file has the lock
  bool waits = false;
  // The pid that made it. 0 if that process has ended, or is of another pid namespace; -1 if it is
  // of a descriptor.
  pid_t pid = 0;
  pid_t holder = 0;                // of a request: who has the lock that it waits for; as `pid`
  uint64_t device = 0, inode = 0;  // of the file; DeviceNumber()
  ByteRange bytes;
};

inline uint64_t DeviceNumber(uint32_t major, uint32_t minor) {
  return uint64_t{major} << 20 | minor;
}

// Reads the table line by line: any user may make it long.
class LockTable {
 public:
  // nullopt for a lease, or a line of another form. A request follows the lock that it waits for.
  std::optional<LockRow> Read(absl::string_view line);

 private:
  pid_t holder_ = 0;  // of the last lock
};

// What fdinfo shows of a descriptor.
struct DescriptorLocks {
  uint64_t inode = 0;  // 0 means an older kernel, which does not show it unless there are locks
  int mount = -1;      // as in mountinfo
  std::vector<LockRow> rows;
};
DescriptorLocks ParseDescriptorLocks(absl::string_view text);

// The device of each mount of a mountinfo, as DeviceNumber(): the one that a lock in the table has,
// which stat() does not show of all file systems.
std::map<int, uint64_t> ParseMountDevices(absl::string_view mountinfo);

}  // namespace rollcall
