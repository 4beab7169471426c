// SPDX-License-Identifier: Apache-2.0
// Which processes an incident asks for their stacks, and when.
#include "daemon/diagnosis/life/stack_plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <set>
#include <vector>

#include "daemon/diagnosis/diagnose.h"
#include "incidents_of_job.h"

namespace rollcall {
namespace {

class StackPlanTest : public IncidentsTest {};

TEST_F(StackPlanTest, SamplesRanksThatBeginToWaitLater) {
  job_.Finish(24);
  job_.Enter({3}, At(10), Broadcast());
  job_.Enter({0, 1}, At(10));
  EXPECT_EQ(Look(10.2), Kinds{Kind::kOpened});
  EXPECT_EQ(events_[0].take_stacks_of, (std::vector<int32_t>{3, 0, 1}));
  job_.Enter({2}, At(10.3));
  EXPECT_EQ(LookPastStacks(10.4), (Kinds{Kind::kUpdated, Kind::kConfirmed}));
  EXPECT_EQ(events_[events_.size() - 2].take_stacks_of, (std::vector<int32_t>{2}));
}

// Their lines are compared with that of the odd call.
TEST_F(StackPlanTest, SamplesRanksAgainThatHaveComeToTheirCallSince) {
  job_.Finish(24);
  job_.Enter({3}, At(10), Broadcast());
  job_.Enter({0, 1, 2}, At(10));
  const std::vector<Verdict> verdicts = Diagnose(job_.state, At(10.2), limits_);
  StackPlan plan;
  plan.First(job_.state, verdicts, At(10.2));
  for (const int rank : {0, 3}) job_.process(rank).stacks_ns = At(5);
  for (const int rank : {1, 2}) job_.process(rank).stacks_ns = At(11);
  EXPECT_EQ(plan.New(job_.state, verdicts, At(12)), (std::vector<int32_t>{0, 3}));
}

TEST_F(StackPlanTest, SamplesTheRestInPortionsAndEachProcessOnce) {
  JobBuilder job(600);
  IncidentLife life("train");
  job.Finish(24);
  std::vector<int> all(599);
  std::iota(all.begin(), all.end(), 0);
  job.Enter(all, At(10));
  std::set<int32_t> asked;
  std::vector<size_t> portions;
  for (int at = 25; at < 35; ++at) {
    const auto verdicts = Diagnose(job.state, At(at), limits_);
    for (const IncidentEvent& event : life.Update(job.state, verdicts, At(at), limits_)) {
      if (event.kind == Kind::kTakeStacksAgain) continue;
      if (event.kind == Kind::kTakeStacksOfRest) portions.push_back(event.take_stacks_of.size());
      for (const int32_t process : event.take_stacks_of) {
        EXPECT_TRUE(asked.insert(process).second) << process;
      }
    }
  }
  EXPECT_EQ(portions, (std::vector<size_t>{256, 256, 83}));
  EXPECT_EQ(asked.size(), 600u);
}

TEST_F(StackPlanTest, SamplesAllMembersOfASmallCallThatStandsStillInFlight) {
  JobBuilder job(8);
  job.Finish(24);
  job.Enter(JobBuilder::Ranks(0, 8), At(10));
  IncidentLife life("train");
  const auto look = [&](double at) {
    return life.Update(job.state, Diagnose(job.state, At(at), limits_), At(at), limits_);
  };
  const std::vector<IncidentEvent> opened = look(25);
  ASSERT_EQ(opened.size(), 1U);
  EXPECT_EQ(opened[0].incident.verdicts[0].cause, Cause::kStalledInFlight);
  std::vector<int32_t> asked = opened[0].take_stacks_of;
  std::sort(asked.begin(), asked.end());
  EXPECT_EQ(asked, (std::vector<int32_t>{0, 1, 2, 3, 4, 5, 6, 7}));
  const std::vector<IncidentEvent> again = look(26);
  ASSERT_EQ(again.size(), 1U);
  EXPECT_EQ(again[0].kind, Kind::kTakeStacksAgain);
  EXPECT_EQ(again[0].take_stacks_of.size(), 8U) << "transfers that move between two samples";
}

// Neighbours are asked: the way over the transfers leads from rank to rank.
TEST_F(StackPlanTest, OfALargeJobTheMembersOfTheStalledCallComeFirst) {
  constexpr uint64_t kTp = 77;
  JobBuilder job(6000);
  std::vector<int> members;
  for (int i = 0; i < 400; ++i) members.push_back(5000 + i);
  job.AddCommunicator(kTp, "tp", members);
  job.Finish(24);
  job.Enter(JobBuilder::Ranks(0, 400), At(10));
  IncidentLife life("train");
  std::vector<std::vector<int32_t>> portions;
  std::set<int32_t> asked;
  for (int at = 25; at < 32; ++at) {
    const auto verdicts = Diagnose(job.state, At(at), limits_);
    for (const IncidentEvent& event : life.Update(job.state, verdicts, At(at), limits_)) {
      if (event.kind == Kind::kTakeStacksAgain) continue;
      portions.push_back(event.take_stacks_of);
      for (const int32_t process : event.take_stacks_of) {
        EXPECT_TRUE(asked.insert(process).second) << process;
      }
    }
  }
  ASSERT_GE(portions.size(), 4U);
  EXPECT_EQ(portions[0].size(), 32U) << "the incident lists these";
  EXPECT_EQ(portions[1].size(), 256U);
  EXPECT_EQ(portions[2].size(), 400U - 256 - 32);
  EXPECT_EQ(std::count_if(asked.begin(), asked.end(),
                          [](int32_t process) { return process >= 5000 && process < 5400; }),
            400);
  EXPECT_EQ(portions[3].size(), 256U) << "then the even sample of the others";
}

TEST_F(StackPlanTest, ReadsTheTransfersOfTheOtherMembersOfAHugeCallWithoutStacks) {
  JobBuilder job(40000);
  job.Finish(1);
  job.Enter(JobBuilder::Ranks(0, 40000), At(10));
  IncidentLife life("train");
  std::vector<int32_t> members, others;
  for (int at = 25; at < 70; ++at) {
    const auto verdicts = Diagnose(job.state, At(at), limits_);
    for (const IncidentEvent& event : life.Update(job.state, verdicts, At(at), limits_)) {
      const std::vector<int32_t>& of = event.take_stacks_of;
      const bool is_member = event.kind == Kind::kTakeStacksOfRest && members.size() < 4096;
      if (is_member) members.insert(members.end(), of.begin(), of.end());
      if (event.kind != Kind::kTakeTransfers) continue;
      EXPECT_LE(of.size(), 1024U);
      others.insert(others.end(), of.begin(), of.end());
    }
  }
  ASSERT_EQ(members.size(), 4096U);
  EXPECT_EQ(members.front(), 32);
  EXPECT_TRUE(std::is_sorted(members.begin(), members.end()));
  EXPECT_EQ(members.back(), 32 + 4095) << "neighbours, without gaps";
  ASSERT_EQ(others.size(), 32768U - 4096);
  EXPECT_EQ(others.front(), 32 + 4096);
  EXPECT_EQ(others.back(), 32 + 32767);
}

TEST_F(StackPlanTest, ACallThatStandsStillInFlightLaterIsAskedForAgain) {
  RanksWait(10);
  EXPECT_EQ(Look(25), Kinds{Kind::kOpened});
  EXPECT_EQ(events_[0].take_stacks_of.size(), 4U);
  job_.Enter({3}, At(25.5));
  Look(41);
  const auto updated = std::find_if(events_.begin(), events_.end(), [](const IncidentEvent& event) {
    return event.kind == Kind::kUpdated;
  });
  ASSERT_NE(updated, events_.end());
  EXPECT_EQ(updated->incident.verdicts[0].cause, Cause::kStalledInFlight);
  EXPECT_EQ(updated->take_stacks_of, (std::vector<int32_t>{0, 1, 2, 3}))
      << "their stacks came without their transfers";
}

}  // namespace
}  // namespace rollcall
