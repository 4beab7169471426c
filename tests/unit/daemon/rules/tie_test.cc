// SPDX-License-Identifier: Apache-2.0
// Ties that the ranks' own pasts decide.
#include "daemon/rules/tie.h"

#include <gtest/gtest.h>

#include <vector>

#include "daemon/model/first_calls.h"
#include "daemon/rules/rules.h"
#include "steps_of_calls.h"

namespace rollcall {
namespace {

// Data parallel: steps of three calls.
class Loop : public StepsOfCalls {
 public:
  using StepsOfCalls::StepsOfCalls;

  void Steps(int steps) {
    for (int step = 0; step < steps; ++step) {
      for (const uint64_t count : {100, 200, 300}) Call(AllReduce(count));
    }
  }
};

Verdict Mismatch(const Loop& loop) {
  const std::vector<Verdict> verdicts =
      JudgeMismatches(loop.job.state, loop.job.state.communicators.at(kDp));
  EXPECT_EQ(verdicts.size(), 1u);
  return verdicts.empty() ? Verdict() : verdicts[0];
}

TEST(TieTest, TheRankThatBreaksItsHabitIsTheCulprit) {
  Loop loop(2);
  loop.Call(Broadcast(5));
  loop.Steps(20);
  loop.Enter({0}, AllReduce(100));
  loop.Enter({1}, Broadcast());
  const Verdict v = Mismatch(loop);
  EXPECT_EQ(Blamed(v), (Ranks{1}));
  EXPECT_EQ(v.certainty, Certainty::kLikely);
  EXPECT_EQ(v.call.op, Op::kAllReduce);
  EXPECT_EQ(v.waiting_ranks, (Ranks{0}));
  EXPECT_TRUE(Says(v.evidence,
                   "rank 1 has called AllReduce(float32 x 100, sum) here in each of its last 20 "
                   "steps of 3 calls, and called Broadcast(float32 x 128, root 0) this time"))
      << v.evidence.back();
  EXPECT_TRUE(Says(v.missing_evidence, "no side has a majority"));
}

TEST(TieTest, RankZeroMayBeTheCulprit) {
  Loop loop(2);
  loop.Steps(20);
  loop.Enter({0}, AllReduce(200));  // it skipped a call
  loop.Enter({1}, AllReduce(100));
  const Verdict v = Mismatch(loop);
  EXPECT_EQ(Blamed(v), (Ranks{0}));
  EXPECT_EQ(v.call.count, 100u);
}

TEST(TieTest, EqualHalvesAreDecidedInTheSameWay) {
  Loop loop(4);
  loop.Steps(20);
  loop.Enter({0, 2}, Broadcast());
  loop.Enter({1, 3}, AllReduce(100));
  EXPECT_EQ(Blamed(Mismatch(loop)), (Ranks{0, 2}));
}

TEST(TieTest, WithoutAPastNoRankIsTheCulprit) {
  Loop loop(2);
  loop.Steps(4);
  loop.Enter({0}, AllReduce(100));
  loop.Enter({1}, Broadcast());
  EXPECT_EQ(Blamed(Mismatch(loop)), (Ranks{0, 1}));
}

TEST(TieTest, NoRankIsTheCulpritIfBothBreakTheirHabit) {
  Loop loop(2);
  loop.Steps(20);
  loop.Enter({0}, AllGather());
  loop.Enter({1}, Broadcast());
  EXPECT_EQ(Blamed(Mismatch(loop)), (Ranks{0, 1}));
}

TEST(TieTest, AMajorityCountsMoreThanAPast) {
  Loop loop(3);
  loop.Steps(20);
  loop.Enter({0, 1}, Broadcast());
  loop.Enter({2}, AllReduce(100));
  EXPECT_EQ(Blamed(Mismatch(loop)), (Ranks{2}));
}

TEST(TieTest, WhereLengthsChangeTheOperationsHaveAHabit) {
  Loop loop(2);
  for (uint64_t step = 0; step < 30; ++step) {
    loop.Call(AllReduce(1000 + step * step));
    loop.Call(AllGather(2000 + step * step));
  }
  loop.Enter({0}, AllReduce(7));
  loop.Enter({1}, Broadcast());
  EXPECT_EQ(Blamed(Mismatch(loop)), (Ranks{1}));
}

// Two replicas of two tensor-parallel ranks: in each step two calls on "tp", two on "dp" and one
// more on "tp". Of the two ranks of "dp", one is the job's rank 1, and one is rank 3.
constexpr uint64_t kTp01 = 1, kTp23 = 2, kDp02 = 3, kDp13 = 4;

class Grid {
 public:
  explicit Grid(int steps) : job(4) {
    job.AddCommunicator(kTp01, "tp 0", {0, 1});
    job.AddCommunicator(kTp23, "tp 1", {2, 3});
    job.AddCommunicator(kDp02, "dp 0", {0, 2});
    job.AddCommunicator(kDp13, "dp 1", {1, 3});
    for (int step = 0; step < steps; ++step) {
      Forward(step);
      for (const uint64_t dp : {kDp02, kDp13}) Call(dp, {0, 1}, 2, 512, step + 0.2);
      for (const uint64_t tp : {kTp01, kTp23}) Call(tp, {0, 1}, 1, 1, step + 0.4);
    }
  }

  void Forward(int step) {
    for (const uint64_t tp : {kTp01, kTp23}) Call(tp, {0, 1}, 2, 64, step);
  }
  void Call(uint64_t comm, const std::vector<int>& members, int n, uint64_t count, double at) {
    job.On(comm);
    job.Finish(members, n, AllReduce(count), At(at));
  }

  JobBuilder job;
};

// Rank 1 adds up its loss on "dp", and not on "tp": rank 3 comes there with its next gradient.
TEST(TieTest, TheCallsOnOtherCommunicatorsShowTheHabit) {
  Grid grid(12);
  grid.Forward(12);
  for (const uint64_t dp : {kDp02, kDp13}) grid.Call(dp, {0, 1}, 2, 512, 12.2);
  grid.job.On(kDp13);
  grid.job.Enter({0}, At(12.4), AllReduce(1));
  grid.Call(kTp23, {0, 1}, 1, 1, 12.4);
  grid.Call(kTp23, {0, 1}, 2, 64, 13);
  grid.job.On(kDp13);
  grid.job.Enter({1}, At(13.2), AllReduce(512));
  const std::vector<Verdict> verdicts =
      JudgeMismatches(grid.job.state, grid.job.state.communicators.at(kDp13));
  ASSERT_EQ(verdicts.size(), 1u);
  const Verdict& v = verdicts[0];
  EXPECT_EQ(v.cause, Cause::kArgumentMismatch);
  EXPECT_EQ(Blamed(v), (Ranks{1}));
  EXPECT_EQ(v.certainty, Certainty::kLikely);
  EXPECT_TRUE(
      Says(v.evidence,
           "rank 1 has called AllReduce(float32 x 1, sum) on communicator \"tp 0\" here in "
           "each of its last 12 steps of 5 calls, and called AllReduce(float32 x 1, sum) on "
           "communicator \"dp 1\" this time"))
      << v.evidence.back();
  const Communicator& dp = grid.job.state.communicators.at(kDp13);
  const uint64_t position = grid.job.member(0).entered - 1;
  EXPECT_TRUE(IsUsualElsewhere(grid.job.state, dp, dp.members.at(0), position));
  EXPECT_FALSE(IsUsualElsewhere(grid.job.state, dp, dp.members.at(1), position));
  EXPECT_FALSE(IsUsualElsewhere(grid.job.state, dp, dp.members.at(0), position + 1));
}

TEST(TieTest, AnotherCallThanTheUsualOneIsUsualNowhere) {
  Grid grid(12);
  grid.job.On(kDp13);
  grid.job.Enter({0}, At(12), AllReduce(7));
  const Communicator& dp = grid.job.state.communicators.at(kDp13);
  EXPECT_FALSE(
      IsUsualElsewhere(grid.job.state, dp, dp.members.at(0), grid.job.member(0).entered - 1));
}

// After three steps, no calls show a habit.
TEST(TieTest, AShortPastOnAllCommunicatorsDecidesNothing) {
  Grid grid(3);
  grid.job.On(kDp13);
  grid.job.Enter({0}, At(3), AllReduce(1));
  grid.job.Enter({1}, At(3), AllReduce(512));
  const std::vector<Verdict> verdicts =
      JudgeMismatches(grid.job.state, grid.job.state.communicators.at(kDp13));
  ASSERT_EQ(verdicts.size(), 1u);
  EXPECT_EQ(Blamed(verdicts[0]), (Ranks{1, 3}));
}

// The records reach back to call 30, and the job has made a broadcast before.
Loop WithLostRecords(CallArgs first) {
  Loop loop(2);
  loop.Call(first);
  loop.Steps(30);
  for (const CallRecord& record : loop.job.member(0).records) {
    RecordFirst(record, &loop.job.comm());
  }
  loop.Enter({0}, AllReduce(100));
  loop.Enter({1}, Broadcast());
  loop.job.LoseRecordsBefore(30);
  return loop;
}

TEST(TieTest, ACallThatCameLongAgoBreaksNoHabit) {
  EXPECT_EQ(Blamed(Mismatch(WithLostRecords(Broadcast()))), (Ranks{0, 1}));
}

TEST(TieTest, ACallThatNeverCameBreaksAHabitWithLostRecords) {
  EXPECT_EQ(Blamed(Mismatch(WithLostRecords(AllGather()))), (Ranks{1}));
}

}  // namespace
}  // namespace rollcall
