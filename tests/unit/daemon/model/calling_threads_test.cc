// SPDX-License-Identifier: Apache-2.0
// Which thread makes the calls of a process, and which threads race.
#include "daemon/model/calling_threads.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "job_builder.h"

namespace rollcall {
namespace {

using Tids = std::vector<uint32_t>;

constexpr uint32_t kMain = 4000, kOther = 4010;

// Rank 0 with a call of each of these threads in turn.
JobBuilder CallsOf(const std::vector<uint32_t>& threads, const std::string& name = "") {
  JobBuilder job(2);
  job.Finish(static_cast<int>(threads.size()));
  for (size_t i = 0; i < threads.size(); ++i) job.member(0).records[i].thread = threads[i];
  job.process(0).callers = {{kMain, kMain, "python"}, {kOther, kOther, name}};
  return job;
}

size_t CountRacing(JobBuilder job) { return FindRacingThreads(job.state, job.member(0)).size(); }

TEST(RacingThreadsTest, OneThreadDoesNotRace) {
  EXPECT_EQ(CountRacing(CallsOf({kMain, kMain, kMain})), 0u);
}

TEST(RacingThreadsTest, TwoThreadsInTurnsRace) {
  EXPECT_EQ(CountRacing(CallsOf({kMain, kOther, kMain}, "AsyncCheckpoint")), 2u);
}

TEST(RacingThreadsTest, AThreadWithItsFirstCallRaces) {
  EXPECT_EQ(CountRacing(CallsOf({kMain, kMain, kMain, kOther})), 2u);
}

TEST(RacingThreadsTest, TheCallerOfBackwardWaitsForTheThreadOfPyTorch) {
  EXPECT_EQ(CountRacing(CallsOf({kMain, kOther, kMain, kOther}, "pt_autograd_0")), 0u);
}

TEST(RacingThreadsTest, OnlyTheThreadThatWaitsForABackwardPassIsOrderedWithIt) {
  constexpr uint32_t kSaver = 4020;
  JobBuilder job = CallsOf({kMain, kOther, kOther, kSaver, kOther}, "pt_autograd_0");
  job.process(0).callers.push_back({kSaver, kSaver, "Saver"});
  const std::vector<RacingThread> racing = FindRacingThreads(job.state, job.member(0));
  EXPECT_EQ(racing.size(), 3u) << "the saver with both";
}

TEST(RacingThreadsTest, TheStackOfAnOlderPyTorchShowsItsThread) {
  JobBuilder job = CallsOf({kMain, kOther, kMain, kOther}, "python");
  job.process(0).awaited_tids = {kOther};
  EXPECT_EQ(CountRacing(job), 0u);
}

TEST(RacingThreadsTest, AThreadThatHasTakenOverDoesNotRace) {
  std::vector<uint32_t> threads(3, kMain);
  threads.insert(threads.end(), 10, kOther);
  EXPECT_EQ(CountRacing(CallsOf(threads)), 0u);
}

TEST(RacingThreadsTest, ARecordWithoutThreadProvesNothing) {
  EXPECT_EQ(CountRacing(CallsOf({kMain, 0, kMain})), 0u);
}

TEST(CallingTidsTest, TheThreadInTheLongestCallComesFirst) {
  Process process;
  process.pid = kMain;
  process.blocked = {{kOther, Op::kAllReduce, kDp, At(5)}, {kMain, Op::kAllReduce, 7, At(3)}};
  EXPECT_EQ(CallingTids(process), (Tids{kMain, kOther}));
}

TEST(CallingTidsTest, IgnoresASideThreadThatWaitsForAKey) {
  Process process;
  process.pid = kMain;
  process.callers = {{kMain, kMain, "python"}};
  process.blocked = {{kOther, Op::kstore_wait, 0, At(1)}};
  EXPECT_EQ(CallingTids(process), Tids());
  process.blocked = {{kMain, Op::kstore_wait, 0, At(1)}};
  EXPECT_EQ(CallingTids(process), (Tids{kMain}));
}

TEST(CallingTidsTest, AThreadMakesTheCallsIfTheMainThreadMakesNone) {
  Process process;
  process.pid = kMain;
  process.callers = {{7, kOther, "trainer"}};
  EXPECT_EQ(CallingTids(process), Tids{kOther});
  process.callers.push_back({8, kMain, "python"});
  EXPECT_EQ(CallingTids(process), Tids{});
}

TEST(CallingTidsTest, ARankOfACommunicatorHasItsOwnThread) {
  JobBuilder job = CallsOf({kOther, kOther});
  job.process(0).blocked = {{kMain, Op::kAllReduce, kDp, At(5), 1}};
  EXPECT_EQ(CallingTids(job.process(0), job.comm(), 0), Tids{kOther}) << "main is in rank 1's call";
  EXPECT_EQ(CallingTids(job.process(0), job.comm(), 1), Tids{kMain});
  EXPECT_EQ(CallingTids(job.process(0), job.comm(), kAnyRank), Tids{kMain});
}

}  // namespace
}  // namespace rollcall
