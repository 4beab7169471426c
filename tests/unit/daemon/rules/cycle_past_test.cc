// SPDX-License-Identifier: Apache-2.0
// Sends without receives in a cycle of waits, in which a rank's own past decides. And creations, in
// which the majority decides.
#include <gtest/gtest.h>

#include <vector>

#include "daemon/diagnosis/diagnose.h"
#include "steps_of_calls.h"

namespace rollcall {
namespace {

class Loop : public StepsOfCalls {
 public:
  using StepsOfCalls::StepsOfCalls;

  // Rank 1 sends to rank 2, and both go on.
  void Exchange() {
    Send12();
    Receive12();
    job.CompleteP2p({1, 2});
  }
  void Send12() { job.Issue(1, Send(2), Next()); }
  void Receive12() { job.Issue(2, Recv(1), Next()); }
};

Loop Exchanges(int steps) {
  Loop loop(3);
  for (int step = 0; step < steps; ++step) {
    loop.Exchange();
    loop.Call(AllReduce(100));
    loop.Call(AllReduce(200));
  }
  return loop;
}

Verdict First(const Loop& loop) {
  const std::vector<Verdict> verdicts = Diagnose(loop.job.state, At(100), Limits());
  EXPECT_FALSE(verdicts.empty());
  return verdicts.empty() ? Verdict() : verdicts[0];
}

TEST(CycleByPastTest, TheRankThatSkipsItsReceiveIsTheCulprit) {
  Loop loop = Exchanges(20);
  loop.Send12();
  loop.Enter({0, 2}, AllReduce(100));
  const Verdict v = First(loop);
  EXPECT_EQ(v.cause, Cause::kUnmatchedP2p) << v.summary;
  EXPECT_EQ(Blamed(v), (Ranks{2})) << v.summary;
  EXPECT_EQ(v.certainty, Certainty::kLikely);
  EXPECT_TRUE(Says(v.evidence,
                   "rank 2 has issued Recv from rank 1 of communicator \"dp\" in each "
                   "of its last 20 steps of 3 calls, and did not this time"))
      << v.evidence.back();
}

TEST(CycleByPastTest, TheRankThatSendsOnceTooOftenIsTheCulprit) {
  Loop loop = Exchanges(20);
  loop.Exchange();
  loop.Send12();
  loop.Enter({0, 2}, AllReduce(100));
  const Verdict v = First(loop);
  EXPECT_EQ(v.cause, Cause::kUnmatchedP2p) << v.summary;
  EXPECT_EQ(Blamed(v), (Ranks{1})) << v.summary;
  EXPECT_EQ(v.certainty, Certainty::kLikely);
  Ranks waiting = v.waiting_ranks;
  std::sort(waiting.begin(), waiting.end());
  EXPECT_EQ(waiting, (Ranks{0, 2}));
  EXPECT_NE(v.summary.find("issued one Send to rank 2 of communicator \"dp\" too many"),
            std::string::npos)
      << v.summary;
}

TEST(CycleByPastTest, WithoutAPastBothAreNamed) {
  Loop loop = Exchanges(3);
  loop.Send12();
  loop.Enter({0, 2}, AllReduce(100));
  const Verdict v = First(loop);
  EXPECT_EQ(v.cause, Cause::kUnmatchedP2p) << v.summary;
  EXPECT_EQ(Blamed(v), (Ranks{1, 2}));
}

constexpr uint64_t kNew = 77;

// These ranks are inside the creation of a communicator of all. Returns the others.
std::vector<int> Create(JobBuilder* job, uint64_t id, const char* name, int ranks,
                        const std::vector<int>& inside) {
  job->AddCommunicator(id, name, JobBuilder::Ranks(0, ranks));
  std::vector<int> outside;
  for (int rank = 0; rank < ranks; ++rank) {
    if (std::find(inside.begin(), inside.end(), rank) == inside.end()) {
      outside.push_back(rank);
      job->comm().members.erase(rank);
      continue;
    }
    job->Initializing(rank, At(10));
    job->process(rank).blocked = {{1, Op::kCommInitRank, id, At(10)}};
  }
  return outside;
}

// The others are in an all-reduce.
JobBuilder Forked(int ranks, const std::vector<int>& inside) {
  JobBuilder job(ranks);
  job.Finish(24);
  const std::vector<int> outside = Create(&job, kNew, "evaluation", ranks, inside);
  job.On(kDp);
  job.Enter(outside, At(10));
  return job;
}

// These ranks of three have made a communicator more than the others, who create the one before.
JobBuilder CountedApart(const std::vector<int>& ahead, CommKind kind) {
  JobBuilder job(3);
  job.Finish(24);
  const std::vector<int> behind = Create(&job, kNew, "2", 3, ahead);
  job.comm().kind = kind;
  Create(&job, kNew + 1, "1", 3, behind);
  job.comm().kind = kind;
  return job;
}

TEST(ForkedCreationTest, TheMinorityThatForgotTheCreationIsTheCulprit) {
  const std::vector<Verdict> verdicts = Diagnose(Forked(4, {0, 1, 3}).state, At(70), Limits());
  ASSERT_FALSE(verdicts.empty());
  EXPECT_EQ(verdicts[0].cause, Cause::kInitIncomplete) << verdicts[0].summary;
  EXPECT_EQ(Blamed(verdicts[0]), (Ranks{2}));
  EXPECT_EQ(verdicts[0].certainty, Certainty::kLikely);
}

TEST(ForkedCreationTest, TheMinorityThatCreatesAloneIsTheCulprit) {
  const std::vector<Verdict> verdicts = Diagnose(Forked(4, {1}).state, At(70), Limits());
  ASSERT_FALSE(verdicts.empty());
  EXPECT_EQ(verdicts[0].cause, Cause::kMissingRank) << verdicts[0].summary;
  EXPECT_EQ(Blamed(verdicts[0]), (Ranks{1}));
  EXPECT_EQ(verdicts[0].certainty, Certainty::kLikely);
  EXPECT_TRUE(Says(verdicts[0].evidence,
                   "rank 1 waits in CommInitRank of communicator \"evaluation\", ranks 0,2-3 wait "
                   "in AllReduce of communicator \"dp\""))
      << verdicts[0].evidence.back();
}

TEST(ForkedCreationTest, BlamesTheRankThatCountedOtherGroupsOfPytorch) {
  for (const auto& [ahead, wrong] : {std::make_pair(Ranks{0, 1}, 2), std::make_pair(Ranks{1}, 1)}) {
    const std::vector<Verdict> verdicts =
        Diagnose(CountedApart(ahead, CommKind::kGloo).state, At(70), Limits());
    ASSERT_FALSE(verdicts.empty());
    EXPECT_EQ(verdicts[0].cause, Cause::kInitIncomplete) << verdicts[0].summary;
    EXPECT_EQ(Blamed(verdicts[0]), (Ranks{wrong}));
    EXPECT_EQ(verdicts[0].certainty, Certainty::kLikely);
  }
}

TEST(ForkedCreationTest, TwoCreationsInOtherOrdersAreADeadlock) {
  const std::vector<Verdict> verdicts =
      Diagnose(CountedApart({0, 1}, CommKind::kNccl).state, At(70), Limits());
  ASSERT_FALSE(verdicts.empty());
  EXPECT_EQ(verdicts[0].cause, Cause::kDeadlock) << verdicts[0].summary;
}

TEST(ForkedCreationTest, WithoutAMajorityItIsADeadlock) {
  const std::vector<Verdict> verdicts = Diagnose(Forked(4, {1, 2}).state, At(70), Limits());
  ASSERT_FALSE(verdicts.empty());
  EXPECT_EQ(verdicts[0].cause, Cause::kDeadlock) << verdicts[0].summary;
}

}  // namespace
}  // namespace rollcall
