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
// A test that takes longer has lost its CPU, or given it away as MPI does where ranks share one.
constexpr int64_t kLongestTestNs = 20'000;
constexpr size_t kMostPaces = 512;  // of a process: a segment has room for 128 threads

// The CPU time that tests may have used. Their own time is of the wall clock.
int64_t MostCpuOfTests(uint64_t polls, int64_t took_ns) {
  const int64_t most = took_ns / kLongestTestNs;
  return polls >= static_cast<uint64_t>(most) ? took_ns
                                              : static_cast<int64_t>(polls) * kLongestTestNs;
}

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
  const uint64_t polls = loop.polls > pace->polls ? loop.polls - pace->polls : 0;
  const int64_t in_tests = MostCpuOfTests(polls, loop.poll_ns - pace->poll_ns);
  const bool only_tests = in_tests * kLeastPartInTests >= used;
  const bool rests = cpu.sleeps && pace->cpu.sleeps && used * kMostPartOfCpu <= window;
  const bool waits = polls > 0 && (only_tests || rests);
  *pace = {loop.since_ns, now_ns, loop.polls, loop.poll_ns, cpu, waits};
  return waits;
}

void PollPaces::KeepWaits(int64_t now_ns, const CpuUse& cpu, SegmentSnapshot* snapshot) {
  std::vector<BlockedSnapshot>* all = &snapshot->blocked;
  if (paces_.size() > kMostPaces) paces_.clear();
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
