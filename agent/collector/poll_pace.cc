// SPDX-License-Identifier: Apache-2.0
#include "agent/collector/poll_pace.h"

#include <algorithm>

#include "interpose/ops.h"

namespace rollcall {
namespace {

// Longer than the time between two looks at the CPU time of a process.
constexpr int64_t kWindowNs = 2'500'000'000;
constexpr int64_t kLeastPartInTests = 4;  // of its CPU time: a quarter
constexpr int64_t kMostPartOfCpu = 10;    // of the time: a tenth

bool IsLoop(const BlockedSnapshot& blocked) { return IsMpiTest(static_cast<Op>(blocked.op)); }

}  // namespace

// A process that lacks a CPU uses little of it, too, but does not sleep.
bool PollPaces::Waits(const BlockedSnapshot& loop, int64_t now_ns, const CpuUse& cpu) {
  Pace* pace = &paces_[loop.tid];
  if (pace->since_ns != loop.since_ns) {
    *pace = {loop.since_ns, now_ns, loop.polls, loop.poll_ns, cpu, true};
    return true;
  }
  const int64_t window = now_ns - pace->looked_ns;
  if (window < kWindowNs) return pace->waits;
  const int64_t used = cpu.used_ns - pace->cpu.used_ns;
  const bool only_tests = (loop.poll_ns - pace->poll_ns) * kLeastPartInTests >= used;
  const bool rests = cpu.sleeps && pace->cpu.sleeps && used * kMostPartOfCpu <= window;
  const bool waits = loop.polls > pace->polls && (only_tests || rests);
  *pace = {loop.since_ns, now_ns, loop.polls, loop.poll_ns, cpu, waits};
  return waits;
}

void PollPaces::KeepWaits(int64_t now_ns, const CpuUse& cpu, SegmentSnapshot* snapshot) {
  std::vector<BlockedSnapshot>* all = &snapshot->blocked;
  if (std::none_of(all->begin(), all->end(), IsLoop)) return paces_.clear();
  all->erase(std::remove_if(all->begin(), all->end(),
                            [&](const BlockedSnapshot& blocked) {
                              return IsLoop(blocked) && !Waits(blocked, now_ns, cpu);
                            }),
             all->end());
}

void RemoveLoops(SegmentSnapshot* snapshot) {
  std::vector<BlockedSnapshot>* all = &snapshot->blocked;
  all->erase(std::remove_if(all->begin(), all->end(), IsLoop), all->end());
}

}  // namespace rollcall
