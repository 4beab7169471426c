// SPDX-License-Identifier: Apache-2.0
#include "daemon/model/job_model.h"

#include <gtest/gtest.h>
#include <malloc.h>

#include <random>

#include "daemon/diagnosis/diagnose.h"
#include "daemon/model/first_calls.h"
#include "daemon/model/host_clocks.h"
#include "interpose/segment.h"

namespace rollcall {
namespace {

constexpr int64_t kSecond = 1'000'000'000;
constexpr int64_t kStart = 1'700'000'000 * kSecond;
constexpr uint64_t kComm = 5;

// Ranks of one communicator that make calls and report them.
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
      reported_.push_back(progress);
    }
  }

  // Enters a call at `at_ns`, by the rank's own clock, and finishes it.
  void Call(int rank, int64_t at_ns, uint64_t count = 8, uint32_t thread = 1) {
    CommProgress& p = reported_[static_cast<size_t>(rank)];
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

  CommProgress& of(int rank) { return reported_[static_cast<size_t>(rank)]; }

  void Report(int rank, int64_t now_ns = kStart) {
    model.SetProgress(rank, of(rank), now_ns);
    of(rank).records.clear();
  }
  void ReportAll(int64_t now_ns = kStart) {
    for (int rank = 0; rank < size_; ++rank) Report(rank, now_ns);
  }

  const Communicator& comm() const { return model.state().communicators.at(kComm); }

  JobModel model;

 private:
  const int size_;
  std::vector<CommProgress> reported_;
};

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

// An incremental diagnosis must give the same verdicts as a full one.
TEST(DiagnoserTest, AgreesWithAFreshDiagnoserAfterEveryChange) {
  std::mt19937 random(7);
  Ranks ranks(6);
  ranks.ReportAll();
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
    ranks.Report(rank, now);
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

TEST(HostClocksTest, TheFastestMessageGivesTheDifference) {
  HostClocks clocks;
  EXPECT_EQ(clocks.Update("a", 1000, 5000), 4000);
  EXPECT_EQ(clocks.Update("a", 2000, 5500), 3500);
  EXPECT_EQ(clocks.Update("a", 3000, 9000), 3500);
  EXPECT_EQ(clocks.Update("b", 3000, 2000), -1000);
}

TEST(HostClocksTest, KnowsTheFirstEstimateUntilTheClockJumps) {
  HostClocks clocks;
  EXPECT_EQ(clocks.FirstOffset("a"), 0);
  for (int i = 0; i < 300; ++i) clocks.Update("a", i, i + 400 - i);
  EXPECT_EQ(clocks.FirstOffset("a"), 400);
  clocks.Update("a", 300, 60'000'000'000);
  EXPECT_EQ(clocks.FirstOffset("a"), 60'000'000'000 - 300);
}

TEST(HostClocksTest, FollowsAClockThatStoppedAtOnce) {
  HostClocks clocks;
  for (int i = 0; i < 300; ++i) clocks.Update("a", i, i + 100);
  const int64_t suspended = 60'000'000'000;
  EXPECT_EQ(clocks.Update("a", 300, 400 + suspended), 100 + suspended);
}

TEST(HostClocksTest, ALateMessageMakesNoTimeOlder) {
  HostClocks clocks;
  for (int i = 0; i < 10; ++i) clocks.Update("a", i, i + 100);
  EXPECT_GE(clocks.Update("a", 10, 5'000'000'000), 100);
  EXPECT_EQ(clocks.Update("a", 11, 111), 100);  // the next message is fast
  EXPECT_EQ(clocks.Update("a", 12, 112), 100);
}

TEST(HostClocksTest, AGrowingQueueMakesNoTimeOlder) {
  HostClocks clocks;
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(clocks.Update("a", i, i + 100 + i * 500'000'000LL), 100);
  }
}

TEST(HostClocksTest, FollowsAClockThatWasSet) {
  HostClocks clocks;
  for (int i = 0; i < 300; ++i) clocks.Update("a", i, i + 100);
  int64_t offset = 0;
  for (int i = 0; i < 300; ++i) offset = clocks.Update("a", i, i + 90'000);
  EXPECT_EQ(offset, 90'000);
}

size_t HeapBytes() {
  const struct mallinfo2 info = mallinfo2();
  return info.uordblks + info.hblkhd;
}

// A rank of a large communicator that has sent nothing else.
CommProgress Claim(uint64_t id, int32_t rank = 262'143, int32_t size = 262'144) {
  CommProgress progress;
  progress.index = static_cast<uint32_t>(id);
  progress.id = id;
  progress.rank = rank;
  progress.size = size;
  progress.state = MemberState::kReady;
  return progress;
}

uint64_t CountDropped(JobModel* model, Dropped what) {
  return model->TakeDropped()[static_cast<size_t>(what)];
}

TEST(JobModelLimitsTest, AClaimedSizeOrRankTakesNoMemory) {
  JobModel model("job");
  const int32_t process = model.AddProcess("node", 100, 1);
  const size_t before = HeapBytes();
  for (uint64_t id = 1; id <= 1000; ++id) model.SetProgress(process, Claim(id), kStart);
  EXPECT_EQ(model.state().communicators.size(), 1000u);
  EXPECT_LT(HeapBytes() - before, size_t{4} << 20);
}

// Ranks of one communicator that disagree with its first rank about its size.
TEST(JobModelLimitsTest, CountsClaimedSizesBeyondTheLimit) {
  constexpr int32_t kSize = 3000;
  JobModel model("job");
  for (int32_t rank = 0; rank < 1 + static_cast<int32_t>(limits::kClaimedSizes) + 4; ++rank) {
    CommProgress progress = Claim(kComm);
    progress.rank = rank;
    progress.size = rank == 0 ? kSize : kSize + 1;
    model.SetProgress(model.AddProcess("node", 100 + rank, 1), progress, kStart);
  }
  EXPECT_EQ(model.state().communicators.at(kComm).claims.size(), limits::kClaimedSizes);
  EXPECT_EQ(CountDropped(&model, Dropped::kSizes), 4u);
}

TEST(JobModelLimitsTest, CountsTheHostsWhoseFactsItForgets) {
  JobModel model("job");
  for (size_t i = 0; i < limits::kHostsWithFacts; ++i) {
    model.SetHostFacts("node-" + std::to_string(i), HostFacts());
  }
  model.SetHostFacts("node-7", HostFacts());  // it is known
  EXPECT_EQ(model.state().host_facts.size(), limits::kHostsWithFacts);
  EXPECT_EQ(CountDropped(&model, Dropped::kHostFacts), 0u);
  model.SetHostFacts("another", HostFacts());
  EXPECT_EQ(model.state().host_facts.size(), 1u);
  EXPECT_EQ(CountDropped(&model, Dropped::kHostFacts), limits::kHostsWithFacts);
}

TEST(JobModelLimitsTest, AProcessHasALimitOfCommunicators) {
  JobModel model("job");
  const int32_t process = model.AddProcess("node", 100, 1);
  for (uint64_t id = 1; id <= 1100; ++id) model.SetProgress(process, Claim(id), kStart);
  EXPECT_EQ(model.state().communicators.size(), limits::kCommunicatorsOfProcess);
  EXPECT_EQ(CountDropped(&model, Dropped::kCommunicators), 76u);
  EXPECT_EQ(CountDropped(&model, Dropped::kCommunicators), 0u);
}

TEST(JobModelLimitsTest, AllJobsTogetherHaveALimitOfMembers) {
  const auto fleet = std::make_shared<FleetBudget>(limits::kRecordBytes, 10);
  std::vector<JobModel> models;
  for (int i = 0; i < 2; ++i) {
    models.emplace_back(JobKey("job"), fleet);
    const int32_t process = models.back().AddProcess("node", 100, 1);
    for (uint64_t id = 1; id <= 6; ++id) models.back().SetProgress(process, Claim(id), kStart);
  }
  EXPECT_EQ(models[1].state().communicators.size(), 4u);
  EXPECT_EQ(CountDropped(&models[1], Dropped::kMembers), 2u);
  models.erase(models.begin());
  models[0].SetProgress(0, Claim(7), kStart);
  EXPECT_EQ(models[0].state().communicators.size(), 5u);
}

TEST(JobModelLimitsTest, OneUserLeavesMembersForTheJobsOfOthers) {
  const auto fleet = std::make_shared<FleetBudget>(limits::kRecordBytes, 40);
  std::vector<JobModel> models;
  for (const char* user : {"greedy", "greedy", "ann"}) {
    models.emplace_back(JobKey("job"), fleet, user);
    const int32_t process = models.back().AddProcess("node", 100, 1);
    for (uint64_t id = 1; id <= 25; ++id) models.back().SetProgress(process, Claim(id), kStart);
  }
  EXPECT_EQ(models[0].state().communicators.size(), 25u);
  EXPECT_EQ(models[1].state().communicators.size(), 5u) << "three quarters, with the first job";
  EXPECT_EQ(models[2].state().communicators.size(), 8u) << "and a share of what is left";
}

TEST(JobModelLimitsTest, CutsTextsAtACharacter) {
  JobModel model("job");
  const int32_t process = model.AddProcess("node", 100, 1);
  CommProgress progress = Claim(1);
  progress.name = std::string(254, 'a') + "\u00e9";
  model.SetProgress(process, progress, kStart);
  EXPECT_EQ(model.state().communicators.at(1).name, std::string(254, 'a'));
  ProcessEvidence evidence;
  evidence.error = std::string(5000, 'e');
  evidence.phase = std::string(5000, 'p');
  evidence.blocked.resize(2000);
  model.SetEvidence(process, evidence);
  EXPECT_EQ(model.state().processes[0].error.size(), limits::kError);
  EXPECT_EQ(model.state().processes[0].phase.size(), limits::kName);
  EXPECT_EQ(model.state().processes[0].blocked.size(), limits::kBlockedCalls);
  model.AddSites(process, 0, std::vector<std::string>(2000, std::string(1000, 's')));
  EXPECT_EQ(model.state().processes[0].sites.size(), limits::kSites);
  EXPECT_EQ(model.state().processes[0].sites[0].size(), limits::kSite);
  const DroppedCounts dropped = model.TakeDropped();
  EXPECT_EQ(dropped[static_cast<size_t>(Dropped::kTexts)], 1u + 2u + limits::kSites + 1);
  EXPECT_EQ(dropped[static_cast<size_t>(Dropped::kSites)], 1u);
  EXPECT_EQ(dropped[static_cast<size_t>(Dropped::kBlockedCalls)], 1u);
}

// An agent that claims many processes with long texts.
TEST(JobModelLimitsTest, TheTextsOfAllProcessesHaveALimit) {
  constexpr size_t kMost = size_t{1} << 20;
  const auto fleet =
      std::make_shared<FleetBudget>(limits::kRecordBytes, limits::kMembers, 0, kMost);
  std::vector<JobModel> models;
  const size_t before = HeapBytes();
  for (int job = 0; job < 2; ++job) {
    models.emplace_back(JobKey("job"), fleet);
    for (int pid = 0; pid < 500; ++pid) {
      const int32_t process = models.back().AddProcess("node", pid, 1);
      ProcessIdentity identity;
      identity.command = identity.node = identity.pod = std::string(4096, 'c');
      identity.global_rank = pid;
      models.back().SetIdentity(process, identity);
      ProcessEvidence evidence;
      evidence.error = std::string(1024, 'e');
      evidence.blocked.resize(1024);
      models.back().SetEvidence(process, evidence);
      models.back().SetStacks(process, {Motion::kUnknown, std::string(65536, 'w'), {}, false, 1});
    }
  }
  EXPECT_LT(HeapBytes() - before, kMost + (size_t{2} << 20)) << "1,000 processes take memory too";
  EXPECT_EQ(models[1].state().processes.size(), 500u);
  EXPECT_EQ(models[1].state().processes[499].global_rank, 499);
  EXPECT_EQ(models[1].state().processes[499].host, "node");
  EXPECT_GT(CountDropped(&models[1], Dropped::kTexts), 1000u);
  models.erase(models.begin());
  models[0].SetStacks(0, {Motion::kUnknown, std::string(65536, 'w'), {}, false, 1});
  EXPECT_EQ(models[0].state().processes[0].stack_words.size(), 65536u) << "there is room again";
}

TEST(JobModelLimitsTest, TheTransfersOfAllProcessesHaveALimit) {
  JobModel model(JobKey("job"));
  std::vector<NetworkSample> large(1);
  large[0].states.resize(limits::kNetworkStatesOfJob / 2);
  for (int pid = 0; pid < 3; ++pid) {
    model.SetNetwork(model.AddProcess("node", pid, 1), large, 10 + pid);
  }
  EXPECT_NE(model.state().processes[1].network, nullptr);
  EXPECT_EQ(model.state().processes[1].network_ns, 11);
  EXPECT_EQ(model.state().processes[2].network, nullptr);
  EXPECT_EQ(model.state().processes[2].network_ns, 0);
  EXPECT_EQ(CountDropped(&model, Dropped::kStacks), 1U);
  model.SetNetwork(0, {}, 20);
  model.SetNetwork(2, large, 21);
  EXPECT_EQ(model.state().processes[2].network_ns, 21) << "there is room again";
  model.SetNetwork(7, large, 22);  // no process of the job
}

TEST(JobModelLimitsTest, AShorterTextMakesRoom) {
  const auto fleet =
      std::make_shared<FleetBudget>(limits::kRecordBytes, limits::kMembers, 0, 10'000);
  JobModel model(JobKey("job"), fleet);
  for (int pid = 0; pid < 1000; ++pid) {
    const int32_t process = model.AddProcess("node", pid, 1);
    ProcessIdentity identity;
    identity.command = std::string(4096, 'c');
    model.SetIdentity(process, identity);
    EXPECT_EQ(model.state().processes.back().command.size(), 4096u) << pid;
    model.SetIdentity(process, ProcessIdentity());
  }
}

CommProgress Named(uint64_t id, MemberState state = MemberState::kReady) {
  CommProgress progress = Claim(id, 0, 1);
  progress.name = std::string(200, 'n');
  progress.state = state;
  return progress;
}

TEST(JobModelLimitsTest, TheNamesOfAllCommunicatorsHaveALimit) {
  const auto fleet =
      std::make_shared<FleetBudget>(limits::kRecordBytes, limits::kMembers, 0, 10'000);
  JobModel model(JobKey("job"), fleet);
  const int32_t process = model.AddProcess("node", 100, 1);
  for (uint64_t id = 1; id <= 100; ++id) model.SetProgress(process, Named(id), kStart);
  const auto& communicators = model.state().communicators;
  EXPECT_EQ(communicators.size(), 100u);
  EXPECT_EQ(communicators.at(49).name, Named(49).name);
  EXPECT_EQ(communicators.at(50).name, "") << "49 names of 201 bytes have room";
  EXPECT_EQ(CountDropped(&model, Dropped::kTexts), 51u);
  model.SetProgress(process, Named(1, MemberState::kDestroyed), kStart);
  model.SetProgress(process, Named(50), kStart);
  EXPECT_EQ(communicators.at(50).name, Named(50).name) << "there is room again";
}

TEST(JobModelLimitsTest, LinesWithoutTextCountForTheLimitOfTheirMemory) {
  constexpr size_t kSitesWithRoom = 3;
  const auto fleet =
      std::make_shared<FleetBudget>(limits::kRecordBytes, 10, kSitesWithRoom * sizeof(std::string));
  JobModel model(JobKey("job"), fleet);
  const int32_t process = model.AddProcess("node", 100, 1);
  model.AddSites(process, 0, std::vector<std::string>(100));
  EXPECT_EQ(model.state().processes[0].sites.size(), kSitesWithRoom);
  model.AddSites(process, 0, {"train.py:7"});  // in place of the lines without text
  EXPECT_EQ(model.state().processes[0].sites.size(), 1u);
}

// A job whose ranks have made many calls.
void AddCalls(JobModel* model, int ranks, uint64_t calls) {
  for (int rank = 0; rank < ranks; ++rank) {
    const int32_t process = model->AddProcess("node", 100 + rank, 1);
    CommProgress progress = Claim(1, rank, ranks);
    for (uint64_t call = 0; call < calls; ++call) {
      CallRecord record;
      record.index = record.position = call;
      record.args.op = Op::kAllReduce;
      record.entered_ns = kStart;
      progress.records.push_back(record);
    }
    for (uint64_t n = 16; n <= calls; n += 16) progress.checkpoints.push_back({n, n});
    progress.entered = calls;
    model->SetProgress(process, progress, kStart);
  }
}

TEST(JobModelLimitsTest, AMemberTakesRoomForTheRecordsThatItKeepsAndNoMore) {
  JobModel model("job");
  const size_t before = HeapBytes();
  AddCalls(&model, 8, 6000);
  const size_t most = 8 * (1024 * 3 / 2 * sizeof(CallRecord) + (size_t{16} << 10));
  EXPECT_LT(HeapBytes() - before, most);
}

// Each restart is another agent. A process without an agent would be stale for ever.
TEST(JobModelLimitsTest, AnAgentThatRestartsAgainAndAgainHasAnIndexEachTime) {
  JobModel model("job");
  const int32_t process = model.AddProcess("node", 100, 1);
  AgentHeard gone;
  gone.stale = true;
  for (size_t i = 0; i <= limits::kAgentsOfJob; ++i) {
    const int32_t agent = model.AddAgent("node/" + std::to_string(i), "node");
    ASSERT_GE(agent, 0) << i;
    model.SetAgent(process, agent);
    ASSERT_EQ(model.state().processes[0].agent, agent);
    model.SetAgentHeard(agent, gone);
  }
  EXPECT_EQ(model.state().agents.size(), 2u);
  EXPECT_EQ(model.TakeDropped()[static_cast<size_t>(Dropped::kAgents)], 0u);
}

TEST(JobModelLimitsTest, CountsAgentsBeyondTheLimit) {
  JobModel model("job");
  for (size_t i = 0; i < limits::kAgentsOfJob; ++i) {
    const std::string host = "node-" + std::to_string(i);
    ASSERT_GE(model.AddAgent(host + "/1", host), 0) << i;
  }
  EXPECT_EQ(model.AddAgent("one-too-many", "node"), -1);
  EXPECT_EQ(model.AddAgent("node-7/1", "node-7"), 7) << "it is known";
  EXPECT_EQ(CountDropped(&model, Dropped::kAgents), 1u);
}

TEST(JobModelLimitsTest, CountsIdsOfGrownCommunicatorsBeyondTheLimit) {
  JobModel model("job");
  const int32_t process = model.AddProcess("node", 100, 1);
  CommProgress progress = Claim(kComm, 0, 1);
  for (uint64_t id = 1; id <= limits::kGrownIdsOfJob + 3; ++id) {
    progress.grown.push_back({1'000'000 + id, 2'000'000 + id});
  }
  model.SetProgress(process, progress, kStart);
  EXPECT_EQ(CountDropped(&model, Dropped::kIds), 3u);
  model.SetProgress(process, Claim(1'000'001, 0, 1), kStart);
  EXPECT_EQ(model.state().communicators.count(2'000'001), 1u) << "it had room";
}

// Each peer in turn, from the last one down, and one more send to the first of them.
TEST(JobModelLimitsTest, CountsSendsToPeersBeyondTheLimit) {
  JobModel model("job");
  const int32_t process = model.AddProcess("node", 100, 1);
  CommProgress progress = Claim(kComm, 0);
  const auto peers = static_cast<int32_t>(limits::kPeersOfMember) + 2;
  for (int32_t peer = peers; peer > 0; --peer) {
    CallRecord record;
    record.index = static_cast<uint64_t>(peers - peer);
    record.args.op = Op::kSend;
    record.args.peer = peer;
    record.entered_ns = kStart;
    progress.records.push_back(record);
  }
  CallRecord again = progress.records.front();
  again.index = static_cast<uint64_t>(peers);
  progress.records.push_back(again);
  model.SetProgress(process, progress, kStart);
  const Member& member = model.state().communicators.at(kComm).members.at(0);
  ASSERT_EQ(member.traffic.size(), limits::kPeersOfMember);
  EXPECT_EQ(member.traffic.front().peer, 3);
  EXPECT_EQ(member.traffic.back().peer, peers);
  EXPECT_EQ(member.traffic.front().sends, 1u);
  EXPECT_EQ(member.traffic.back().sends, 2u);
  EXPECT_EQ(CountDropped(&model, Dropped::kPeers), 2u);
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

TEST(JobModelLimitsTest, TheRecordsOfAllJobsShareOneBudget) {
  constexpr size_t kBudget = size_t{8} << 20;
  const auto fleet = std::make_shared<FleetBudget>(kBudget);
  std::vector<JobModel> models;
  const size_t before = HeapBytes();
  for (int job = 0; job < 50; ++job) {
    models.emplace_back(JobKey("job"), fleet);
    AddCalls(&models.back(), 16, 2000);
    for (JobModel& model : models) model.TrimRecords();
  }
  // Members and processes take some memory too.
  EXPECT_LT(HeapBytes() - before, kBudget * 3 / 2);
  for (const JobModel& model : models) {
    EXPECT_GE(model.state().communicators.at(1).members.at(0).records.size(), 16u);
  }
}

TEST(JobModelLimitsTest, OneJobAloneHasTheWholeBudget) {
  constexpr int kRanks = 6000;
  constexpr size_t kBudget = kRanks * JobModel::kMostRecords * JobModel::kBytesOfRecord;
  JobModel model(JobKey("job"), std::make_shared<FleetBudget>(kBudget));
  AddCalls(&model, kRanks, 1);
  AddCalls(&model, 2, 1000);
  model.TrimRecords();
  EXPECT_EQ(model.state().communicators.at(1).members.at(1).records.size(), 1000u);
}

TEST(JobModelLimitsTest, ASmallJobBesideAHugeOneKeepsItsHistory) {
  const auto fleet = std::make_shared<FleetBudget>(size_t{32} << 20);
  JobModel small(JobKey("small"), fleet), huge(JobKey("huge"), fleet);
  AddCalls(&huge, 20'000, 20);
  AddCalls(&small, 8, 2000);
  huge.TrimRecords();
  small.TrimRecords();
  EXPECT_GE(small.state().communicators.at(1).members.at(0).records.size(), 1000u);
  EXPECT_FALSE(huge.state().communicators.at(1).keeps_records);
}

TEST(JobModelLimitsTest, TheRecordsOfAUserWithManyJobsTakeNothingFromAnother) {
  const auto fleet = std::make_shared<FleetBudget>(size_t{32} << 20);
  JobModel small(JobKey("small"), fleet, "ann");
  std::vector<JobModel> many;
  for (int i = 0; i < 200; ++i) many.emplace_back(JobKey("one of many"), fleet, "greedy");
  AddCalls(&small, 8, 2000);
  small.TrimRecords();
  EXPECT_GE(small.state().communicators.at(1).members.at(0).records.size(), 1000u);
}

TEST(SuspensionTest, IsNotedAtItsEndIfItWasNoMoment) {
  constexpr int64_t kSecond = 1'000'000'000;
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
