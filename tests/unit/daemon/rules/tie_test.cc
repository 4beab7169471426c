// SPDX-License-Identifier: Apache-2.0
// Ties that the ranks' own pasts decide.
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
