// SPDX-License-Identifier: Apache-2.0
// Calls of two threads that nothing orders, on one communicator and on two.
#include "daemon/rules/thread_race.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "daemon/diagnosis/diagnose.h"
#include "job_builder.h"

namespace rollcall {
namespace {

using Ranks = std::vector<int32_t>;

constexpr uint32_t kTrainer = 1, kCheckpoint = 2;

// Four ranks whose training thread has made 24 calls.
class ThreadRaceTest : public testing::Test {
 protected:
  ThreadRaceTest() {
    job_.Finish(24);
    for (int rank = 0; rank < 4; ++rank) {
      for (CallRecord& record : job_.member(rank).records) record.thread = kTrainer;
    }
    NameThreads("python");
  }
  void Enter(const std::vector<int>& ranks, CallArgs args, uint32_t thread) {
    job_.Enter(ranks, At(10), args);
    for (const int rank : ranks) job_.member(rank).records.back().thread = thread;
  }
  void NameThreads(const std::string& name) {
    for (int rank = 0; rank < 4; ++rank) {
      job_.process(rank).callers = {{kTrainer, 0, "python"}, {kCheckpoint, 0, name}};
    }
  }
  std::vector<Verdict> Judge() { return Diagnose(job_.state, At(70), Limits()); }

  JobBuilder job_{4};
};

// The thread of rank 3 was faster than its training thread, those of the others slower.
TEST_F(ThreadRaceTest, BlamesAllRanksForTheirTurns) {
  Enter({0, 1, 2}, AllReduce(), kTrainer);
  Enter({3}, AllGather(), kCheckpoint);
  NameThreads("AsyncCheckpoint");
  const std::vector<Verdict> verdicts = Judge();
  ASSERT_FALSE(verdicts.empty());
  const Verdict& v = verdicts.front();
  EXPECT_EQ(v.cause, Cause::kConcurrentUse);
  EXPECT_EQ(v.certainty, Certainty::kLikely);
  EXPECT_EQ(CulpritRanks(v.culprits), (Ranks{0, 1, 2, 3}));
  EXPECT_EQ(v.summary,
            "two threads make calls on communicator \"dp\", and nothing orders them: at #24 ranks "
            "0-2 made AllReduce, rank 3 AllGather; 4 ranks have waited 60 s");
  EXPECT_EQ(v.advice.front().id, "one-thread-per-communicator");
  for (const Verdict& other : verdicts) EXPECT_NE(other.certainty, Certainty::kCertain);
}

// Both threads make calls of one kind: their sizes tell which is which. No stack is known, but the
// line at which a rank has failed since.
TEST_F(ThreadRaceTest, TellsCallsOfOneKindBySizeAndLine) {
  Enter({0, 1, 2}, AllReduce(264), kTrainer);
  Enter({3}, AllReduce(3), kCheckpoint);
  NameThreads("Flusher");
  job_.process(1).error = "RuntimeError: Connection reset at peer at train.py:33";
  job_.process(1).error_ns = At(11);
  const std::vector<Verdict> verdicts = Judge();
  ASSERT_FALSE(verdicts.empty());
  EXPECT_EQ(
      verdicts.front().summary,
      "two threads make calls on communicator \"dp\", and nothing orders them: at #24 ranks "
      "0-2 made AllReduce(float32 x 264, sum), rank 3 AllReduce(float32 x 3, sum), and rank 1 "
      "failed at train.py:33; 4 ranks have waited 60 s");
}

// All call in the same order, as recorded; but the threads of rank 0 have met, and in what order
// NCCL has taken their calls is not known. The threads of the others might have met as well.
TEST_F(ThreadRaceTest, ThreadsThatMeetOnOneRankAreThoseOfAll) {
  for (int rank = 0; rank < 4; ++rank) job_.member(rank).records[20].thread = kCheckpoint;
  Enter({0, 1, 2, 3}, AllReduce(), kTrainer);
  Member& met = job_.member(0);
  met.concurrent_use = true;
  met.records[20].returned_ns = met.records[21].entered_ns + 1000;
  const std::vector<Verdict> verdicts = Judge();
  ASSERT_FALSE(verdicts.empty());
  const Verdict& v = verdicts.front();
  EXPECT_EQ(v.cause, Cause::kConcurrentUse) << v.summary;
  EXPECT_EQ(CulpritRanks(v.culprits), (Ranks{0, 1, 2, 3})) << v.summary;
  EXPECT_EQ(v.certainty, Certainty::kLikely);
  EXPECT_EQ(v.summary,
            "two threads make calls on communicator \"dp\", and nothing orders them: at #24 ranks "
            "0-3 made AllReduce; 4 ranks have waited 60 s");
}

// The thread of rank 3 needs longer before its first call: only the others show two threads.
TEST_F(ThreadRaceTest, BlamesAllRanksIfOneThreadIsLate) {
  Enter({0, 1, 2}, AllGather(), kCheckpoint);
  Enter({3}, AllReduce(), kTrainer);
  const std::vector<Verdict> verdicts = Judge();
  ASSERT_FALSE(verdicts.empty());
  EXPECT_EQ(verdicts.front().cause, Cause::kConcurrentUse);
  EXPECT_EQ(CulpritRanks(verdicts.front().culprits), (Ranks{0, 1, 2, 3}));
}

// The second thread had its turn long ago; now one rank's training thread makes another call.
TEST_F(ThreadRaceTest, AContradictionOfOneThreadKeepsItsCulprit) {
  for (int rank = 0; rank < 4; ++rank) job_.member(rank).records[5].thread = kCheckpoint;
  Enter({0, 1, 2}, AllReduce(), kTrainer);
  Enter({3}, Broadcast(), kTrainer);
  const std::vector<Verdict> verdicts = Judge();
  ASSERT_FALSE(verdicts.empty());
  EXPECT_EQ(verdicts.front().cause, Cause::kOperationMismatch);
  EXPECT_EQ(verdicts.front().certainty, Certainty::kLikely);
  EXPECT_EQ(CulpritRanks(verdicts.front().culprits), Ranks{3});
}

// Files do not show whether the second thread is that of a backward pass.
TEST_F(ThreadRaceTest, WithoutNamesTheContradictionStaysLikely) {
  NameThreads("");
  Enter({0, 1, 2}, AllReduce(), kTrainer);
  Enter({3}, AllGather(), kCheckpoint);
  const std::vector<Verdict> verdicts = Judge();
  ASSERT_FALSE(verdicts.empty());
  EXPECT_EQ(verdicts.front().cause, Cause::kOperationMismatch);
  EXPECT_EQ(verdicts.front().certainty, Certainty::kLikely);
}

// On a busy host the agent reads a name some ticks later than the calls. No rank is blamed alone
// meanwhile: an incident that may turn is not confirmed in its first second.
TEST_F(ThreadRaceTest, WithoutNamesYetTheVerdictMayTurn) {
  Enter({0, 1, 2}, AllReduce(), kTrainer);
  Enter({3}, AllGather(), kCheckpoint);
  for (const bool is_offline : {false, true}) {
    job_.state.offline = is_offline;
    NameThreads("");
    for (const Verdict& v : Judge()) EXPECT_EQ(v.may_turn, !is_offline) << v.summary;
    NameThreads("python");
    for (const Verdict& v : Judge()) EXPECT_FALSE(v.may_turn) << v.summary;
  }
}

// The main thread makes a call in each step beside those of the backward pass, for which it waits.
TEST_F(ThreadRaceTest, TurnsOfABackwardPassAreNotARace) {
  constexpr uint32_t kBackward = 3;
  for (int rank = 0; rank < 4; ++rank) {
    for (size_t i = 0; i < 24; i += 2) job_.member(rank).records[i].thread = kBackward;
    job_.process(rank).callers = {
        {kTrainer, static_cast<uint32_t>(job_.process(rank).pid), "python"},
        {kBackward, 0, "pt_autograd_0"},
        {kCheckpoint, 0, "python"}};
  }
  Enter({0, 1, 2}, AllReduce(), kTrainer);
  Enter({3}, AllGather(), kCheckpoint);
  const std::vector<Verdict> verdicts = Judge();
  ASSERT_FALSE(verdicts.empty());
  EXPECT_EQ(verdicts.front().cause, Cause::kConcurrentUse) << verdicts.front().summary;
  EXPECT_EQ(CulpritRanks(verdicts.front().culprits), (Ranks{0, 1, 2, 3}));
}

TEST_F(ThreadRaceTest, ThreadsThatHaveTakenManyTurnsHaveAnOrder) {
  for (int rank = 0; rank < 4; ++rank) {
    for (size_t i = 0; i < 24; i += 2) job_.member(rank).records[i].thread = kCheckpoint;
  }
  Enter({0, 1, 2}, AllReduce(), kTrainer);
  Enter({3}, AllGather(), kCheckpoint);
  const std::vector<Verdict> verdicts = Judge();
  ASSERT_FALSE(verdicts.empty());
  EXPECT_EQ(verdicts.front().cause, Cause::kOperationMismatch);
  EXPECT_EQ(verdicts.front().certainty, Certainty::kLikely);
}

// The checkpoint's thread beside a backward pass, which the main thread does not make either.
TEST_F(ThreadRaceTest, AThirdThreadRacesWithTheBackwardPass) {
  for (int rank = 0; rank < 4; ++rank) {
    job_.process(rank).callers = {{9, static_cast<uint32_t>(4000 + rank), "python"},
                                  {kTrainer, 0, "pt_autograd_0"},
                                  {kCheckpoint, 0, "python"}};
  }
  Enter({0, 1, 2}, AllReduce(), kTrainer);
  Enter({3}, AllGather(), kCheckpoint);
  const std::vector<Verdict> verdicts = Judge();
  ASSERT_FALSE(verdicts.empty());
  EXPECT_EQ(verdicts.front().cause, Cause::kConcurrentUse);
  EXPECT_EQ(CulpritRanks(verdicts.front().culprits), (Ranks{0, 1, 2, 3}));
}

// Validation on rank 3: its forward pass meets the backward pass of the others.
TEST_F(ThreadRaceTest, TheThreadOfABackwardPassIsOrdered) {
  for (int rank = 0; rank < 4; ++rank) job_.member(rank).records[5].thread = kCheckpoint;
  Enter({0, 1, 2}, AllReduce(), kCheckpoint);
  Enter({3}, Broadcast(), kTrainer);
  NameThreads("pt_autograd_0");
  const std::vector<Verdict> verdicts = Judge();
  ASSERT_FALSE(verdicts.empty());
  EXPECT_EQ(verdicts.front().cause, Cause::kOperationMismatch);
  EXPECT_EQ(verdicts.front().certainty, Certainty::kCertain);
}

// Two communicators of the same ranks with a call of each, on a stream of its own.
class OpenCallsTest : public testing::Test {
 protected:
  OpenCallsTest() { job_.AddCommunicator(kOther, "b", {0, 1}); }
  void Enter(uint64_t comm, double at, uint32_t thread) {
    job_.On(comm);
    for (const int rank : {0, 1}) {
      job_.Enter({rank}, At(at));
      job_.member(rank).records.back().thread = thread;
    }
  }
  std::vector<Verdict> Judge() { return Diagnose(job_.state, At(70), Limits()); }

  static constexpr uint64_t kOther = kDp + 1;
  JobBuilder job_{2};
};

TEST_F(OpenCallsTest, TwoThreadsOnOneDeviceAreNotANetworkFault) {
  Enter(kDp, 10, 1);
  Enter(kOther, 11, 2);
  const std::vector<Verdict> verdicts = Judge();
  ASSERT_EQ(verdicts.size(), 1u) << "each call holds the other up";
  EXPECT_EQ(CulpritRanks(verdicts[0].culprits), (std::vector<int32_t>{0, 1}));
  for (const Verdict& v : verdicts) {
    EXPECT_NE(v.certainty, Certainty::kCertain);
    ASSERT_FALSE(v.advice.empty());
    EXPECT_EQ(v.advice.front().id, "communicators-in-one-order");
    EXPECT_TRUE(std::none_of(v.advice.begin(), v.advice.end(), [](const Advice& advice) {
      return advice.id == "check-network-and-gpu" || advice.id == "first-call-transport";
    }));
  }
  EXPECT_EQ(verdicts.front().summary,
            "all 2 ranks of communicator \"dp\" have entered AllReduce #0, which does not finish; "
            "nor does AllReduce #0 on communicator \"b\", which nothing orders with it on the same "
            "GPUs; 2 ranks have waited 60 s");
}

TEST_F(OpenCallsTest, OneThreadOrdersItsCalls) {
  Enter(kDp, 10, 1);
  Enter(kOther, 11, 1);
  EXPECT_EQ(Judge().front().certainty, Certainty::kCertain);
}

TEST_F(OpenCallsTest, OtherDevicesDoNotHoldEachOtherUp) {
  Enter(kDp, 10, 1);
  Enter(kOther, 11, 2);
  for (const int rank : {0, 1}) job_.member(rank).device += 2;
  EXPECT_EQ(Judge().front().certainty, Certainty::kCertain);
}

}  // namespace
}  // namespace rollcall
