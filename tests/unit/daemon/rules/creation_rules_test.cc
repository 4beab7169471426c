// SPDX-License-Identifier: Apache-2.0
// Communicators that ranks make from another one: who owes the creation, and who is wrong where
// others wait in another call of the parent.
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "daemon/diagnosis/diagnose.h"
#include "interpose/child_ids.h"
#include "steps_of_calls.h"

namespace rollcall {
namespace {

uint64_t SplitId(uint32_t nth = 1) { return segment::ChildId(kDp, segment::kSplit, nth); }

uint64_t ShrinkId(const std::vector<int>& excluded, uint32_t nth = 1) {
  uint64_t sum = 0;
  for (const int rank : excluded) sum += segment::ExclusionTerm(rank);
  return segment::ShrunkId(segment::ChildId(kDp, segment::kShrink, nth), sum);
}

// A job of which these ranks are inside the creation of a child of "dp".
JobBuilder Creating(int ranks, const std::vector<int>& inside, Op op, uint64_t id) {
  JobBuilder job(ranks);
  job.Finish(24);
  job.AddCommunicator(id, "", JobBuilder::Ranks(0, ranks));
  job.comm().parent = kDp;
  for (int rank = 0; rank < ranks; ++rank) job.comm().members.erase(rank);
  for (const int rank : inside) {
    Member& member = job.comm().members[rank];
    member.process = rank;
    job.Initializing(rank, At(10));
    job.process(rank).blocked = {{1, op, id, At(10)}};
  }
  job.On(kDp);
  return job;
}

JobBuilder Shrinking(int ranks, const std::vector<int>& inside, const std::vector<int>& excluded,
                     uint32_t nth = 1) {
  return Creating(ranks, inside, Op::kCommShrink, ShrinkId(excluded, nth));
}

Verdict First(const JobBuilder& job) {
  const std::vector<Verdict> verdicts = Diagnose(job.state, At(70), Limits());
  EXPECT_FALSE(verdicts.empty());
  return verdicts.empty() ? Verdict() : verdicts[0];
}

TEST(ShrinkTest, WhoIsExcludedOwesNothing) {
  const Verdict v = First(Shrinking(4, {0, 1}, {3}));
  EXPECT_EQ(v.cause, Cause::kInitIncomplete) << v.summary;
  EXPECT_EQ(Blamed(v), (Ranks{2})) << v.summary;
  EXPECT_EQ(v.certainty, Certainty::kCertain);
  EXPECT_TRUE(Says(v.evidence, "the shrink excludes rank 3"));
}

TEST(ShrinkTest, TheExcludedMayBeManyOrHaveDied) {
  JobBuilder job = Shrinking(64, JobBuilder::Ranks(8, 62), JobBuilder::Ranks(0, 8), 5);
  for (int rank = 0; rank < 8; ++rank) job.Die(rank, At(5));
  EXPECT_EQ(Blamed(First(job)), (Ranks{62, 63}));
}

TEST(ShrinkTest, WhereOneRankIsExcludedManyMayBeLate) {
  EXPECT_EQ(Blamed(First(Shrinking(16, {0}, {3}))),
            (Ranks{1, 2, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}));
}

TEST(ShrinkTest, WithoutTheExcludedAllAreThere) {
  const Verdict v = First(Shrinking(4, {0, 1, 2}, {3}));
  EXPECT_EQ(v.cause, Cause::kStalledInFlight) << v.summary;
  EXPECT_TRUE(v.culprits.empty());
}

TEST(ShrinkTest, WhereTheExcludedAreNotKnownNothingIsCertain) {
  JobBuilder job = Shrinking(4, {0, 1}, {3});
  const uint64_t id = ShrinkId({3});
  job.On(id);
  job.comm().parent = 1234;  // another one
  const Verdict v = First(job);
  EXPECT_EQ(v.certainty, Certainty::kPossible) << v.summary;
  EXPECT_TRUE(Says(v.missing_evidence, "which ranks the shrink excludes"));
}

TEST(ShrinkTest, AgainstAnotherCallOfTheParentTheMajorityDecides) {
  JobBuilder job = Shrinking(6, {0, 1, 2}, {5});
  job.Enter({3, 4, 5}, At(10));  // rank 5 does not know it yet
  const Verdict v = First(job);
  EXPECT_EQ(v.cause, Cause::kInitIncomplete) << v.summary;
  EXPECT_EQ(Blamed(v), (Ranks{3, 4})) << v.summary;
  EXPECT_EQ(v.certainty, Certainty::kLikely);
}

TEST(SplitTest, TheRankInAnotherCallOfTheParentIsTheCulprit) {
  JobBuilder job = Creating(4, {0, 1, 3}, Op::kCommSplit, SplitId());
  job.Enter({2}, At(10));
  const Verdict v = First(job);
  EXPECT_EQ(v.cause, Cause::kInitIncomplete) << v.summary;
  EXPECT_EQ(Blamed(v), (Ranks{2})) << v.summary;
  EXPECT_EQ(v.certainty, Certainty::kLikely);
}

TEST(SplitTest, TheRankThatSplitsAloneIsTheCulprit) {
  JobBuilder job = Creating(4, {2}, Op::kCommSplit, SplitId());
  job.Enter({0, 1, 3}, At(10));
  const Verdict v = First(job);
  EXPECT_EQ(v.cause, Cause::kMissingRank) << v.summary;
  EXPECT_EQ(Blamed(v), (Ranks{2})) << v.summary;
  EXPECT_EQ(v.certainty, Certainty::kLikely);
}

// The others wait on several communicators, as in a job with two kinds of parallelism.
TEST(SplitTest, TheMajorityMayWaitInSeveralCalls) {
  JobBuilder job = Creating(8, {2}, Op::kCommSplit, SplitId());
  job.AddCommunicator(7, "tp", {0, 1, 2, 3});
  job.Enter({0, 1, 3}, At(10));
  job.On(kDp);
  job.Enter({4, 5, 6, 7}, At(10));
  const Verdict v = First(job);
  EXPECT_EQ(v.cause, Cause::kMissingRank) << v.summary;
  EXPECT_EQ(Blamed(v), (Ranks{2})) << v.summary;
}

// Two ranks split while two others reduce on the parent: neither side has the majority.
TEST(SplitTest, EqualHalvesAreADeadlock) {
  JobBuilder job = Creating(4, {0, 1}, Op::kCommSplit, SplitId());
  job.Enter({2, 3}, At(10));
  const Verdict v = First(job);
  EXPECT_EQ(v.cause, Cause::kDeadlock) << v.summary;
}

// One rank splits, another one creates a second child first: three calls wait for each other.
TEST(SplitTest, ThreeSidesAreJudgedByTheLargest) {
  JobBuilder job = Creating(6, {0, 1, 2, 3}, Op::kCommSplit, SplitId());
  job.Enter({4}, At(10));
  job.Issue(5, Send(4), At(10));
  const Verdict v = First(job);
  EXPECT_EQ(v.cause, Cause::kInitIncomplete) << v.summary;
  EXPECT_EQ(Blamed(v), (Ranks{4, 5})) << v.summary;
  EXPECT_NE(v.certainty, Certainty::kCertain);
}

// PyTorch's groups of gloo, of which each process counts its own: ranks `ahead` have made a pair
// before, and make group "2" of all; the others make it as their group "1".
JobBuilder NumberedGroups(int ranks, const std::vector<int>& ahead) {
  JobBuilder job(ranks);
  job.comm().kind = CommKind::kGloo;
  job.Finish(4);
  job.AddCommunicator(20, "1", ahead);
  job.comm().kind = CommKind::kGloo;
  for (const uint64_t id : {21, 22}) {
    job.AddCommunicator(id, id == 21 ? "1" : "2", JobBuilder::Ranks(0, ranks));
    job.comm().kind = CommKind::kGloo;
    for (int rank = 0; rank < ranks; ++rank) {
      const bool is_ahead = std::find(ahead.begin(), ahead.end(), rank) != ahead.end();
      if (is_ahead == (id == 22)) {
        job.Initializing(rank, At(10));
        job.process(rank).blocked = {{1, Op::kProcessGroupGloo, id, At(10)}};
      } else {
        job.comm().members.erase(rank);
      }
    }
  }
  return job;
}

TEST(NumberedGroupsTest, TheRanksThatHaveMadeFewerGroupsHaveLeftOneOut) {
  const std::vector<std::vector<int>> cases = {{0, 1}, {2, 3}, {0, 1, 2}};
  for (const std::vector<int>& ahead : cases) {
    const Verdict v = First(NumberedGroups(4, ahead));
    Ranks behind;
    for (int rank = 0; rank < 4; ++rank) {
      if (std::find(ahead.begin(), ahead.end(), rank) == ahead.end()) behind.push_back(rank);
    }
    EXPECT_EQ(v.cause, Cause::kInitIncomplete) << v.summary;
    EXPECT_EQ(Blamed(v), behind) << v.summary;
    EXPECT_EQ(v.certainty, Certainty::kLikely);
    EXPECT_EQ(v.communicator_name, "2");
    ASSERT_FALSE(v.advice.empty());
    EXPECT_EQ(v.advice.front().id, "split-on-all-ranks");
  }
}

// They have found the addresses of the pair in the store, and one of them is past the creation, or
// both are.
TEST(NumberedGroupsTest, TheRanksThatAreBehindMayWaitInTheirFirstCall) {
  for (const std::vector<int>& past : std::vector<std::vector<int>>{{2, 3}, {3}, {2}}) {
    JobBuilder job = NumberedGroups(4, {0, 1});
    job.On(21);
    for (const int rank : past) job.member(rank).state = MemberState::kReady;
    job.Enter(past, At(10), AllReduce(2));
    const Verdict v = First(job);
    EXPECT_EQ(v.cause, Cause::kInitIncomplete) << v.summary;
    EXPECT_EQ(Blamed(v), (Ranks{2, 3})) << v.summary;
    EXPECT_EQ(v.communicator_name, "2");
    EXPECT_EQ(v.certainty, Certainty::kLikely);
  }
}

// Without the pair's ranks, which are elsewhere: they have not joined the group that rank 3 has.
TEST(NumberedGroupsTest, ARankPastTheCreationDoesNotShowThatAllHaveJoined) {
  JobBuilder job = NumberedGroups(4, {0, 1});
  job.state.communicators.erase(22);
  for (const size_t process : {0, 1}) job.state.processes[process].blocked.clear();
  job.On(21);
  job.member(3).state = MemberState::kReady;
  const Verdict v = First(job);
  EXPECT_EQ(v.cause, Cause::kInitIncomplete) << v.summary;
  EXPECT_EQ(Blamed(v), (Ranks{0, 1})) << v.summary;
  EXPECT_EQ(v.certainty, Certainty::kLikely);
}

// An older group of all, in which both sides are.
TEST(NumberedGroupsTest, ACallOnAGroupOfBothSidesHasNoNumberToCompare) {
  JobBuilder job(4);
  job.AddCommunicator(21, "1", {0, 1, 2, 3});
  job.comm().kind = CommKind::kGloo;
  job.Finish(4);
  job.Enter({2, 3}, At(10));
  job.AddCommunicator(22, "2", {0, 1, 2, 3});
  job.comm().kind = CommKind::kGloo;
  for (const int rank : {0, 1}) job.Initializing(rank, At(10));
  for (const int rank : {2, 3}) job.comm().members.erase(rank);
  EXPECT_EQ(First(job).cause, Cause::kDeadlock);
}

TEST(NumberedGroupsTest, APairOfManyRanksIsNoMistakeOfThePair) {
  EXPECT_EQ(Blamed(First(NumberedGroups(6, {0, 1}))), (Ranks{2, 3, 4, 5}));
}

TEST(NumberedGroupsTest, ARankThatHasMadeAGroupAloneHasMadeOneTooMany) {
  EXPECT_EQ(Blamed(First(NumberedGroups(4, {3}))), (Ranks{3}));
}

// Names that programs give are no numbers.
TEST(NumberedGroupsTest, NamesDecideNothing) {
  JobBuilder job = NumberedGroups(4, {0, 1});
  job.On(22);
  job.comm().name = "everyone";
  const Verdict v = First(job);
  EXPECT_EQ(v.cause, Cause::kDeadlock) << v.summary;
  EXPECT_EQ(Blamed(v), (Ranks{0, 1, 2, 3}));
}

// Three ranks of four processes are inside the creation of "dp"; the fourth process is another
// rank 1.
class OneRankTest : public testing::Test {
 protected:
  OneRankTest() {
    job_.comm().members.erase(3);
    for (const int rank : {0, 1, 2}) job_.Initializing(rank, At(10));
    Process& other = job_.state.processes[3];
    other.global_rank = 1;
    other.host = job_.process(1).host;
    job_.comm().rivals.push_back({1, 3, true, 5});
  }
  JobBuilder job_{4};
};

TEST_F(OneRankTest, NamesBothProcessesAndTheMissingRank) {
  const Verdict v = First(job_);
  EXPECT_EQ(v.cause, Cause::kInitIncomplete);
  EXPECT_EQ(Blamed(v), (Ranks{1, 1}));
  EXPECT_EQ(v.waiting_ranks, (Ranks{0, 2}));
  EXPECT_EQ(
      v.summary,
      "pids 4001, 4003 (node-1) both join as rank 1 of 4 of communicator \"dp\", and no process as "
      "rank 3; NCCL refused pid 4003 (ncclInvalidUsage); 2 ranks have waited 60 s");
  EXPECT_EQ(v.advice.front().id, "ranks-numbered-twice");
}

TEST_F(OneRankTest, IsReportedAtOnceIfNcclRefusesOne) {
  for (const bool is_refused : {true, false}) {
    job_.comm().rivals.front().is_refused = is_refused;
    const std::vector<Verdict> verdicts = Diagnose(job_.state, At(10.2), Limits());
    ASSERT_EQ(verdicts.size(), is_refused ? 1u : 0u);
    EXPECT_EQ(!verdicts.empty() && verdicts[0].at_once, is_refused);
  }
}

TEST_F(OneRankTest, WhatBecameOfTheRefusedOneChangesNothing) {
  for (const Liveness liveness : {Liveness::kExited, Liveness::kDied, Liveness::kEnded}) {
    job_.state.processes[3].liveness = liveness;
    job_.state.processes[3].ended_ns = At(11);
    const std::vector<Verdict> verdicts = Diagnose(job_.state, At(70), Limits());
    ASSERT_EQ(verdicts.size(), 1u);
    EXPECT_TRUE(verdicts[0].is_one_rank);
  }
}

TEST(TwoRanksZeroTest, TwoProcessesWithTheOnlyRankThatJoinsAreFound) {
  JobBuilder job(2);
  job.comm().members.erase(1);
  job.Initializing(0, At(10));
  job.state.processes[1].global_rank = 0;
  job.comm().rivals.push_back({0, 1, false, 0});
  const Verdict v = First(job);
  EXPECT_TRUE(v.is_one_rank);
  EXPECT_EQ(v.unclaimed, "rank 1");
}

// Rank 1 passed 4 and was refused; ranks 0 and 2 passed 3. Two of four are not a majority.
JobBuilder RefusedSize() {
  JobBuilder job(3);
  job.comm().other_size = 4;
  job.comm().claims.push_back({1, 4});
  for (const int rank : {0, 2}) job.Initializing(rank, At(10));
  job.member(1).state = MemberState::kFailed;
  job.member(1).async_error = 5;
  return job;
}

TEST(RefusedSizeTest, TheRankThatNcclRefusesPassedTheWrongSize) {
  JobBuilder job = RefusedSize();
  job.EndUnseen(1, At(11));
  const Verdict v = First(job);
  EXPECT_EQ(Blamed(v), Ranks{1});
  EXPECT_EQ(v.summary,
            "rank 1 (node-1, pid 4001) creates communicator \"dp\" with 4 ranks, and the others "
            "create it with 3 (CommInitRank); NCCL refused rank 1 (ncclInvalidUsage); 2 ranks have "
            "waited 60 s");
  EXPECT_EQ(v.advice.front().id, "sizes-of-the-world-differ");
}

// It will not come, so no rank has to wait.
TEST(RefusedSizeTest, ReportsTheRefusalAtOnce) {
  const JobBuilder job = RefusedSize();
  const std::vector<Verdict> verdicts = Diagnose(job.state, At(10.2), Limits());
  ASSERT_EQ(verdicts.size(), 1u);
  EXPECT_TRUE(verdicts[0].at_once);
  EXPECT_EQ(Blamed(verdicts[0]), Ranks{1});
}

TEST(RefusedSizeTest, BlamesNoRankThatOnlyTheRefusedOneExpects) {
  JobBuilder job = RefusedSize();
  job.comm().size = 4;  // the refused one reported first
  job.comm().other_size = 3;
  job.comm().claims = LazyVector<ClaimedSize>();
  job.comm().claims.push_back({0, 3});
  job.comm().claims.push_back({2, 3});
  EXPECT_EQ(Blamed(First(job)), Ranks{1});
}

TEST(RefusedSizeTest, WithoutARefusalBlamesNoRankBeyondTheSmallestSize) {
  JobBuilder job = RefusedSize();
  job.comm().size = 4;  // rank 1 reported first
  job.comm().claims = LazyVector<ClaimedSize>();
  job.comm().claims.push_back({0, 3});
  job.comm().claims.push_back({2, 3});
  job.member(1).state = MemberState::kInitializing;
  job.member(1).init_entered_ns = At(10);
  for (const Verdict& v : Diagnose(job.state, At(70), Limits())) {
    for (const int32_t rank : Blamed(v)) EXPECT_LT(rank, 3) << v.summary;
  }
}

// PyTorch's gloo group of all ranks, which these have made with that size.
void AddWorld(uint64_t id, int32_t size, const std::vector<int>& inside, JobBuilder* job) {
  job->AddCommunicator(id, "default_pg", {});
  job->comm().size = size;
  job->comm().kind = CommKind::kGloo;
  for (const int rank : inside) {
    job->comm().members[rank].process = rank;
    job->Initializing(rank, At(10));
    job->process(rank).blocked = {{1, Op::kProcessGroupGloo, id, At(10)}};
  }
}

Verdict OfTwoWorlds(const std::vector<int>& of_three, const std::vector<int>& of_four) {
  JobBuilder job(3);
  job.state.communicators.clear();
  AddWorld(0x31, 3, of_three, &job);
  AddWorld(0x41, 4, of_four, &job);
  return First(job);
}

// gloo's groups of two sizes have nothing in common but their name.
TEST(SizesOfGlooTest, TheFewerPassedTheWrongSize) {
  const Verdict v = OfTwoWorlds({0, 1}, {2});
  EXPECT_EQ(Blamed(v), Ranks{2}) << v.summary;
  EXPECT_EQ(v.advice.front().id, "sizes-of-the-world-differ");
  EXPECT_EQ(v.certainty, Certainty::kLikely);
  EXPECT_NE(v.summary.find("with 4 ranks, and the others create it with 3"), std::string::npos)
      << v.summary;
  EXPECT_EQ(Blamed(OfTwoWorlds({0}, {1, 2})), Ranks{0});
}

// A group that is made again, or another one that the program calls so.
TEST(SizesOfGlooTest, AGroupThatSharesARankIsAnotherOne) {
  JobBuilder job(3);
  job.state.communicators.clear();
  AddWorld(0x31, 3, {0, 1}, &job);
  AddWorld(0x41, 4, {1, 2}, &job);
  for (const Verdict& v : Diagnose(job.state, At(70), Limits())) {
    EXPECT_TRUE(v.mismatched_fields.empty()) << v.summary;
  }
}

}  // namespace
}  // namespace rollcall
