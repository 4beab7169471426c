// SPDX-License-Identifier: Apache-2.0
// Calls of ended threads, which a collector does not report.
#include <gtest/gtest.h>
#include <unistd.h>

#include "agent/collector/callers.h"
#include "agent/collector/collector.h"
#include "base/durations.h"
#include "base/steady_clock.h"
#include "collector_fixture.h"
#include "interpose/clock.h"

namespace rollcall {
namespace {

// A thread that is cancelled inside a call leaves its entry in the segment unchanged.
class CallerTest : public CollectorTest {
 protected:
  void SetBlocked(uint32_t slot, pid_t thread, int64_t for_ns) {
    segment_.blocked(slot)->tid = static_cast<uint32_t>(thread);
    segment_.blocked(slot)->op = static_cast<uint32_t>(Op::kAllReduce);
    segment_.blocked(slot)->comm = 0;
    segment_.blocked(slot)->since = ClockNs(CLOCK_MONOTONIC) - static_cast<uint64_t>(for_ns);
  }
  // Collects a tick `later_ns` from now.
  static v1::ProcessUpdate CollectLater(Collector* collector, int64_t later_ns) {
    return Only(collector->Collect(SteadyNs() + later_ns, true));
  }
};

TEST_F(CallerTest, LeavesOutTheCallOfAnEndedThread) {
  const Child child;
  segment_.AddAllReduce(segment_.AddComm(5, 0, 2), 5000);
  segment_.entry(0)->returned = 0;
  SetBlocked(0, getpid(), 0);
  WriteSegment(child, &segment_);
  Collector collector(Options());
  EXPECT_EQ(CollectLater(&collector, 0).evidence().blocked_size(), 1) << "not checked yet";
  const v1::ProcessUpdate later = CollectLater(&collector, 3 * kSecond);
  EXPECT_EQ(later.evidence().blocked_size(), 0);
  EXPECT_EQ(later.communicators(0).host_blocked_since_ns(), 0);
  SetBlocked(1, child.pid(), 0);
  segment_.Write(SegmentPath(&segment_));
  EXPECT_EQ(CollectLater(&collector, 9 * kSecond).evidence().blocked_size(), 1) << "alive";
}

TEST_F(CallerTest, LeavesOutACallFromBeforeTheThreadWithThisTidStarted) {
  const Child child;
  segment_.AddAllReduce(segment_.AddComm(5, 0, 2), 5000);
  SetBlocked(0, child.pid(), 60 * kSecond);
  WriteSegment(child, &segment_);
  Collector collector(Options());
  EXPECT_EQ(CollectLater(&collector, 0).evidence().blocked_size(), 0);
}

TEST_F(CallerTest, ReportsCallsOfAProcessThatProcDoesNotShow) {
  const Child child;
  segment_.AddAllReduce(segment_.AddComm(5, 0, 2), 5000);
  SetBlocked(0, getpid(), 60 * kSecond);
  segment_.BelongTo(getpid(), 88);
  segment_.header()->pid_namespace = 12;
  segment_.header()->life_lock = 1;
  segment_.Write(SegmentPath(&segment_));
  LifeLock lock(SegmentPath(&segment_));
  Collector collector(Options());
  EXPECT_EQ(CollectLater(&collector, 0).evidence().blocked_size(), 1);
}

RecordSnapshot RecordOf(uint32_t thread) {
  RecordSnapshot record;
  record.thread = thread;
  return record;
}

// As they are reported of a process that only files show.
std::vector<uint32_t> ThreadsIn(CallingThreads* callers) {
  const SeenProcess process;
  const std::string proc_root;
  ThreadNumbers numbers;
  v1::Evidence evidence;
  callers->Report({0, process, SpareThreads::kNobody, proc_root, nullptr}, &numbers, &evidence);
  std::vector<uint32_t> threads;
  for (const v1::CallingThread& caller : evidence.callers()) threads.push_back(caller.thread());
  return threads;
}

TEST(CallingThreadsTest, KnowsEachThreadOnceAndForgetsTheOldest) {
  CallingThreads callers;
  callers.Note({RecordOf(7), RecordOf(7), RecordOf(8), RecordOf(7), RecordOf(0)});
  EXPECT_EQ(ThreadsIn(&callers), (std::vector<uint32_t>{7, 8}));
  for (uint32_t thread = 10; thread < 40; ++thread) callers.Note({RecordOf(thread)});
  EXPECT_EQ(ThreadsIn(&callers).size(), 16u);
  EXPECT_EQ(ThreadsIn(&callers).front(), 7u) << "the first is mostly the main thread";
  EXPECT_EQ(ThreadsIn(&callers).back(), 39u);
}

TEST_F(CallerTest, NamesTheThreadsThatMakeTheCalls) {
  const Child child;
  segment_.AddAllReduce(segment_.AddComm(5, 0, 2), 5000);
  segment_.record(0, 0)->thread = static_cast<uint32_t>(child.pid());
  WriteSegment(child, &segment_);
  Collector collector(Options());
  EXPECT_EQ(CollectLater(&collector, 0).evidence().callers_size(), 0) << "the main thread alone";
  segment_.AddAllReduce(0, 6000);
  segment_.record(0, 1)->thread = 1;  // not of this process
  segment_.Write(SegmentPath(&segment_));
  const v1::Evidence evidence = CollectLater(&collector, kSecond).evidence();
  ASSERT_EQ(evidence.callers_size(), 2);
  EXPECT_EQ(evidence.callers(0).tid(), child.pid());
  EXPECT_FALSE(evidence.callers(0).name().empty());
  EXPECT_EQ(evidence.callers(1).name(), "");
}

}  // namespace
}  // namespace rollcall
