// SPDX-License-Identifier: Apache-2.0
#include "daemon/model/job_model.h"

#include <gtest/gtest.h>

#include <random>

#include "daemon/diagnosis/diagnose.h"
#include "daemon/model/host_clocks.h"
#include "interpose/segment.h"

namespace rollcall {
namespace {

constexpr int64_t kSecond = 1'000'000'000;
constexpr int64_t kStart = 1'700'000'000 * kSecond;
constexpr uint64_t kComm = 5;

// Ranks of one communicator that make calls and tell of them.
class Ranks {
 public:
  explicit Ranks(int size) : model("job"), size_(size) {
    for (int rank = 0; rank < size; ++rank) {
      const int32_t process = model.AddProcess("node", 100 + rank, 1);
      ProcessEvidence evidence;
      evidence.liveness = Liveness::kAlive;
      model.SetEvidence(process, evidence);
      CommProgress progress;
      progress.id = kComm;
      progress.rank = rank;
      progress.size = size;
      progress.state = MemberState::kReady;
      progress.has_markers = true;
      progress.signature = segment::kSignatureSeed;
      told_.push_back(progress);
    }
  }

  // Enters a call at `at_ns`, on the rank's own clock, and has it finished.
  void Call(int rank, int64_t at_ns, uint64_t count = 8, uint32_t thread = 1) {
    CommProgress& p = told_[static_cast<size_t>(rank)];
    CallRecord record;
    record.index = record.position = p.entered;
    record.args = {Op::kAllReduce, 7, 0, kNoPeer, count};
    record.entered_ns = at_ns;
    record.returned_ns = at_ns + 10;
    record.thread = thread;
    p.records.push_back(record);
    p.signature = segment::NextSignature(p.signature, static_cast<uint8_t>(Op::kAllReduce), 7, 0,
                                         kNoPeer, count);
    p.returned = p.started = p.finished = ++p.entered;
  }

  CommProgress& of(int rank) { return told_[static_cast<size_t>(rank)]; }

  void Tell(int rank, int64_t now_ns = kStart) {
    model.SetProgress(rank, of(rank), now_ns);
    of(rank).records.clear();
  }
  void TellAll(int64_t now_ns = kStart) {
    for (int rank = 0; rank < size_; ++rank) Tell(rank, now_ns);
  }

  const Communicator& comm() const { return model.state().communicators.at(kComm); }

  JobModel model;

 private:
  const int size_;
  std::vector<CommProgress> told_;
};

TEST(JobModelTest, KeepsTheScoreOfWhoComesLast) {
  Ranks ranks(3);
  for (int call = 0; call < 400; ++call) {
    for (int rank = 0; rank < 3; ++rank) {
      ranks.Call(rank, kStart + call * kSecond + (rank == 1 ? 200'000'000 : rank * 1000));
    }
  }
  ranks.TellAll();
  const Arrivals& arrivals = ranks.comm().arrivals;
  EXPECT_EQ(arrivals.last_rank, 1);
  EXPECT_EQ(arrivals.last_calls, arrivals.calls);
  EXPECT_EQ(arrivals.calls, 64u);
  EXPECT_EQ(arrivals.late_ns, 200'000'000 - 2000);
}

CommProgress Growing(uint64_t id, int rank) {
  CommProgress progress;
  progress.id = id;
  progress.rank = rank;
  progress.size = 3;
  progress.init_entered_ns = kStart;
  return progress;
}

// Ranks 0 and 1 grow kComm by rank 2; only rank 0 knows what rank 2 calls the new one.
TEST(JobModelTest, RanksThatJoinFindThoseThatWereThere) {
  constexpr uint64_t kGrown = 77, kUniqueId = 78;
  for (const int root_comes : {0, 1, 2}) {
    SCOPED_TRACE(root_comes);
    Ranks ranks(2);
    ranks.TellAll();
    CommProgress root = Growing(kGrown, 0), other = Growing(kGrown, 1),
                 joins = Growing(kUniqueId, 2);
    root.index = other.index = 1;
    root.parent = other.parent = kComm;
    root.grown.push_back({kUniqueId, kGrown});
    const int32_t newcomer = ranks.model.AddProcess("host9", 9, 9);
    ProcessEvidence inside;
    inside.blocked.push_back({1, Op::kCommGrow, kUniqueId, kStart});
    for (int turn = 0; turn < 3; ++turn) {
      if (turn == root_comes) ranks.model.SetProgress(0, root, kStart);
      if (turn == 0) ranks.model.SetEvidence(newcomer, inside);
      if (turn == 0) ranks.model.SetProgress(newcomer, joins, kStart);
      if (turn == 1) ranks.model.SetProgress(1, other, kStart);
    }
    const JobState& state = ranks.model.state();
    EXPECT_EQ(state.communicators.count(kUniqueId), 0u);
    const Communicator& comm = state.communicators.at(kGrown);
    EXPECT_EQ(comm.members.size(), 3u);
    EXPECT_EQ(comm.members.at(2).process, newcomer);
    EXPECT_EQ(comm.parent, kComm);
    EXPECT_EQ(comm.may_wait, 3);
    EXPECT_EQ(state.processes[static_cast<size_t>(newcomer)].blocked[0].communicator, kGrown);
    joins.state = other.state = root.state = MemberState::kDestroyed;
    ranks.model.SetEvidence(newcomer, {});
    ranks.model.SetProgress(newcomer, joins, kStart);
    ranks.model.SetProgress(1, other, kStart);
    ranks.model.SetProgress(0, root, kStart);
    EXPECT_EQ(state.communicators.count(kGrown), 0u);
  }
}

TEST(JobModelTest, IdsThatGoRoundInACircleDoNoHarm) {
  Ranks ranks(2);
  CommProgress a = Growing(5, 0);
  a.grown = {{5, 6}, {6, 7}, {7, 5}, {8, 8}, {0, 9}, {9, 0}};
  ranks.model.SetProgress(0, a, kStart);
  ranks.model.SetProgress(0, a, kStart);
  EXPECT_EQ(ranks.model.state().communicators.size(), 1u);
}

TEST(JobModelTest, LearnsHowLongACallUsuallyTakes) {
  Ranks ranks(2);
  for (int call = 0; call < 10; ++call) {
    const int64_t at = kStart + call * 10 * kSecond;
    ranks.Call(0, at);
    CommProgress& p = ranks.of(0);
    --p.finished;
    p.waiting_since_ns = at;
    ranks.Tell(0, at);
    ++p.finished;
    p.waiting_since_ns = 0;
    ranks.Tell(0, at + 3 * kSecond);
  }
  ASSERT_EQ(ranks.comm().usual.size(), 1u);
  EXPECT_EQ(ranks.comm().usual[0].seen, 10u);
  EXPECT_EQ(ranks.comm().usual[0].longest_ns, 3 * kSecond);
}

TEST(JobModelTest, EqualHistoriesNeedNoLook) {
  Ranks ranks(3);
  for (int call = 0; call < 50; ++call) {
    for (int rank = 0; rank < 3; ++rank) ranks.Call(rank, kStart, 8 + call % 3);
    ranks.Tell(call % 3);
  }
  ranks.TellAll();
  EXPECT_FALSE(ranks.comm().may_diverge);
}

TEST(JobModelTest, ADivergenceIsNoticedAlsoByRanksThatStandAtOtherCalls) {
  Ranks ranks(3);
  for (int rank = 0; rank < 3; ++rank) ranks.Call(rank, kStart);
  ranks.TellAll();
  ranks.Call(0, kStart, 99);  // one too many, and then the same
  for (int rank = 0; rank < 3; ++rank) ranks.Call(rank, kStart);
  ranks.TellAll();
  EXPECT_TRUE(ranks.comm().may_diverge);
}

TEST(JobModelTest, CallsOfTwoThreadsThatOverlapAreNoticed) {
  Ranks ranks(1);
  ranks.Call(0, kStart, 8, 1);
  ranks.Call(0, kStart + 5, 8, 2);
  ranks.Tell(0);
  EXPECT_TRUE(ranks.comm().members.at(0).concurrent_use);
}

TEST(JobModelTest, CallsOfTwoThreadsOneAfterTheOtherAreAllowed) {
  Ranks ranks(1);
  ranks.Call(0, kStart, 8, 1);
  ranks.Call(0, kStart + 10, 8, 2);
  ranks.Tell(0);
  EXPECT_FALSE(ranks.comm().members.at(0).concurrent_use);
}

TEST(JobModelTest, ResendingCountsNothingTwice) {
  Ranks ranks(2);
  CommProgress& p = ranks.of(0);
  CallRecord send;
  send.args = {Op::kSend, 7, kNoReduction, 1, 64};
  p.p2p_entered = 1;
  p.records = {send};
  for (int i = 0; i < 3; ++i) ranks.model.SetProgress(0, p, kStart);
  ASSERT_EQ(ranks.comm().members.at(0).traffic.size(), 1u);
  EXPECT_EQ(ranks.comm().members.at(0).traffic[0].sends, 1u);
}

TEST(JobModelTest, ACommunicatorWhoseRanksAreAllInsideAbortIsKept) {
  Ranks ranks(2);
  for (int rank = 0; rank < 2; ++rank) {
    ProcessEvidence evidence;
    evidence.liveness = Liveness::kAlive;
    evidence.blocked = {{1, Op::kCommAbort, kComm, kStart}};
    ranks.model.SetEvidence(rank, evidence);
    ranks.of(rank).state = MemberState::kAborted;
    ranks.Tell(rank);
  }
  EXPECT_EQ(ranks.model.state().communicators.size(), 1u);
}

TEST(JobModelTest, ImpossibleRanksAreLeftOut) {
  JobModel model("job");
  const int32_t process = model.AddProcess("node", 1, 1);
  CommProgress progress;
  progress.id = kComm;
  for (const int32_t rank : {-1, INT32_MIN, INT32_MAX}) {
    progress.rank = rank;
    model.SetProgress(process, progress, kStart);
  }
  progress.rank = 0;
  model.SetProgress(77, progress, kStart);
  EXPECT_TRUE(model.state().communicators.empty());
}

// An incremental diagnosis must say what a full one says.
TEST(DiagnoserTest, SaysWhatAFreshOneSaysAfterEveryChange) {
  std::mt19937 random(7);
  Ranks ranks(6);
  ranks.TellAll();
  Diagnoser diagnoser;
  size_t found = 0;
  for (int step = 0; step < 3000; ++step) {
    const int rank = static_cast<int>(random() % 6);
    const int64_t now = kStart + step * kSecond / 4;
    if (random() % 400 == 0) {
      ranks.Call(rank, now, 9);
    } else if (random() % 3 != 0) {
      ranks.Call(rank, now);
    }
    CommProgress& p = ranks.of(rank);
    if (random() % 50 == 0 && p.entered > 0) {
      p.finished = p.entered - 1;
      p.waiting_since_ns = now;
    } else if (random() % 3 == 0) {
      p.finished = p.entered;
      p.waiting_since_ns = 0;
    }
    ranks.Tell(rank, now);
    const auto incremental = diagnoser.Run(ranks.model.state(), now, Limits());
    const auto full = Diagnose(ranks.model.state(), now, Limits());
    ASSERT_EQ(incremental.size(), full.size()) << step;
    for (size_t i = 0; i < full.size(); ++i) {
      ASSERT_EQ(incremental[i].summary, full[i].summary) << step;
      ASSERT_EQ(incremental[i].evidence, full[i].evidence) << step;
    }
    found += full.size();
  }
  EXPECT_GT(found, 100u);
}

TEST(HostClocksTest, TheQuickestMessageTellsTheDifference) {
  HostClocks clocks;
  EXPECT_EQ(clocks.Update("a", 1000, 5000), 4000);
  EXPECT_EQ(clocks.Update("a", 2000, 5500), 3500);
  EXPECT_EQ(clocks.Update("a", 3000, 9000), 3500);
  EXPECT_EQ(clocks.Update("b", 3000, 2000), -1000);
}

TEST(HostClocksTest, AClockThatStoodStillIsFollowedAtOnce) {
  HostClocks clocks;
  for (int i = 0; i < 300; ++i) clocks.Update("a", i, i + 100);
  const int64_t suspended = 60'000'000'000;
  EXPECT_EQ(clocks.Update("a", 300, 400 + suspended), 100 + suspended);
}

TEST(HostClocksTest, AMessageThatIsLateMakesNothingOlder) {
  HostClocks clocks;
  for (int i = 0; i < 10; ++i) clocks.Update("a", i, i + 100);
  EXPECT_GE(clocks.Update("a", 10, 5'000'000'000), 100);
  EXPECT_EQ(clocks.Update("a", 11, 111), 100);  // the next one was quick
  EXPECT_EQ(clocks.Update("a", 12, 112), 100);
}

TEST(HostClocksTest, MessagesThatAreQueuedMoreAndMoreMakeNothingOlder) {
  HostClocks clocks;
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(clocks.Update("a", i, i + 100 + i * 500'000'000LL), 100);
  }
}

TEST(HostClocksTest, AClockThatWasSetIsFollowed) {
  HostClocks clocks;
  for (int i = 0; i < 300; ++i) clocks.Update("a", i, i + 100);
  int64_t offset = 0;
  for (int i = 0; i < 300; ++i) offset = clocks.Update("a", i, i + 90'000);
  EXPECT_EQ(offset, 90'000);
}

}  // namespace
}  // namespace rollcall
