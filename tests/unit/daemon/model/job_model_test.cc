// SPDX-License-Identifier: Apache-2.0
#include "daemon/model/job_model.h"

#include <gtest/gtest.h>

#include "daemon/model/first_calls.h"
#include "daemon/model/progress.h"
#include "reporting_ranks.h"

namespace rollcall {
namespace {

TEST(JobModelTest, RecordsWhenAReportShowsTheEndOfACollective) {
  Ranks ranks(2);
  ranks.Call(0, kStart);
  ranks.Report(0, kStart + 1 * kSecond);
  ranks.Report(1, kStart + 2 * kSecond);  // has finished nothing
  ranks.Report(0, kStart + 3 * kSecond);  // the same as before
  EXPECT_EQ(ranks.model.state().communicators.at(kComm).finish_seen_ns, kStart + 1 * kSecond);
}

TEST(JobModelTest, FindsTheRankThatIsAlwaysLast) {
  Ranks ranks(3);
  for (int call = 0; call < 400; ++call) {
    for (int rank = 0; rank < 3; ++rank) {
      ranks.Call(rank, kStart + call * kSecond + (rank == 1 ? 200'000'000 : rank * 1000));
    }
  }
  ranks.ReportAll();
  const Arrivals& arrivals = ranks.comm().arrivals;
  EXPECT_EQ(arrivals.last_rank, 1);
  EXPECT_EQ(arrivals.last_calls, arrivals.calls);
  EXPECT_EQ(arrivals.calls, 64u);
  EXPECT_EQ(arrivals.late_ns, 200'000'000 - 2000);
}

TEST(JobModelTest, NotesTheFirstCallOfEachKindFromAnyReporter) {
  Ranks ranks(2);
  for (const uint64_t count : {8, 9, 8, 7}) ranks.Call(1, kStart, count);
  for (const uint64_t count : {8, 9, 8, 7, 6}) ranks.Call(0, kStart, count);
  ranks.Report(1);
  ranks.ReportAll();
  const CallArgs args = {Op::kAllReduce, 7, 0, kNoPeer, 7};
  CallArgs other = args;
  other.count = 5;
  EXPECT_EQ(ranks.comm().first_calls.size(), 4u);
  EXPECT_FALSE(MayHaveComeBefore(ranks.comm(), args, 3));
  EXPECT_TRUE(MayHaveComeBefore(ranks.comm(), args, 4));
  EXPECT_FALSE(MayHaveComeBefore(ranks.comm(), other, 5));
  EXPECT_TRUE(MayHaveComeBefore(ranks.comm(), other, 6));  // nothing is known of position 5
}

TEST(JobModelTest, RecordsNoFirstCallsAfterManyKinds) {
  Ranks ranks(2);
  for (uint64_t count = 0; count < 100; ++count) ranks.Call(0, kStart, count);
  ranks.Report(0);
  EXPECT_EQ(ranks.comm().first_calls.size(), kMostKinds);
  EXPECT_EQ(ranks.comm().recorded_until, kMostKinds);
}

CommProgress Growing(uint64_t id, int rank) {
  CommProgress progress;
  progress.id = id;
  progress.rank = rank;
  progress.size = 3;
  progress.init_entered_ns = kStart;
  return progress;
}

// Ranks 0 and 1 grow kComm by rank 2; only rank 0 reports the id that rank 2 uses.
TEST(JobModelTest, MergesTheTwoIdsOfAGrownCommunicator) {
  constexpr uint64_t kGrown = 77, kUniqueId = 78;
  for (const int root_comes : {0, 1, 2}) {
    SCOPED_TRACE(root_comes);
    Ranks ranks(2);
    ranks.ReportAll();
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

TEST(JobModelTest, CyclicIdsHaveNoEffect) {
  Ranks ranks(2);
  CommProgress a = Growing(5, 0);
  a.grown = {{5, 6}, {6, 7}, {7, 5}, {8, 8}, {0, 9}, {9, 0}};
  ranks.model.SetProgress(0, a, kStart);
  ranks.model.SetProgress(0, a, kStart);
  EXPECT_EQ(ranks.model.state().communicators.size(), 1u);
}

TEST(JobModelTest, LearnsTheUsualDurationOfACall) {
  Ranks ranks(2);
  for (int call = 0; call < 10; ++call) {
    const int64_t at = kStart + call * 10 * kSecond;
    ranks.Call(0, at);
    CommProgress& p = ranks.of(0);
    --p.finished;
    p.waiting_since_ns = at;
    ranks.Report(0, at);
    ++p.finished;
    p.waiting_since_ns = 0;
    ranks.Report(0, at + 3 * kSecond);
  }
  ASSERT_EQ(ranks.comm().usual.size(), 1u);
  EXPECT_EQ(ranks.comm().usual[0].seen, 10u);
  EXPECT_EQ(ranks.comm().usual[0].longest_ns, 3 * kSecond);
}

TEST(JobModelTest, EqualHistoriesCannotDiverge) {
  Ranks ranks(3);
  for (int call = 0; call < 50; ++call) {
    for (int rank = 0; rank < 3; ++rank) ranks.Call(rank, kStart, 8 + call % 3);
    ranks.Report(call % 3);
  }
  ranks.ReportAll();
  EXPECT_FALSE(ranks.comm().may_diverge);
}

TEST(JobModelTest, DetectsADivergenceOfRanksAtDifferentPositions) {
  Ranks ranks(3);
  for (int rank = 0; rank < 3; ++rank) ranks.Call(rank, kStart);
  ranks.ReportAll();
  ranks.Call(0, kStart, 99);  // an extra call, then equal calls
  for (int rank = 0; rank < 3; ++rank) ranks.Call(rank, kStart);
  ranks.ReportAll();
  EXPECT_TRUE(ranks.comm().may_diverge);
}

TEST(JobModelTest, DetectsOverlappingCallsOfTwoThreads) {
  Ranks ranks(1);
  ranks.Call(0, kStart, 8, 1);
  ranks.Call(0, kStart + 5, 8, 2);
  ranks.Report(0);
  EXPECT_TRUE(ranks.comm().members.at(0).concurrent_use);
}

TEST(JobModelTest, AllowsConsecutiveCallsOfTwoThreads) {
  Ranks ranks(1);
  ranks.Call(0, kStart, 8, 1);
  ranks.Call(0, kStart + 10, 8, 2);
  ranks.Report(0);
  EXPECT_FALSE(ranks.comm().members.at(0).concurrent_use);
}

// Process 2 joins as rank 1, too.
TEST(JobModelTest, AProcessWithTheRankOfAnotherIsItsRival) {
  Ranks ranks(3);
  for (int rank = 0; rank < 3; ++rank) ranks.of(rank).state = MemberState::kInitializing;
  ranks.of(2).rank = 1;
  ranks.of(2).state = MemberState::kFailed;
  ranks.of(2).async_error = 5;
  for (int i = 0; i < 2; ++i) ranks.ReportAll();
  ASSERT_EQ(ranks.comm().rivals.size(), 1u);
  EXPECT_EQ(ranks.comm().rivals.begin()->process, 2);
  EXPECT_TRUE(ranks.comm().rivals.begin()->is_refused);
  EXPECT_EQ(ranks.comm().members.at(1).process, 1) << "NCCL has accepted this one";
}

TEST(JobModelTest, TheProcessThatNcclRefusesIsTheRivalInAnyOrderOfReports) {
  Ranks ranks(3);
  for (int rank = 0; rank < 3; ++rank) ranks.of(rank).state = MemberState::kInitializing;
  ranks.of(2).rank = 1;
  ranks.of(1).state = MemberState::kFailed;
  for (int i = 0; i < 2; ++i) ranks.ReportAll();
  ASSERT_EQ(ranks.comm().rivals.size(), 1u);
  EXPECT_EQ(ranks.comm().rivals.begin()->process, 1);
  EXPECT_EQ(ranks.comm().members.at(1).process, 2);
}

// Two processes of two ranks each.
TEST(JobModelTest, AProcessWithSeveralRanksHasNoRankOfItsOwn) {
  Ranks ranks(4);
  for (const int32_t process : {0, 1}) {
    ProcessIdentity identity;
    identity.global_rank = process;
    identity.world_size = 2;
    ranks.model.SetIdentity(process, identity);
  }
  for (int rank = 0; rank < 4; ++rank) {
    ranks.of(rank).index = static_cast<uint32_t>(rank % 2);
    ranks.model.SetProgress(rank / 2, ranks.of(rank), kStart);
  }
  EXPECT_TRUE(ranks.comm().has_siblings);
  for (int rank = 0; rank < 4; ++rank) {
    EXPECT_EQ(PublicRank(ranks.model.state(), rank / 2, rank), rank);
  }
}

TEST(JobModelTest, ACommunicatorWithinOneProcessLeavesTheRanksTheirNumbers) {
  Ranks ranks(2);
  ProcessIdentity identity;
  identity.global_rank = 5;
  identity.world_size = 8;
  ranks.model.SetIdentity(0, identity);
  for (int rank = 0; rank < 2; ++rank) {
    ranks.of(rank).index = static_cast<uint32_t>(rank);
    ranks.model.SetProgress(0, ranks.of(rank), kStart);
  }
  EXPECT_EQ(PublicRank(ranks.model.state(), 0, 1), 5);
}

TEST(JobModelTest, CountsNothingTwiceAfterAResend) {
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

TEST(JobModelTest, KeepsACommunicatorWhileAllRanksAreInsideAbort) {
  Ranks ranks(2);
  for (int rank = 0; rank < 2; ++rank) {
    ProcessEvidence evidence;
    evidence.liveness = Liveness::kAlive;
    evidence.blocked = {{1, Op::kCommAbort, kComm, kStart}};
    ranks.model.SetEvidence(rank, evidence);
    ranks.of(rank).state = MemberState::kAborted;
    ranks.Report(rank);
  }
  EXPECT_EQ(ranks.model.state().communicators.size(), 1u);
}

// All ranks report this state of a communicator.
void ReportWorld(uint64_t id, uint32_t index, MemberState state, int64_t init_ns, int64_t since_ns,
                 Ranks* ranks) {
  for (int rank = 0; rank < 2; ++rank) {
    CommProgress& progress = ranks->of(rank);
    progress.id = id;
    progress.index = index;
    progress.state = state;
    progress.init_entered_ns = init_ns;
    progress.state_since_ns = since_ns;
    ranks->Report(rank);
  }
}

TEST(JobModelTest, CountsWorldCommunicatorsThatAreCreatedAgainAfterAnAbort) {
  Ranks ranks(2);
  ReportWorld(1, 0, MemberState::kReady, 10, 11, &ranks);
  ReportWorld(2, 1, MemberState::kReady, 12, 13, &ranks);
  ReportWorld(1, 0, MemberState::kAborted, 10, 20, &ranks);
  ReportWorld(2, 1, MemberState::kAborted, 12, 21, &ranks);
  EXPECT_EQ(ranks.model.state().world_restarts, 0) << "it may be the end of the job";
  ReportWorld(3, 2, MemberState::kReady, 30, 31, &ranks);
  ReportWorld(4, 3, MemberState::kReady, 32, 33, &ranks);
  EXPECT_EQ(ranks.model.state().world_restarts, 1);
}

TEST(JobModelTest, CountsARestartWhoseAbortIsReportedLate) {
  Ranks ranks(2);
  ReportWorld(1, 0, MemberState::kReady, 10, 11, &ranks);
  ReportWorld(2, 1, MemberState::kReady, 30, 31, &ranks);
  ReportWorld(1, 0, MemberState::kAborted, 10, 20, &ranks);
  EXPECT_EQ(ranks.model.state().world_restarts, 1);
}

TEST(JobModelTest, AnAbortedCommunicatorDoesNotMeanARestart) {
  Ranks ranks(2);
  ReportWorld(1, 0, MemberState::kReady, 10, 11, &ranks);
  ReportWorld(2, 1, MemberState::kReady, 12, 13, &ranks);
  ReportWorld(2, 1, MemberState::kAborted, 12, 20, &ranks);
  ReportWorld(3, 2, MemberState::kReady, 30, 31, &ranks);
  EXPECT_EQ(ranks.model.state().world_restarts, 0);
}

TEST(JobModelTest, ADestroyedWorldCommunicatorIsNotARestart) {
  Ranks ranks(2);
  ReportWorld(1, 0, MemberState::kReady, 10, 11, &ranks);
  ReportWorld(1, 0, MemberState::kDestroyed, 10, 20, &ranks);
  ReportWorld(2, 1, MemberState::kReady, 30, 31, &ranks);
  EXPECT_EQ(ranks.model.state().world_restarts, 0);
}

TEST(JobModelTest, IgnoresImpossibleRanks) {
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

TEST(JobModelTest, AnAgentKeepsItsIndexWhileItLivesOrReportsAProcess) {
  JobModel model("job");
  const int32_t process = model.AddProcess("node", 100, 1);
  const int32_t first = model.AddAgent("first", "node");
  model.SetAgent(process, first);
  const int32_t second = model.AddAgent("second", "node");
  model.SetAgent(process, second);
  const int32_t third = model.AddAgent("third", "node");
  EXPECT_NE(third, first) << "it lives";
  EXPECT_EQ(model.AddAgent("first", "node"), first);
  AgentHeard gone;
  gone.stale = true;
  model.SetAgentHeard(first, gone);
  model.SetAgentHeard(second, gone);
  EXPECT_NE(model.AddAgent("other", "elsewhere"), first);
  EXPECT_EQ(model.AddAgent("fourth", "node"), first);
  const AgentState& fourth = model.state().agents[static_cast<size_t>(first)];
  EXPECT_EQ(fourth.id, "fourth");
  EXPECT_FALSE(fourth.stale);
  model.SetAgent(process, first);
  model.SetAgent(process, second);
  model.SetAgent(process, first);
  EXPECT_EQ(model.AddAgent("fifth", "node"), second) << "it has lost its process again";
  EXPECT_NE(model.AddAgent("first", "node"), first);
  EXPECT_EQ(model.state().processes[0].agent, first);
}

TEST(SuspensionTest, IsNotedAtItsEndIfItWasNoMoment) {
  JobModel model(JobKey("train"));
  const int32_t process = model.AddProcess("node", 1, 1);
  const auto look = [&](char state, int64_t at_s) {
    ProcessEvidence evidence;
    evidence.liveness = Liveness::kAlive;
    evidence.state = state;
    model.SetEvidence(process, evidence, at_s * kSecond);
    return model.state().processes[0].suspensions.size();
  };
  EXPECT_EQ(look('S', 10), 0u);
  EXPECT_EQ(look('T', 20), 0u);
  EXPECT_EQ(look('S', 20), 0u);  // a moment
  EXPECT_EQ(look('T', 30), 0u);
  EXPECT_EQ(look('T', 35), 0u);
  EXPECT_EQ(look('R', 40), 1u);
  EXPECT_EQ(look('S', 50), 1u);
  EXPECT_EQ(model.state().processes[0].suspensions[0].from_ns, 30 * kSecond);
  EXPECT_EQ(model.state().processes[0].suspensions[0].to_ns, 42 * kSecond)
      << "with some time to go on";
}

}  // namespace
}  // namespace rollcall
