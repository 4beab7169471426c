// SPDX-License-Identifier: Apache-2.0
// Cycles in which a send or receive lacks its other end, because the peer has gone on to another
// call: who has left out a call, by the batches of the past, by the number of messages, or it is
// unknown.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "daemon/diagnosis/diagnose.h"
#include "steps_of_calls.h"

namespace rollcall {
namespace {

Verdict First(const JobState& state) {
  const std::vector<Verdict> verdicts = Diagnose(state, At(100), Limits());
  EXPECT_FALSE(verdicts.empty());
  return verdicts.empty() ? Verdict() : verdicts[0];
}

// Every stage passes a message to the next one.
class Chain : public StepsOfCalls {
 public:
  explicit Chain(int ranks) : StepsOfCalls(ranks), ranks_(ranks) {}

  void Pass(int from, int to) {
    Issue(from, Send(to));
    Issue(to, Recv(from));
    job.CompleteP2p({from, to});
  }
  void Step() {
    for (int rank = 0; rank + 1 < ranks_; ++rank) Pass(rank, rank + 1);
  }
  void Issue(int rank, CallArgs args, uint16_t group = 0) { job.Issue(rank, args, Next(), group); }

 private:
  int ranks_;
};

// After eight steps stage 0 leaves out the reduction and sends the next message.
Chain StageLeavesOutReduction() {
  Chain chain(4);
  chain.Call(AllReduce(1));
  for (int step = 0; step < 8; ++step) chain.Step();
  chain.Issue(0, Send(1));
  chain.Enter({1, 2, 3}, AllReduce(100));
  return chain;
}

TEST(LeftCollectiveTest, BlamesASenderToAReducingRankForTheReduction) {
  const Verdict v = First(StageLeavesOutReduction().job.state);
  EXPECT_EQ(v.cause, Cause::kMissingRank) << v.summary;
  EXPECT_EQ(Blamed(v), (Ranks{0})) << v.summary;
  EXPECT_EQ(v.certainty, Certainty::kLikely);
  EXPECT_EQ(v.waiting_ranks.size(), 3u);
  ASSERT_FALSE(v.advice.empty());
  EXPECT_EQ(v.advice.front().id, "skipped-call");
  EXPECT_TRUE(Says(v.evidence,
                   "rank 0 waits in Send for one of them: rank 1 has issued 8 sends and 8 "
                   "receives, as many as the ranks that wait with it"))
      << v.evidence.back();
}

TEST(LeftCollectiveTest, ARankThatHasReceivedOneLessHasLeftOutItsReceive) {
  Chain chain(4);
  chain.Call(AllReduce(1));
  for (int step = 0; step < 7; ++step) chain.Step();
  chain.Issue(0, Send(1));
  for (int rank = 1; rank < 3; ++rank) chain.Pass(rank, rank + 1);
  chain.Enter({1, 2, 3}, AllReduce(100));
  const Verdict v = First(chain.job.state);
  EXPECT_EQ(v.cause, Cause::kUnmatchedP2p) << v.summary;
  EXPECT_EQ(Blamed(v), (Ranks{1})) << v.summary;
  EXPECT_EQ(v.certainty, Certainty::kLikely);
}

TEST(LeftCollectiveTest, SeveralRanksMayHaveLeftOutTheReduction) {
  Chain chain(6);
  chain.Call(AllReduce(1));
  for (int step = 0; step < 8; ++step) chain.Step();
  chain.Pass(0, 1);
  chain.Issue(0, Send(1));
  chain.Issue(1, Send(2));
  chain.Enter({2, 3, 4, 5}, AllReduce(100));
  const Verdict v = First(chain.job.state);
  EXPECT_EQ(v.cause, Cause::kMissingRank) << v.summary;
  EXPECT_EQ(Blamed(v), (Ranks{1})) << v.summary;
  EXPECT_NE(v.certainty, Certainty::kCertain);
}

// Activations go up and gradients come down, so an inner stage has twice as many messages.
TEST(LeftCollectiveTest, AnInnerStageIsComparedWithItself) {
  Chain chain(3);
  chain.Call(AllReduce(1));
  for (int step = 0; step < 8; ++step) {
    chain.Step();
    chain.Pass(2, 1);
    chain.Pass(1, 0);
  }
  chain.Issue(2, Recv(1));
  chain.Enter({0, 1}, AllReduce(100));
  const Verdict v = First(chain.job.state);
  EXPECT_EQ(v.cause, Cause::kMissingRank) << v.summary;
  EXPECT_EQ(Blamed(v), (Ranks{2})) << v.summary;
  EXPECT_EQ(v.certainty, Certainty::kLikely);
}

TEST(LeftCollectiveTest, ARankThatIsOnlyLateIsNotACycle) {
  Chain chain(4);
  for (int step = 0; step < 8; ++step) chain.Step();
  chain.Enter({1, 2, 3}, AllReduce(100));
  const Verdict v = First(chain.job.state);
  EXPECT_EQ(v.cause, Cause::kMissingRank) << v.summary;
  EXPECT_EQ(v.divergence, DivergenceKind::kNone);
}

// Two ranks: one sends, the other one reduces, for the first time.
TEST(UnmatchedTieTest, WhereNothingDecidesBothAreNamed) {
  JobBuilder job(2);
  job.Finish(5);
  job.Issue(0, Send(1), At(10));
  job.Enter({1}, At(10));
  const Verdict v = First(job.state);
  EXPECT_EQ(v.cause, Cause::kUnmatchedP2p) << v.summary;
  EXPECT_EQ(Blamed(v), (Ranks{0, 1})) << v.summary;
  EXPECT_EQ(v.certainty, Certainty::kLikely);
  EXPECT_NE(
      v.summary.find("one of ranks 0-1 has left out a call: rank 0 waits in Send to rank 1 of "
                     "communicator \"dp\" for rank 1, and rank 1 waits in AllReduce #5 on "
                     "communicator \"dp\" for rank 0; 2 ranks have waited"),
      std::string::npos)
      << v.summary;
}

// One stage handles three micro-batches, the other one two: both send.
TEST(UnmatchedTieTest, OtherNumbersOfMicrobatchesAreNotADeadlock) {
  Chain chain(2);
  chain.Pass(0, 1);
  chain.Pass(0, 1);
  chain.Issue(0, Send(1));
  chain.Issue(1, Send(0));
  const Verdict v = First(chain.job.state);
  EXPECT_EQ(v.cause, Cause::kUnmatchedP2p) << v.summary;
  EXPECT_EQ(Blamed(v), (Ranks{0, 1})) << v.summary;
}

TEST(UnmatchedTieTest, TwoRanksThatBothSendFirstAreADeadlock) {
  Chain chain(2);
  for (int step = 0; step < 3; ++step) {
    for (const int rank : {0, 1}) {
      chain.Issue(rank, Send(1 - rank), static_cast<uint16_t>(step + 1));
      chain.Issue(rank, Recv(1 - rank), static_cast<uint16_t>(step + 1));
    }
    chain.job.CompleteP2p({0, 1});
  }
  for (const int rank : {0, 1}) chain.Issue(rank, Send(1 - rank));
  const Verdict v = First(chain.job.state);
  EXPECT_EQ(v.cause, Cause::kDeadlock) << v.summary;
  EXPECT_EQ(Blamed(v), (Ranks{0, 1})) << v.summary;
}

// Every rank of a ring sends to the next one and receives from the one before, in one batch.
class Ring : public Chain {
 public:
  using Chain::Chain;
  void Batch(int rank, bool sends) {
    ++group_;
    if (sends) Issue(rank, Send((rank + 1) % 4), group_);
    Issue(rank, Recv((rank + 3) % 4), group_);
  }

 private:
  uint16_t group_ = 0;
};

TEST(LackingBatchTest, TheRanksWhoseBatchLacksACallAreTheCulprits) {
  Ring ring(4);
  for (int step = 0; step < 20; ++step) {
    for (int rank = 0; rank < 4; ++rank) ring.Batch(rank, true);
    ring.job.CompleteP2p({0, 1, 2, 3});
  }
  for (const int rank : {0, 2}) ring.Batch(rank, true);
  for (const int rank : {1, 3}) {
    ring.Batch(rank, false);
    ring.job.CompleteP2p({rank});
  }
  for (const int rank : {1, 3}) ring.Batch(rank, false);
  const Verdict v = First(ring.job.state);
  EXPECT_EQ(v.cause, Cause::kUnmatchedP2p) << v.summary;
  EXPECT_EQ(Blamed(v), (Ranks{1, 3})) << v.summary;
  EXPECT_EQ(v.certainty, Certainty::kLikely);
  EXPECT_TRUE(Says(v.evidence,
                   "rank 1: each of its last 20 batches had Send to rank 2 of communicator \"dp\", "
                   "and the next one had not"))
      << v.evidence.back();
}

// Each rank meets the one on either side in turn.
TEST(LackingBatchTest, BatchesMayRepeatAfterSeveral) {
  Chain chain(4);
  uint16_t group = 0;
  const auto meet = [&](int rank, int step, bool sends) {
    const int peer = (rank + ((rank + step) % 2 == 0 ? 1 : 3)) % 4;
    ++group;
    if (sends) chain.Issue(rank, Send(peer), group);
    chain.Issue(rank, Recv(peer), group);
  };
  for (int step = 0; step < 20; ++step) {
    for (int rank = 0; rank < 4; ++rank) meet(rank, step, true);
    chain.job.CompleteP2p({0, 1, 2, 3});
  }
  for (const int rank : {0, 2}) meet(rank, 20, true);
  for (const int rank : {1, 3}) meet(rank, 20, false);
  chain.job.CompleteP2p({1, 3});
  for (const int rank : {1, 3}) meet(rank, 21, false);
  const Verdict v = First(chain.job.state);
  EXPECT_EQ(v.cause, Cause::kUnmatchedP2p) << v.summary;
  EXPECT_EQ(Blamed(v), (Ranks{1, 3})) << v.summary;
  EXPECT_TRUE(Says(v.evidence, "rank 1: one in 2 of its last 20 batches had Send to rank "));
}

// Pairs that are made at their first message: all ranks send to the next one first.
TEST(PairCreationTest, ARingOfPairsIsADeadlock) {
  JobBuilder job(3);
  job.Finish(5);
  const std::vector<std::pair<int, int>> pairs = {{0, 1}, {1, 2}, {0, 2}};
  for (size_t i = 0; i < pairs.size(); ++i) {
    const auto [low, high] = pairs[i];
    job.AddCommunicator(100 + i, "dp:p2p:" + std::to_string(low) + ":" + std::to_string(high),
                        {low, high});
    const int sender = i == 2 ? 1 : 0;  // by its rank in the pair: rank 2 sends to rank 0
    job.comm().members.erase(1 - sender);
    job.Initializing(sender, At(10));
    job.process(sender).blocked = {{1, Op::kCommInitRank, 100 + i, At(10)}};
  }
  const Verdict v = First(job.state);
  EXPECT_EQ(v.cause, Cause::kDeadlock) << v.summary;
  EXPECT_EQ(Blamed(v), (Ranks{0, 1, 2})) << v.summary;
  ASSERT_FALSE(v.advice.empty());
  EXPECT_EQ(v.advice.front().id, "all-send-first");
}

TEST(PairCreationTest, TheRankThatDoesNotComeIsKnownByTheName) {
  JobBuilder job(3);
  job.Finish(5);
  job.AddCommunicator(100, "dp:p2p:0:2", {0, 2});
  job.comm().members.erase(1);
  job.Initializing(0, At(10));
  job.process(0).blocked = {{1, Op::kCommInitRank, 100, At(10)}};
  const Verdict v = First(job.state);
  EXPECT_EQ(v.cause, Cause::kInitIncomplete) << v.summary;
  EXPECT_EQ(Blamed(v), (Ranks{2})) << v.summary;
  EXPECT_EQ(v.culprits.front().pid, 4002);
}

}  // namespace
}  // namespace rollcall
