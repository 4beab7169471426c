// SPDX-License-Identifier: Apache-2.0
// Ranks that wait in torch's store for the id of a communicator that does not exist yet: the wait
// graph follows them to the rank that makes the id.
#include "daemon/rules/store_waits.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "daemon/diagnosis/diagnose.h"
#include "steps_of_calls.h"

namespace rollcall {
namespace {

const char kCollective[] = "all_reduce", kSend[] = "send", kRecv[] = "recv";

// A sample of the stacks shows this rank in the store, inside this call of torch.distributed.
void WaitInStore(int rank, const std::string& call, double at, JobBuilder* job,
                 const std::string& line = "/x/train.py:46 in balance") {
  Process& process = job->state.processes[static_cast<size_t>(rank)];
  process.waits_outside_since_ns = process.stacks_ns = At(at);
  process.stack_words = "TCPStore::doWait TCPStore::get";
  process.place.at = line;
  process.place.inside = "distributed_c10d." + call;
  process.place.functions =
      " TCPStore::doWait TCPStore::doGet TCPStore::get PrefixStore::get "
      "distributed_c10d." +
      call + " train.balance ";
}

// This rank waits in a message to (or from) its peer, on the communicator of the two.
void WaitInMessage(int rank, int peer, bool sends, double at, JobBuilder* job) {
  const int low = std::min(rank, peer), high = std::max(rank, peer);
  job->AddCommunicator(100 + static_cast<uint64_t>(low),
                       "dp:p2p:" + std::to_string(low) + ":" + std::to_string(high), {low, high});
  const int other = rank == low ? 1 : 0;
  job->Issue(1 - other, sends ? Send(other) : Recv(other), At(at));
}

Verdict First(const JobBuilder& job) {
  const std::vector<Verdict> verdicts = Diagnose(job.state, At(70), Limits());
  EXPECT_FALSE(verdicts.empty());
  return verdicts.empty() ? Verdict() : verdicts[0];
}

// Stage 0 has left out a reduction whose communicator is new, and sends to stage 1.
TEST(StoreWaitsTest, BlamesTheRankThatWentOnWithoutMakingTheId) {
  JobBuilder job(4);
  job.state.communicators.clear();
  WaitInMessage(0, 1, true, 10, &job);
  for (const int rank : {1, 2, 3}) WaitInStore(rank, kCollective, 12, &job);
  const Verdict v = First(job);
  EXPECT_EQ(v.cause, Cause::kInitIncomplete) << v.summary;
  EXPECT_EQ(Blamed(v), (Ranks{0})) << v.summary;
  EXPECT_EQ(v.waiting_ranks, (Ranks{1, 2, 3}));
  EXPECT_EQ(v.certainty, Certainty::kLikely);
  EXPECT_EQ(v.summary,
            "rank 0 (node-0, pid 4000) never joined the new communicator of `balance` "
            "(train.py:46) of 4 ranks (CommInitRank); 3 ranks have waited 60 s");
  EXPECT_EQ(v.advice.front().id, "skipped-call");
}

// Ranks 2 and 3 have not made a group that ranks 0 and 1 have, so torch's names of the next one
// differ: each half waits for the other one under another id.
TEST(StoreWaitsTest, TheSameCallUnderAnotherIdIsNotProgress) {
  JobBuilder job(4);
  job.Finish(5);
  job.AddCommunicator(100, "group 2", {0, 1, 2, 3});
  for (const int rank : {2, 3}) job.comm().members.erase(rank);
  for (const int rank : {0, 1}) {
    job.Initializing(rank, At(10));
    job.process(rank).blocked = {{1, Op::kCommInitRank, 100, At(10)}};
  }
  for (int rank = 0; rank < 4; ++rank) WaitInStore(rank, kCollective, 12, &job);
  for (const int rank : {0, 1}) job.process(rank).waits_outside_since_ns = 0;
  const Verdict v = First(job);
  EXPECT_EQ(v.cause, Cause::kInitIncomplete) << v.summary;
  EXPECT_EQ(Blamed(v), (Ranks{2, 3})) << v.summary;
}

// The communicator has ranks 1 to 3; stage 1 has left the call out.
TEST(StoreWaitsTest, ARankThatIsNotAMemberOnlyWaitsForTheCulprit) {
  JobBuilder job(4);
  job.state.communicators.clear();
  WaitInMessage(0, 1, false, 11, &job);
  WaitInMessage(1, 2, true, 10, &job);
  for (const int rank : {2, 3}) WaitInStore(rank, kCollective, 12, &job);
  EXPECT_EQ(Blamed(First(job)), (Ranks{1}));
}

// Ranks 1 to 3 wait in the store, and rank 0 in no call; others wait for one of them.
JobBuilder WithABusyMaker() {
  JobBuilder job(6);
  job.Finish(5);
  job.AddCommunicator(7, "tp", {1, 4, 5});
  job.Enter({1, 2}, At(10));
  for (const int rank : {1, 2, 3}) WaitInStore(rank, kCollective, 12, &job);
  return job;
}

TEST(StoreWaitsTest, AMakerThatMayOnlyBeLateIsPossible) {
  JobBuilder job = WithABusyMaker();
  const Verdict v = First(job);
  EXPECT_EQ(v.cause, Cause::kInitIncomplete) << v.summary;
  EXPECT_EQ(Blamed(v), (Ranks{0})) << v.summary;
  EXPECT_EQ(v.certainty, Certainty::kPossible);
  for (const Motion motion : {Motion::kMoving, Motion::kSpinning}) {
    job.state.processes[0].motion = motion;
    job.state.processes[0].stacks_ns = At(12);
    EXPECT_EQ(First(job).certainty, Certainty::kPossible);
  }
}

TEST(StoreWaitsTest, AMakerThatStandsIsTheCulprit) {
  JobBuilder job = WithABusyMaker();
  job.state.processes[0].motion = Motion::kFrozen;
  job.state.processes[0].stacks_ns = At(9);
  EXPECT_EQ(First(job).certainty, Certainty::kPossible) << "it stood before anybody waited";
  job.state.processes[0].stacks_ns = At(12);
  EXPECT_EQ(First(job).certainty, Certainty::kLikely);
}

TEST(StoreWaitsTest, NoRankOwesTheIdWhileTheMakerMakesOtherCalls) {
  JobBuilder job = WithABusyMaker();
  job.AddCommunicator(8, "alone", {0});
  job.Finish({0}, 3, AllReduce(), At(66));
  EXPECT_NE(Blamed(First(job)), (Ranks{0})) << First(job).summary;
}

// Ranks 1 to 3 were in the store in another hang, long before anybody waited now.
TEST(StoreWaitsTest, ASampleFromBeforeTheHangShowsNoWait) {
  JobBuilder job(6);
  job.Finish(5);
  job.Enter({4, 5}, At(40));
  for (const int rank : {1, 2, 3}) WaitInStore(rank, kCollective, 12, &job);
  const Verdict v = First(job);
  EXPECT_EQ(v.cause, Cause::kMissingRank) << v.summary;
  EXPECT_EQ(v.communicator, kDp);
}

TEST(StoreWaitsTest, AWaitOfAnotherHangIsNotTheBeginningOfThisOne) {
  JobBuilder job = WithABusyMaker();
  for (const int rank : {1, 2, 3})
    job.state.processes[static_cast<size_t>(rank)].waits_outside_since_ns = At(-900);
  EXPECT_EQ(First(job).since_ns, At(10));
}

// It made the call of this line in another hang.
TEST(StoreWaitsTest, AnOldPlaceOfAMakerSaysNothing) {
  JobBuilder job = WithABusyMaker();
  WaitInStore(0, kCollective, 9, &job);
  job.state.processes[0].waits_outside_since_ns = 0;
  EXPECT_EQ(Blamed(First(job)), (Ranks{0})) << First(job).summary;
}

// The lower rank of two makes the id, so the last one of the ring waits in the store.
TEST(StoreWaitsTest, ARingInWhichAllSendFirstIsADeadlock) {
  JobBuilder job(4);
  job.Finish(5);
  for (int rank = 0; rank < 3; ++rank) {
    job.AddCommunicator(100 + static_cast<uint64_t>(rank),
                        "dp:p2p:" + std::to_string(rank) + ":" + std::to_string(rank + 1),
                        {rank, rank + 1});
    job.comm().members.erase(1);
    job.Initializing(0, At(10));
    job.process(0).blocked = {{1, Op::kCommInitRank, 100 + static_cast<uint64_t>(rank), At(10)}};
  }
  WaitInStore(3, kSend, 12, &job);
  const Verdict v = First(job);
  EXPECT_EQ(v.cause, Cause::kDeadlock) << v.summary;
  EXPECT_EQ(Blamed(v), (Ranks{0, 1, 2, 3})) << v.summary;
  EXPECT_EQ(v.certainty, Certainty::kLikely);
  ASSERT_FALSE(v.advice.empty());
  EXPECT_EQ(v.advice.front().id, "all-send-first");
}

TEST(StoreWaitsTest, ARingInWhichAllReceiveFirstIsADeadlock) {
  JobBuilder job(3);
  job.Finish(5);
  job.AddCommunicator(100, "dp:p2p:0:2", {0, 2});
  job.comm().members.erase(1);
  job.Initializing(0, At(10));
  job.process(0).blocked = {{1, Op::kCommInitRank, 100, At(10)}};
  WaitInStore(1, kRecv, 12, &job);
  WaitInStore(2, kRecv, 12, &job);
  const Verdict v = First(job);
  EXPECT_EQ(v.cause, Cause::kDeadlock) << v.summary;
  EXPECT_EQ(Blamed(v), (Ranks{0, 1, 2})) << v.summary;
}

TEST(StoreWaitsTest, AWaitInTheProgramsOwnStoreIsNotACreation) {
  JobBuilder job(3);
  job.Finish(5);
  job.Enter({0, 1}, At(10));
  WaitInStore(2, kCollective, 12, &job);
  job.state.processes[2].place.functions = " TCPStore::doWait TCPStore::wait train.meet ";
  const Verdict v = First(job);
  EXPECT_EQ(v.cause, Cause::kMissingRank) << v.summary;
  EXPECT_EQ(Blamed(v), (Ranks{2})) << v.summary;
}

// One of four waits in the store for an id while the others reduce: it is the odd one.
TEST(StoreWaitsTest, WhoMakesACommunicatorAloneIsTheCulprit) {
  JobBuilder job(4);
  job.Finish(5);
  job.Enter({0, 1, 2}, At(10));
  WaitInStore(3, kCollective, 12, &job);
  const Verdict v = First(job);
  EXPECT_EQ(v.cause, Cause::kMissingRank) << v.summary;
  EXPECT_EQ(Blamed(v), (Ranks{3})) << v.summary;
}

TEST(StoreWaitsTest, NamesNoRankIfManyMayOweTheId) {
  JobBuilder job(40);
  for (int rank = 30; rank < 40; ++rank) WaitInStore(rank, kCollective, 12, &job);
  StuckCall call;
  call.since_ns = At(10);
  EXPECT_TRUE(FindStoreWaits(job.state, {&call}, At(70), Limits()).calls.empty());
  for (int rank = 0; rank < 30; ++rank)
    job.state.processes[static_cast<size_t>(rank)].liveness = Liveness::kExited;
  job.state.processes[3].liveness = Liveness::kAlive;
  EXPECT_EQ(FindStoreWaits(job.state, {&call}, At(70), Limits()).calls.size(), 1u);
}

// Ranks wait at many lines and in many messages, and each waits in a call that lacks all others.
size_t WorkFor(int ranks) {
  JobBuilder job(ranks);
  StuckCall all;
  all.communicator = &job.comm();
  all.since_ns = At(10);
  for (int rank = 0; rank < ranks; ++rank) {
    Waiter waiter;
    waiter.rank = waiter.process = rank;
    all.waiters.push_back(waiter);
    Absent absent;
    absent.rank = absent.process = rank;
    all.absents.push_back(absent);
    const std::string line = "/x/train.py:" + std::to_string(rank % 100) + " in balance";
    WaitInStore(rank, rank % 2 == 0 ? kCollective : kSend, 12, &job, line);
  }
  return FindStoreWaits(job.state, {&all, &all, &all}, At(70), Limits()).looked_at;
}

TEST(StoreWaitsTest, TwiceTheRanksAreTwiceTheWork) {
  const size_t work = WorkFor(2000);
  EXPECT_GT(work, 2000u);
  EXPECT_LT(WorkFor(4000), 2 * work + work / 4);
}

}  // namespace
}  // namespace rollcall
