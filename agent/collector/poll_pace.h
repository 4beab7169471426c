// SPDX-License-Identifier: Apache-2.0
// Whether a thread that makes tests in a loop (CallKind::kTest) does nothing else: then it waits
// for what it tests.
//
// A loop without a pause uses its CPU time in the tests. One that sleeps between them uses hardly
// any, or none beyond what the sleeps themselves take. A program that works, and looks from time to
// time whether a message has come, does neither; one that lacks a CPU uses little of it, and does
// not sleep; one that reads files sleeps in the kernel's storage (D). What it does at sockets and
// pipes between two tests cannot be known: it waits for both, and the daemon claims little of it
// (MayServeInput()).
//
// Other threads of the process may work for the one in the loop, so their time counts, too. It does
// not where the library moves its calls on in threads of its own (GoOnByThemselves()): these use a
// CPU while all wait.
// Pure.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "agent/segments/segment_snapshot.h"

namespace rollcall {

// What a process has used by now: its other threads may work for the one in the loop. And what is
// known of that thread itself.
struct CpuUse {
  int64_t used_ns = 0;
  char state = '?';  // of the thread, or else of the main thread, as in /proc
  // On a CPU, and ready to run without one; -1 if unknown.
  int64_t thread_used_ns = -1, thread_lacked_ns = -1;
};

class PollPaces {
 public:
  // The threads in loops at which it is time to look.
  std::vector<uint32_t> Due(int64_t now_ns, const SegmentSnapshot& snapshot) const;

  // Removes the loops of threads that do other work, and those that have ended. `uses`: of the
  // threads that are due.
  void KeepWaits(int64_t now_ns, const std::map<uint32_t, CpuUse>& uses, SegmentSnapshot* snapshot);

 private:
  struct Pace {
    int64_t since_ns = 0;  // of the loop
    int64_t looked_ns = 0;
    uint64_t polls = 0;
    int64_t poll_ns = 0;
    CpuUse cpu;
    std::optional<bool> waits = {};  // nullopt if only a second look shows how fast the loop is
  };
  bool IsDue(const BlockedSnapshot& loop, int64_t now_ns) const;
  // `is_alone`: no other thread of the process works for the loop.
  bool Waits(const BlockedSnapshot& loop, bool is_alone, int64_t now_ns, const CpuUse& cpu);
  static bool MayWait(const Pace& pace, int64_t now_ns);

  std::map<uint32_t, Pace> paces_;  // by thread
};

// Removes the loops of a snapshot from a file, which does not show whether a loop went on.
void RemoveLoops(SegmentSnapshot* snapshot);

}  // namespace rollcall
