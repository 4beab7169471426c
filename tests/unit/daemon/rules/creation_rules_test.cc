// SPDX-License-Identifier: Apache-2.0
// Communicators that ranks make from another one: who owes the creation, and who is wrong where
// others wait in another call of the parent.
#include <gtest/gtest.h>

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

// Two ranks split while two others reduce on the parent: nobody is in the right by number.
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

}  // namespace
}  // namespace rollcall
