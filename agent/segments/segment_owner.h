// SPDX-License-Identifier: Apache-2.0
// Finds the owner of a segment: the process of this agent's /proc that created the file. The owner
// may also have ended, or this agent's /proc may not show it. Pure.
//
// A segment contains the pid that its process has in its own pid namespace. The agent has the same
// number for the process only if both share the namespace. Otherwise the owner is the process that
// has mapped the file and has this pid in its own namespace. A process that /proc does not show is
// not proven dead: only its life lock (interpose/segment.h) can prove the end.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "agent/processes/held_lock.h"
#include "agent/processes/process_id.h"

namespace rollcall {

// The owner as the header of the segment describes it, and the state of the life lock.
struct SegmentClaim {
  pid_t pid = 0;
  uint64_t start_time = 0;
  uint64_t pid_namespace = 0;  // 0 if written by an older library
  bool of_this_boot = false;   // created on this host since its last boot
  bool life_lock = false;      // the owner took the life lock
  HeldLock lock = HeldLock::kUnknown;
};

// A process that has mapped the file: the owner, or a child that the owner forked.
struct SegmentMapper {
  ProcessId process;           // as this agent's /proc shows it
  pid_t own_pid = 0;           // in its own pid namespace; 0 if unknown
  uint64_t pid_namespace = 0;  // 0 if unknown
};

// The entry of this agent's /proc for the pid in the segment.
struct PidLookup {
  bool gone = false;        // proven: there is no such process
  uint64_t start_time = 0;  // of the process; 0 if /proc shows none
};

struct SegmentOwner {
  enum Kind {
    kLater,    // decide after a scan has listed all processes that have mapped the file
    kVisible,  // `process` is the owner
    kUnseen,   // it may be alive; this agent's /proc does not show it
    kEnded,
  };
  Kind kind = kLater;
  ProcessId process;
};

// `mappers`: nullptr before a scan has listed them.
SegmentOwner FindOwner(const SegmentClaim& claim, const std::vector<SegmentMapper>* mappers,
                       const PidLookup& pid_lookup, uint64_t own_namespace);

// Whether the life lock proves that the owner has ended. For owners that /proc does not show.
bool LifeLockShowsEnd(const SegmentClaim& claim);

}  // namespace rollcall
