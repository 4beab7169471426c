// SPDX-License-Identifier: Apache-2.0
// Which of the open calls in a process's segment count: those of threads that are alive, and of
// loops of tests only those that wait.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "agent/collector/callers.h"
#include "agent/collector/poll_pace.h"
#include "agent/collector/process_reads.h"
#include "agent/segments/segment_snapshot.h"
#include "rollcall/v1/agent.pb.h"

namespace rollcall {

class BlockedCalls {
 public:
  // Removes the calls that do not count from `snapshot`. `of_process`: what the process has used.
  void KeepWaits(const ProcessReads& reads, const CpuUse& of_process, ThreadNumbers* numbers,
                 SegmentSnapshot* snapshot);

 private:
  void FindEndedThreads(const ProcessReads& reads, const SegmentSnapshot& snapshot);

  // Keyed by tid in its own pid namespace: the thread with this tid made no call before that time.
  std::map<uint32_t, int64_t> calls_from_ns_;
  int64_t checked_ns_ = 0;  // when that was found; 0 if never
  PollPaces paces_;
};

// Adds the open calls to `evidence`. No wait starts before `floor_ns`.
void ReportBlocked(const ProcessReads& reads, const SegmentSnapshot& snapshot, int64_t floor_ns,
                   ThreadNumbers* numbers, v1::Evidence* evidence);

}  // namespace rollcall
