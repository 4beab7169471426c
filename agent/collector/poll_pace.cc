// SPDX-License-Identifier: Apache-2.0
#include "agent/collector/poll_pace.h"

#include <algorithm>

#include "interpose/ops.h"

namespace rollcall {
namespace {

// Longer than the time between two looks at the CPU time of a process.
constexpr int64_t kWindowNs = 2'500'000'000;
// For so long after a loop began, one look at it is enough to take it for a wait: no rule blames a
// rank so soon. The second look comes in this time, unless the machine is busy.
constexpr int64_t kUnprovenNs = kWindowNs + 1'000'000'000;
constexpr int64_t kLeastPartInTests = 4;  // of its CPU time: a quarter
constexpr int64_t kMostPartOfCpu = 10;    // of the time: a tenth
constexpr int64_t kLeastPartAsleep = 4;   // of the time: a quarter
// What a short sleep after each test takes of the CPU, with the loop itself, also one in Python.
constexpr int64_t kMostForSleepNs = 20'000;
// A test that takes longer has lost its CPU, or given it away as MPI does where ranks share one.
constexpr int64_t kLongestTestNs = 20'000;
// The library counts the time inside the real test. So much it takes itself, before and after.
constexpr int64_t kOwnOfTestNs = 100;
constexpr size_t kMostPaces = 512;  // of a process: a segment has room for 128 threads

// The CPU time that tests may have used. Their own time is of the wall clock.
int64_t MostCpuOfTests(uint64_t polls, int64_t took_ns) {
  const int64_t most = took_ns / kLongestTestNs;
  return polls >= static_cast<uint64_t>(most) ? took_ns
                                              : static_cast<int64_t>(polls) * kLongestTestNs;
}

// Two looks at a thread, and the time between them.
struct Window {
  const CpuUse& from;
  const CpuUse& to;
  int64_t long_ns;
  uint64_t polls;
  bool is_alone;  // no other thread of the process works for it

  // At least what the thread itself has used: the process is looked at more seldom.
  int64_t used_ns() const {
    const int64_t of_process = to.used_ns - from.used_ns;
    if (from.thread_used_ns < 0 || to.thread_used_ns < 0) return of_process;
    const int64_t of_thread = to.thread_used_ns - from.thread_used_ns;
    return is_alone ? of_thread : std::max(of_process, of_thread);
  }
  bool KnowsThread() const { return from.thread_lacked_ns >= 0 && to.thread_lacked_ns >= 0; }
  // Returns for how long the thread was neither on a CPU nor ready for one.
  int64_t thread_slept_ns() const {
    return long_ns - (to.thread_used_ns - from.thread_used_ns) -
           (to.thread_lacked_ns - from.thread_lacked_ns);
  }
};

// Returns whether it sleeps for a good part of the time. On a busy machine it waits for a CPU after
// each sleep, and a look seldom finds it asleep.
bool Sleeps(const Window& window) {
  if (!window.KnowsThread()) return window.from.state == 'S' && window.to.state == 'S';
  return window.thread_slept_ns() * kLeastPartAsleep >= window.long_ns;
}

bool Rests(const Window& window) {
  const bool reads_files = window.to.state == 'D';
  const int64_t of_sleeps = static_cast<int64_t>(window.polls) * kMostForSleepNs;
  const bool uses_little = window.used_ns() <= std::max(window.long_ns / kMostPartOfCpu, of_sleeps);
  return !reads_files && uses_little && Sleeps(window);
}

// Whether the library moves on in threads of its own what the loop tests.
bool TestsAlone(const SegmentSnapshot& snapshot, const BlockedSnapshot& loop) {
  const std::vector<CommSnapshot>& comms = snapshot.communicators;
  return std::any_of(comms.begin(), comms.end(), [&loop](const CommSnapshot& comm) {
    return comm.index == loop.comm && GoOnByThemselves(comm.kind);
  });
}

bool IsLoop(const BlockedSnapshot& blocked) { return IsTest(static_cast<Op>(blocked.op)); }

}  // namespace

bool PollPaces::IsDue(const BlockedSnapshot& loop, int64_t now_ns) const {
  const auto known = paces_.find(loop.tid);
  return known == paces_.end() || known->second.since_ns != loop.since_ns ||
         now_ns - known->second.looked_ns >= kWindowNs;
}

std::vector<uint32_t> PollPaces::Due(int64_t now_ns, const SegmentSnapshot& snapshot) const {
  std::vector<uint32_t> due;
  for (const BlockedSnapshot& blocked : snapshot.blocked) {
    if (IsLoop(blocked) && IsDue(blocked, now_ns)) due.push_back(blocked.tid);
  }
  return due;
}

bool PollPaces::MayWait(const Pace& pace, int64_t now_ns) {
  return pace.waits.value_or(now_ns - pace.since_ns < kUnprovenNs);
}

bool PollPaces::Waits(const BlockedSnapshot& loop, bool is_alone, int64_t now_ns,
                      const CpuUse& cpu) {
  Pace* pace = &paces_[loop.tid];
  if (pace->since_ns != loop.since_ns) {
    *pace = {loop.since_ns, now_ns, loop.polls, loop.poll_ns, cpu, std::nullopt};
    return MayWait(*pace, now_ns);
  }
  const uint64_t polls = loop.polls > pace->polls ? loop.polls - pace->polls : 0;
  const Window window = {pace->cpu, cpu, now_ns - pace->looked_ns, polls, is_alone};
  const int64_t own_ns = static_cast<int64_t>(polls) * kOwnOfTestNs;
  const int64_t in_tests = MostCpuOfTests(polls, loop.poll_ns - pace->poll_ns + own_ns);
  const bool only_tests = in_tests * kLeastPartInTests >= window.used_ns();
  const bool waits = polls > 0 && (only_tests || Rests(window));
  *pace = {loop.since_ns, now_ns, loop.polls, loop.poll_ns, cpu, waits};
  return waits;
}

void PollPaces::KeepWaits(int64_t now_ns, const std::map<uint32_t, CpuUse>& uses,
                          SegmentSnapshot* snapshot) {
  std::vector<BlockedSnapshot>* all = &snapshot->blocked;
  if (paces_.size() > kMostPaces) paces_.clear();
  if (std::none_of(all->begin(), all->end(), IsLoop)) return paces_.clear();
  const auto works = [&](const BlockedSnapshot& blocked) {
    if (!IsLoop(blocked)) return false;
    const auto use = uses.find(blocked.tid);
    if (use != uses.end() && IsDue(blocked, now_ns)) {
      return !Waits(blocked, TestsAlone(*snapshot, blocked), now_ns, use->second);
    }
    const auto known = paces_.find(blocked.tid);
    return known != paces_.end() && known->second.since_ns == blocked.since_ns &&
           !MayWait(known->second, now_ns);
  };
  all->erase(std::remove_if(all->begin(), all->end(), works), all->end());
}

void RemoveLoops(SegmentSnapshot* snapshot) {
  std::vector<BlockedSnapshot>* all = &snapshot->blocked;
  all->erase(std::remove_if(all->begin(), all->end(), IsLoop), all->end());
}

}  // namespace rollcall
