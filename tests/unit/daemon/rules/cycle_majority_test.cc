// SPDX-License-Identifier: Apache-2.0
// Cycles of sends and receives that one wrong rank explains: by number, or because it has left a
// step that the others have begun.
#include <gtest/gtest.h>

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

// Rank 0 alone distributes a tensor: it sends to all in one group, and they reduce.
TEST(CycleByMajorityTest, TheRankThatAloneSendsToAllIsTheCulprit) {
  JobBuilder job(4);
  job.Finish(11);
  for (const int peer : {1, 2, 3}) job.Issue(0, Send(peer), At(10), 1);
  job.Enter({1, 2, 3}, At(10));
  const Verdict v = First(job.state);
  EXPECT_EQ(v.cause, Cause::kUnmatchedP2p) << v.summary;
  EXPECT_EQ(Blamed(v), (Ranks{0})) << v.summary;
  EXPECT_EQ(v.certainty, Certainty::kLikely);
  EXPECT_EQ(v.divergence, DivergenceKind::kExtra);
  EXPECT_EQ(v.waiting_ranks.size(), 3u);
  EXPECT_TRUE(Says(v.evidence,
                   "rank 0 alone has issued Send; its 3 peers wait together in another "
                   "call"));
}

// With one peer it is unknown which of both is wrong.
TEST(CycleByMajorityTest, OfOneSendWithoutItsReceiveBothRanksAreNamed) {
  JobBuilder job(4);
  job.Finish(11);
  job.Issue(0, Send(1), At(10));
  job.Enter({1, 2, 3}, At(10));
  const Verdict v = First(job.state);
  EXPECT_EQ(v.cause, Cause::kUnmatchedP2p) << v.summary;
  EXPECT_EQ(Blamed(v), (Ranks{0, 1})) << v.summary;
  EXPECT_EQ(v.certainty, Certainty::kLikely);
}

// Each rank passes its block to the next one, but rank 3 passes it to `to`.
JobBuilder RingWith(int to, int ranks = 4) {
  JobBuilder job(ranks);
  job.Finish(11);
  for (int rank = 0; rank < ranks; ++rank) {
    const int next = rank == 3 ? to : (rank + 1) % ranks;
    job.Issue(rank, Send(next), At(10), 1);
    job.Issue(rank, Recv((rank + ranks - 1) % ranks), At(10), 1);
  }
  return job;
}

TEST(CycleByMajorityTest, TheRankWithAnotherNeighbourInTheRingIsTheCulprit) {
  JobBuilder job = RingWith(1);
  for (const int rank : {1, 2}) {
    job.CompleteP2p({rank});
    job.Issue(rank, Send(rank + 1), At(11), 2);
    job.Issue(rank, Recv(rank - 1), At(11), 2);
  }
  const Verdict v = First(job.state);
  EXPECT_EQ(v.cause, Cause::kUnmatchedP2p) << v.summary;
  EXPECT_EQ(Blamed(v), (Ranks{3})) << v.summary;
  EXPECT_EQ(v.certainty, Certainty::kLikely);
  EXPECT_TRUE(Says(v.evidence,
                   "rank 3 sends to rank 1, and each other rank sends to the one that is 1 above "
                   "its own in the ring of 4"));
}

// Each rank exchanges with both neighbours, and rank 2 has gone on without it.
TEST(CycleByMajorityTest, TheRankThatLeftBothItsPeersIsTheCulprit) {
  JobBuilder job(4);
  job.Finish(11);
  for (const int rank : {1, 3}) {
    job.Issue(rank, Send(2), At(10), 1);
    job.Issue(rank, Recv(2), At(10), 1);
  }
  job.Enter({0, 2}, At(10));
  const Verdict v = First(job.state);
  EXPECT_EQ(v.cause, Cause::kUnmatchedP2p) << v.summary;
  EXPECT_EQ(Blamed(v), (Ranks{2})) << v.summary;
  EXPECT_EQ(v.certainty, Certainty::kLikely);
}

// A pipeline: every rank passes on micro-batches, and then sends back what it got for them. Rank 2
// handles fewer of them.
JobBuilder OtherMicrobatches() {
  JobBuilder job(4);
  for (int batch = 0; batch < 2; ++batch) {
    for (int rank = 0; rank < 3; ++rank) {
      job.Issue(rank, Send(rank + 1), At(batch + 0.1 * rank));
      job.Issue(rank + 1, Recv(rank), At(batch + 0.1 * rank));
      job.CompleteP2p({rank, rank + 1});
    }
  }
  job.Issue(0, Send(1), At(5));
  job.Issue(1, Recv(0), At(5));
  job.CompleteP2p({0, 1});
  job.Issue(1, Send(2), At(6));  // the third one
  job.Issue(2, Recv(3), At(6));  // back, for the second one
  job.Issue(3, Recv(2), At(6));  // the third one
  return job;
}

TEST(CycleByMajorityTest, TheRankWithWhichBothNeighboursDisagreeIsTheCulprit) {
  const Verdict v = First(OtherMicrobatches().state);
  EXPECT_EQ(v.cause, Cause::kUnmatchedP2p) << v.summary;
  EXPECT_EQ(Blamed(v), (Ranks{2})) << v.summary;
  EXPECT_EQ(v.certainty, Certainty::kLikely);
}

// Every rank sends to its lower neighbour first. Rank 1 lacks two receives, but all made the same
// error.
TEST(CycleByMajorityTest, WhereAllSendFirstItIsADeadlock) {
  JobBuilder job(4);
  job.Finish(11);
  job.Issue(0, Send(1), At(10));
  for (const int rank : {1, 2, 3}) job.Issue(rank, Send(rank - 1), At(10));
  const Verdict v = First(job.state);
  EXPECT_EQ(v.cause, Cause::kDeadlock) << v.summary;
  EXPECT_EQ(Blamed(v), (Ranks{0, 1})) << v.summary;
}

class Pipeline : public StepsOfCalls {
 public:
  explicit Pipeline(int ranks) : StepsOfCalls(ranks), ranks_(ranks) {}

  // A micro-batch goes from the first rank to the last one, and back.
  void Step() {
    for (int rank = 0; rank + 1 < ranks_; ++rank) Pass(rank, rank + 1);
    for (int rank = ranks_ - 1; rank > 0; --rank) Pass(rank, rank - 1);
  }
  void Pass(int from, int to) {
    job.Issue(from, Send(to), Next());
    job.Issue(to, Recv(from), Next());
    job.CompleteP2p({from, to});
  }
  void Send1(int from, int to) { job.Issue(from, Send(to), Next()); }
  void Receive1(int to, int from) { job.Issue(to, Recv(from), Next()); }

 private:
  int ranks_;
};

// Rank 3 is in the barrier after its loop, the others have begun one more step.
Pipeline StopsEarly(int steps) {
  Pipeline pipe(4);
  for (int step = 0; step < steps; ++step) pipe.Step();
  pipe.Pass(0, 1);
  pipe.Pass(1, 2);
  pipe.Send1(2, 3);
  pipe.Receive1(0, 1);
  pipe.Receive1(1, 2);
  pipe.Enter({3}, AllReduce(1));
  return pipe;
}

TEST(LeftStepTest, TheRankThatLeavesItsLoopAloneIsTheCulprit) {
  const Verdict v = First(StopsEarly(20).job.state);
  EXPECT_EQ(v.cause, Cause::kUnmatchedP2p) << v.summary;
  EXPECT_EQ(Blamed(v), (Ranks{3})) << v.summary;
  EXPECT_EQ(v.certainty, Certainty::kLikely);
  EXPECT_TRUE(Says(v.evidence,
                   "rank 3 has called Recv(float32 x 64, peer 2) here in each of its "
                   "last 20 steps of 2 calls, and called AllReduce(float32 x 1, sum) "
                   "this time"))
      << v.evidence.back();
}

// Rank 0 has made no call before: its past says neither.
TEST(LeftStepTest, ARankWithoutAPastDoesNotOutvoteTheOthers) {
  Pipeline pipe(4);
  for (int step = 0; step < 20; ++step) {
    pipe.Pass(1, 2);
    pipe.Pass(2, 3);
    pipe.Pass(3, 2);
    pipe.Pass(2, 1);
  }
  pipe.Pass(1, 2);
  pipe.Send1(2, 3);
  pipe.Receive1(0, 1);
  pipe.Receive1(1, 2);
  pipe.Enter({3}, AllReduce(1));
  const Verdict v = First(pipe.job.state);
  EXPECT_EQ(v.cause, Cause::kUnmatchedP2p) << v.summary;
  EXPECT_EQ(Blamed(v), (Ranks{3})) << v.summary;
}

TEST(LeftStepTest, WithoutAPastBothAreNamed) {
  const Verdict v = First(StopsEarly(3).job.state);
  EXPECT_EQ(v.cause, Cause::kUnmatchedP2p) << v.summary;
  EXPECT_EQ(Blamed(v), (Ranks{2, 3})) << v.summary;
  EXPECT_NE(v.certainty, Certainty::kCertain);
}

}  // namespace
}  // namespace rollcall
