// SPDX-License-Identifier: Apache-2.0
// Whose segment a file is: which process of this agent's /proc has made it, or whether that process
// has ended, or cannot be seen from here. Pure.
//
// A segment names its process by a number of the process's own pid namespace. That number is the
// agent's only where both share the namespace; else the process is the one that has mapped the file
// and calls itself so. A process that is not seen is never dead for that alone: its life lock
// (interpose/segment.h) shows it, or nobody knows.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "agent/processes/held_lock.h"
#include "agent/processes/process_id.h"

namespace rollcall {

// What the file says and shows.
struct SegmentClaim {
  pid_t pid = 0;
  uint64_t start_time = 0;
  uint64_t pid_namespace = 0;  // 0: an older library
  bool of_this_boot = false;   // made on this host since it was started
  bool life_lock = false;      // its process took the lock
  HeldLock lock = HeldLock::kUnknown;
};

// A process that has the file mapped: its maker, or a child that the maker forked.
struct SegmentMapper {
  ProcessId process;           // as this agent's /proc shows it
  pid_t own_pid = 0;           // as it sees itself; 0: not known
  uint64_t pid_namespace = 0;  // 0: not known
};

// What this agent's /proc has under the number that the segment names.
struct SameNumber {
  bool gone = false;         // for sure: no such process
  uint64_t start_time = 0;   // of the process; 0: none is seen
};

struct SegmentOwner {
  enum Kind {
    kLater,    // all that maps it must be known first
    kVisible,  // `process` is the maker
    kUnseen,   // it may live, and cannot be seen
    kEnded,
  };
  Kind kind = kLater;
  ProcessId process;
};

// `mappers`: nullptr as long as they are not known.
SegmentOwner FindOwner(const SegmentClaim& claim, const std::vector<SegmentMapper>* mappers,
                       const SameNumber& same_number, uint64_t own_namespace);

// Whether the process behind a segment that cannot be seen has ended.
bool EndedUnseen(const SegmentClaim& claim);

}  // namespace rollcall
