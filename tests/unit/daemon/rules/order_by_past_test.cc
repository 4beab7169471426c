// SPDX-License-Identifier: Apache-2.0
// Cycles of collectives on several communicators, in which the ranks' own pasts decide.
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "daemon/diagnosis/diagnose.h"
#include "steps_of_calls.h"

namespace rollcall {
namespace {

constexpr uint64_t kA = 1, kB = 2;

// Two communicators of all ranks.
class TwoComms : public StepsOfCalls {
 public:
  explicit TwoComms(int ranks) : StepsOfCalls(ranks), ranks_(JobBuilder::Ranks(0, ranks)) {
    job.AddCommunicator(kA, "a", ranks_);
    job.AddCommunicator(kB, "b", ranks_);
  }

  // All ranks make the call on it, which ends.
  void All(uint64_t comm, uint64_t count = 100) {
    job.On(comm);
    Call(AllReduce(count));
  }
  // These enter it, and wait.
  void Wait(const std::vector<int>& ranks, uint64_t comm, uint64_t count = 100) {
    job.On(comm);
    Enter(ranks, AllReduce(count));
  }
  // These enter it, and their GPUs do not reach it: the stream is busy.
  void Queue(const std::vector<int>& ranks, uint64_t comm) {
    Wait(ranks, comm);
    for (const int rank : ranks) {
      --job.member(rank).started;
      job.member(rank).waiting_since_ns = 0;
    }
  }

 private:
  std::vector<int> ranks_;
};

// In each step, a call on "a" and one on "b".
TwoComms Steps(int steps, int ranks = 2) {
  TwoComms job(ranks);
  for (int step = 0; step < steps; ++step) {
    job.All(kA);
    job.All(kB);
  }
  return job;
}

Verdict First(const TwoComms& steps) {
  const std::vector<Verdict> verdicts = Diagnose(steps.job.state, At(100), Limits());
  EXPECT_FALSE(verdicts.empty());
  return verdicts.empty() ? Verdict() : verdicts[0];
}

// A rank that has left its loop early waits for the others in the first call on another
// communicator.
TEST(OrderByPastTest, TheRankThatLeavesForAFirstCallIsTheCulprit) {
  constexpr uint64_t kWorld = 3;
  for (const int wrong : {0, 2}) {
    TwoComms steps = Steps(50, 3);
    steps.job.AddCommunicator(kWorld, "world", {0, 1, 2});
    std::vector<int> others = {0, 1, 2};
    others.erase(others.begin() + wrong);
    steps.Wait({wrong}, kWorld);
    steps.Wait(others, kA);
    const Verdict v = First(steps);
    EXPECT_EQ(Blamed(v), (Ranks{wrong})) << v.summary;
    EXPECT_EQ(v.certainty, Certainty::kLikely);
    EXPECT_TRUE(Says(v.evidence, "this time")) << v.summary;
  }
}

void ExpectUndecided(const TwoComms& steps, const Ranks& all = {0, 1}) {
  const Verdict v = First(steps);
  EXPECT_EQ(v.cause, Cause::kDeadlock) << v.summary;
  EXPECT_EQ(Blamed(v), all) << v.summary;
  EXPECT_FALSE(Says(v.evidence, "this time"));
}

TEST(OrderByPastTest, TheRankThatLeavesItsOrderIsTheCulprit) {
  for (const int wrong : {0, 1}) {
    TwoComms steps = Steps(30);
    steps.Wait({1 - wrong}, kA);
    steps.Wait({wrong}, kB);
    const Verdict v = First(steps);
    EXPECT_EQ(v.cause, Cause::kDeadlock) << v.summary;
    EXPECT_EQ(Blamed(v), (Ranks{wrong})) << v.summary;
    EXPECT_EQ(v.certainty, Certainty::kLikely);
    EXPECT_EQ(v.waiting_ranks, (Ranks{1 - wrong}));
    EXPECT_EQ(v.waiting_processes, (Ranks{1 - wrong}));
    EXPECT_EQ(v.chain.size(), 2u);
    EXPECT_EQ(v.divergence, DivergenceKind::kSwapped);
    const std::string rank = "rank " + std::to_string(wrong);
    EXPECT_TRUE(
        Says(v.evidence, rank + " has called AllReduce(float32 x 100, sum) on communicator "
                                "\"a\" here in each of its last 30 steps of 2 calls, and called "
                                "AllReduce(float32 x 100, sum) on communicator \"b\" this time"))
        << v.evidence.back();
    EXPECT_TRUE(Says(v.missing_evidence, "what each of them has done in its last steps decides"));
  }
}

TEST(OrderByPastTest, TheSentenceNamesTheRankThatLeftItsOrder) {
  TwoComms steps = Steps(30);
  steps.Wait({0}, kA);
  steps.Wait({1}, kB);
  steps.job.process(1).place = {"/x/train.py:31 in sync", "", false, " f "};
  steps.job.process(1).stacks_ns = At(50);
  const Verdict v = First(steps);
  EXPECT_EQ(v.summary.rfind(
                "rank 1 (node-1, pid 4001) is in `sync` (train.py:31) and no longer makes its "
                "calls in the order of its earlier steps: rank 0 waits in AllReduce #30 on "
                "communicator \"a\" for rank 1, and rank 1 waits in AllReduce #30 on "
                "communicator \"b\" for rank 0; 1 rank has waited ",
                0),
            0u)
      << v.summary;
}

TEST(OrderByPastTest, CallsBehindAWaitOnTheStreamCountAsNotStarted) {
  TwoComms steps = Steps(30);
  steps.Wait({0}, kA);
  steps.Queue({0}, kB);
  steps.Wait({1}, kB);
  steps.Queue({1}, kA);
  const Verdict v = First(steps);
  EXPECT_EQ(v.cause, Cause::kDeadlock) << v.summary;
  EXPECT_EQ(Blamed(v), (Ranks{1})) << v.summary;
  EXPECT_EQ(v.certainty, Certainty::kLikely);
}

TEST(OrderByPastTest, AnOrderThatAllHaveEnteredIsDecidedInTheSameWay) {
  TwoComms steps = Steps(30);
  steps.Wait({0}, kA);
  steps.Wait({0}, kB);
  steps.Wait({1}, kB);
  steps.Wait({1}, kA);
  const Verdict v = First(steps);
  EXPECT_EQ(v.cause, Cause::kDeadlock) << v.summary;
  EXPECT_EQ(Blamed(v), (Ranks{1})) << v.summary;
  EXPECT_EQ(v.certainty, Certainty::kLikely);
  EXPECT_EQ(v.waiting_ranks, (Ranks{0}));
}

TEST(OrderByPastTest, SeveralRanksMayLeaveTheirOrder) {
  TwoComms steps = Steps(30, 4);
  steps.Wait({0, 2}, kA);
  steps.Wait({1, 3}, kB);
  const Verdict v = First(steps);
  EXPECT_EQ(Blamed(v), (Ranks{1, 3})) << v.summary;
  EXPECT_EQ(v.summary.rfind(
                "ranks 1,3 (2 hosts) no longer make their calls in the order of their earlier "
                "steps: ",
                0),
            0u)
      << v.summary;
}

TEST(OrderByPastTest, ARankThatSkipsSeveralCallsIsFound) {
  TwoComms steps(2);
  for (int step = 0; step < 20; ++step) {
    for (const uint64_t count : {100, 200}) steps.All(kA, count);
    for (const uint64_t count : {100, 200}) steps.All(kB, count);
  }
  steps.Wait({0}, kA, 100);
  steps.Wait({1}, kB, 100);
  EXPECT_EQ(Blamed(First(steps)), (Ranks{1}));
}

TEST(OrderByPastTest, AShortPastDecidesNothing) {
  TwoComms steps = Steps(10);
  steps.Wait({0}, kA);
  steps.Wait({1}, kB);
  ExpectUndecided(steps);
}

TEST(OrderByPastTest, AfterFewStepsOneRankOfManyMayLeaveTheirOrder) {
  TwoComms steps = Steps(6, 3);
  steps.Wait({0, 2}, kA);
  steps.Wait({1}, kB);
  const Verdict v = First(steps);
  EXPECT_EQ(v.cause, Cause::kDeadlock) << v.summary;
  EXPECT_EQ(Blamed(v), (Ranks{1})) << v.summary;
  EXPECT_EQ(v.certainty, Certainty::kLikely);
}

TEST(OrderByPastTest, AfterFewStepsTwoOfFourRanksDecideNothing) {
  TwoComms steps = Steps(6, 4);
  steps.Wait({0, 2}, kA);
  steps.Wait({1, 3}, kB);
  ExpectUndecided(steps, {0, 1, 2, 3});
}

TEST(OrderByPastTest, AnIrregularPastDecidesNothing) {
  for (uint32_t seed = 0; seed < 100; ++seed) {
    std::mt19937 random(seed);
    TwoComms steps(2);
    for (int step = 0; step < 60; ++step) {
      const bool turned = random() % 2 == 1;
      steps.All(turned ? kB : kA);
      steps.All(turned ? kA : kB);
    }
    steps.Wait({0}, kA);
    steps.Wait({1}, kB);
    ExpectUndecided(steps);
  }
}

// One more call on "b", which comes from time to time.
TEST(OrderByPastTest, ACallThatHasFollowedTheSameStepBeforeBreaksNoHabit) {
  TwoComms steps = Steps(30);
  steps.All(kB);  // an evaluation
  for (int step = 0; step < 30; ++step) {
    steps.All(kA);
    steps.All(kB);
  }
  steps.Wait({0}, kA);
  steps.Wait({1}, kB);
  ExpectUndecided(steps);
}

TEST(OrderByPastTest, BlamesNoRankIfBothLeaveTheirOrder) {
  TwoComms steps(2);
  for (int step = 0; step < 30; ++step) {
    steps.All(kA);
    steps.All(kB);
    steps.All(kDp);
  }
  steps.Wait({0}, kA, 7);  // neither has ever made such a call here
  steps.Wait({1}, kB, 7);
  ExpectUndecided(steps);
}

// Each rank has always had its own order, which only some timing turns into a hang.
TEST(OrderByPastTest, BlamesNoRankIfBothKeepTheirOrder) {
  TwoComms steps(2);
  for (int step = 0; step < 30; ++step) {
    steps.job.On(kA);
    steps.job.Finish({0}, 1, AllReduce(100), At(step));
    steps.job.Finish({1}, 1, AllReduce(100), At(step + 0.2));
    steps.job.On(kB);
    steps.job.Finish({0}, 1, AllReduce(100), At(step + 0.2));
    steps.job.Finish({1}, 1, AllReduce(100), At(step));
  }
  steps.job.On(kA);
  steps.job.Enter({0}, At(31), AllReduce(100));
  steps.job.On(kB);
  steps.job.Enter({1}, At(31), AllReduce(100));
  ExpectUndecided(steps);
}

TEST(OrderByPastTest, LostRecordsDecideNothing) {
  TwoComms steps = Steps(30);
  auto& records = steps.job.member(1).records;  // of "b"
  records.erase(records.begin() + 25, records.begin() + 26);
  steps.Wait({0}, kA);
  steps.Wait({1}, kB);
  ExpectUndecided(steps);
}

// Old dumps hold no times.
TEST(OrderByPastTest, WithoutTimesNothingIsDecided) {
  for (const int count : {10, 30, 60}) {
    TwoComms steps = Steps(count);
    steps.Wait({0}, kA);
    steps.Wait({1}, kB);
    for (auto& [id, comm] : steps.job.state.communicators) {
      for (auto& [rank, member] : comm.members) {
        for (CallRecord& record : member.records) record.entered_ns = 0;
      }
    }
    ExpectUndecided(steps);
  }
}

TEST(OrderByPastTest, ARankWithoutReportsIsNotJudged) {
  TwoComms steps = Steps(30);
  steps.Wait({0}, kA);
  steps.Wait({1}, kB);
  steps.job.process(0).liveness = Liveness::kSilent;
  for (const Verdict& v : Diagnose(steps.job.state, At(100), Limits())) {
    EXPECT_FALSE(Says(v.evidence, "this time")) << v.summary;
  }
}

// The host's clock is estimated anew each tick: two calls of a rank may seem to have changed
// places.
TEST(OrderByPastTest, BlamesNoRankThatKeptTheOrder) {
  for (size_t back = 0; back < 4; ++back) {
    for (const int moved : {0, 1}) {
      TwoComms steps = Steps(30);
      steps.Wait({0}, kA);
      steps.Wait({1}, kB);
      steps.job.On(back % 2 == 0 ? kA : kB);
      auto& records = steps.job.member(moved).records;
      records[records.size() - 1 - back / 2].entered_ns -=
          kSecondNs / 67;  // 15 ms; calls are 10 ms apart
      const Ranks blamed = Blamed(First(steps));
      EXPECT_TRUE(blamed == (Ranks{1}) || blamed == (Ranks{0, 1})) << back << " " << moved;
    }
  }
}

}  // namespace
}  // namespace rollcall
