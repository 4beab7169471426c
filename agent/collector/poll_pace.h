// SPDX-License-Identifier: Apache-2.0
// Whether a thread that tests requests of MPI in a loop does nothing else: then it waits for them.
//
// A loop without a pause uses its CPU time in the tests. One that sleeps between them uses hardly
// any. A program that works, and looks from time to time whether a message has come, does neither.
// Pure.
#pragma once

#include <cstdint>
#include <map>

#include "agent/segments/segment_reader.h"

namespace rollcall {

// What the process has used by now, and whether it slept when it was looked at.
struct CpuUse {
  int64_t used_ns = 0;
  bool sleeps = false;
};

class PollPaces {
 public:
  // Removes the loops of threads that do other work, and those that have ended.
  void KeepWaits(int64_t now_ns, const CpuUse& cpu, SegmentSnapshot* snapshot);

 private:
  struct Pace {
    int64_t since_ns = 0;  // of the loop
    int64_t looked_ns = 0;
    uint64_t polls = 0;
    int64_t poll_ns = 0;
    CpuUse cpu;
    bool waits = true;  // until a second look shows how fast the loop is
  };
  bool Waits(const BlockedSnapshot& loop, int64_t now_ns, const CpuUse& cpu);

  std::map<uint32_t, Pace> paces_;  // by thread
};

// Of files, which do not show whether a loop went on.
void RemoveLoops(SegmentSnapshot* snapshot);

}  // namespace rollcall
