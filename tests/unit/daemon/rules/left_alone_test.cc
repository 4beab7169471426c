// SPDX-License-Identifier: Apache-2.0
// Cycles of collectives without a past in which one rank alone has left the others.
#include <gtest/gtest.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "daemon/diagnosis/diagnose.h"
#include "steps_of_calls.h"

namespace rollcall {
namespace {

// Two replicas of two tensor-parallel ranks each. The ids are those of communicators.
constexpr uint64_t kTp01 = 1, kTp23 = 2, kDp02 = 3, kDp13 = 4;

class Replicas {
 public:
  explicit Replicas(int steps) : job_(4) {
    const std::vector<std::pair<uint64_t, std::vector<int>>> comms = {
        {kTp01, {0, 1}}, {kTp23, {2, 3}}, {kDp02, {0, 2}}, {kDp13, {1, 3}}};
    for (const auto& [id, ranks] : comms) job_.AddCommunicator(id, id < kDp02 ? "tp" : "dp", ranks);
    for (int step = 0; step < steps; ++step) {
      for (const auto& [id, ranks] : comms) {
        job_.On(id);
        job_.Finish({0, 1}, 2, AllReduce(512), At(step + 0.1 * static_cast<double>(id)));
      }
    }
  }

  // The rank of the job waits in one more call on this communicator, in which it is `member`.
  void Wait(uint64_t comm, int member, double at) {
    job_.On(comm);
    job_.Enter({member}, At(at), AllReduce(512));
  }
  // It waits in the first call of all, for which it has left its steps.
  void Leave(int rank, double at) { Wait(kDp, rank, at); }

  JobBuilder job_;
};

Verdict FirstOf(const Replicas& replicas) {
  const std::vector<Verdict> verdicts = Diagnose(replicas.job_.state, At(100), Limits());
  EXPECT_FALSE(verdicts.empty());
  return verdicts.empty() ? Verdict() : verdicts[0];
}

// Rank 3 has dropped a batch: its tensor-parallel peer and its replica both wait for it.
Replicas OneLeaves() {
  Replicas replicas(5);
  replicas.Wait(kTp23, 0, 20);
  replicas.Wait(kDp02, 0, 20.1);
  replicas.Wait(kDp13, 0, 20.2);
  replicas.Leave(3, 20.3);
  return replicas;
}

TEST(LeftAloneTest, TheRankThatIsAloneInACallOfAllHasLeftTheOthers) {
  const Verdict v = FirstOf(OneLeaves());
  EXPECT_EQ(v.cause, Cause::kMissingRank) << v.summary;
  EXPECT_EQ(Blamed(v), (Ranks{3})) << v.summary;
  EXPECT_EQ(v.certainty, Certainty::kLikely);
  EXPECT_EQ(v.divergence, DivergenceKind::kSkipped);
  Ranks waiting = v.waiting_ranks;
  std::sort(waiting.begin(), waiting.end());
  EXPECT_EQ(waiting, (Ranks{0, 1, 2}));
  EXPECT_TRUE(Says(v.evidence, "rank 3 waits alone in AllReduce #0 on communicator \"dp\""))
      << v.evidence.back();
}

TEST(LeftAloneTest, OfTwoRanksThatHaveLeftNoneIsBlamedAlone) {
  Replicas replicas(5);
  replicas.Wait(kTp01, 0, 20);
  replicas.Wait(kTp23, 0, 20);
  replicas.Leave(1, 20.3);
  replicas.Leave(3, 20.3);
  const Verdict v = FirstOf(replicas);
  EXPECT_EQ(v.cause, Cause::kDeadlock) << v.summary;
  EXPECT_EQ(Blamed(v), (Ranks{0, 1, 2, 3})) << v.summary;
}

// Either rank 3 has left out a call, or rank 2 has made one too many.
TEST(LeftAloneTest, OneRankThatWaitsForItIsNotEnough) {
  Replicas replicas(5);
  replicas.Wait(kTp23, 0, 20);
  replicas.Wait(kDp02, 0, 20.1);
  replicas.Wait(kTp01, 1, 20.2);
  replicas.Leave(3, 20.3);
  const Verdict v = FirstOf(replicas);
  EXPECT_EQ(v.cause, Cause::kDeadlock) << v.summary;
  EXPECT_EQ(Blamed(v), (Ranks{0, 1, 2, 3})) << v.summary;
}

// Rank 0 alone has left its pair: the others are where they should be, and rank 1 waits for it.
TEST(LeftAloneTest, ARankThatWaitsForOneOnlyMayBeRight) {
  JobBuilder job(4);
  job.Enter({0, 2, 3}, At(20));
  job.AddCommunicator(kTp01, "tp", {0, 1});
  job.Enter({1}, At(20));
  const std::vector<Verdict> verdicts = Diagnose(job.state, At(100), Limits());
  ASSERT_FALSE(verdicts.empty());
  EXPECT_EQ(Blamed(verdicts[0]), (Ranks{0, 1})) << verdicts[0].summary;
}

// It has turned the order of two calls, or left one out.
TEST(LeftAloneTest, OnTwoCommunicatorsOfAllItMayBeTheOrder) {
  JobBuilder job(3);
  job.Enter({0}, At(20));
  job.AddCommunicator(1, "first", {0, 1, 2});
  job.Enter({1, 2}, At(20));
  const std::vector<Verdict> verdicts = Diagnose(job.state, At(100), Limits());
  ASSERT_FALSE(verdicts.empty());
  EXPECT_EQ(verdicts[0].cause, Cause::kDeadlock) << verdicts[0].summary;
  EXPECT_EQ(Blamed(verdicts[0]), (Ranks{0, 1, 2}));
}

// Each waits alone for its neighbour.
TEST(LeftAloneTest, ARingHasNoRankThatLeft) {
  JobBuilder job(3);
  for (int rank = 0; rank < 3; ++rank) {
    job.AddCommunicator(static_cast<uint64_t>(rank) + 1, "", {rank, (rank + 1) % 3});
    job.Enter({0}, At(20));
  }
  const std::vector<Verdict> verdicts = Diagnose(job.state, At(100), Limits());
  ASSERT_FALSE(verdicts.empty());
  EXPECT_EQ(verdicts[0].cause, Cause::kDeadlock);
  EXPECT_EQ(Blamed(verdicts[0]), (Ranks{0, 1, 2}));
}

TEST(LeftAloneTest, ARankWithoutReportsIsNotBlamed) {
  Replicas replicas = OneLeaves();
  replicas.job_.state.processes[3].liveness = Liveness::kSilent;
  for (const Verdict& v : Diagnose(replicas.job_.state, At(100), Limits())) {
    EXPECT_FALSE(Says(v.evidence, "waits alone")) << v.summary;
  }
}

}  // namespace
}  // namespace rollcall
