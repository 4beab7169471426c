// SPDX-License-Identifier: Apache-2.0
// Identifies a process of this host uniquely: the kernel reuses the pid after the process has
// ended, but not with the same start time.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <utility>

namespace rollcall {

struct ProcessId {
  pid_t pid = 0;
  uint64_t start_time = 0;  // field 22 of /proc/PID/stat: clock ticks since boot

  bool operator<(const ProcessId& other) const {
    return std::make_pair(pid, start_time) < std::make_pair(other.pid, other.start_time);
  }
  bool operator==(const ProcessId& other) const {
    return pid == other.pid && start_time == other.start_time;
  }
};

}  // namespace rollcall
