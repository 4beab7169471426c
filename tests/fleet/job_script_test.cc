// SPDX-License-Identifier: Apache-2.0
#include "tests/fleet/job_script.h"

#include <gtest/gtest.h>

#include "tests/fleet/call_history.h"
#include "tests/fleet/load_options.h"

namespace rollcall::fleet {
namespace {

constexpr int64_t kBegin = 1000 * kSecond;
constexpr int64_t kPeriod = 50 * kMillisecond;

JobPlan FourRanks(Fault fault) {
  JobPlan plan;
  plan.name = "job";
  plan.ranks = 4;
  plan.begin_ns = kBegin;
  plan.period_ns = kPeriod;
  plan.fault = fault;
  plan.fault_ns = kBegin + 10 * kSecond;
  plan.culprit = 2;
  return plan;
}

TEST(JobScriptTest, HealthyRanksMakeTheSameNumberOfCallsAndDoNotWaitLong) {
  const JobScript script(FourRanks(Fault::kNone));
  for (int64_t now_ns = kBegin + kSecond; now_ns < kBegin + 2 * kSecond; now_ns += 7'000'000) {
    for (int rank = 0; rank < 4; ++rank) {
      const Standing standing = script.At(rank, true, now_ns);
      EXPECT_LE(standing.finished, standing.entered);
      EXPECT_LE(standing.entered, standing.finished + 1);
      EXPECT_EQ(standing.waiting_since_ns != 0, standing.entered > standing.finished);
      if (standing.waiting_since_ns == 0) continue;
      EXPECT_LT(now_ns - standing.waiting_since_ns, kPeriod);
    }
  }
}

TEST(JobScriptTest, TheOtherRanksWaitForAnAbsentOneFromTheirOwnEntry) {
  const JobScript script(FourRanks(Fault::kAbsent));
  const int64_t now_ns = kBegin + 60 * kSecond;
  EXPECT_EQ(script.At(2, true, now_ns), (Standing{200, 200, 0}));
  EXPECT_EQ(script.At(1, true, now_ns), (Standing{201, 200, script.EnteredNs(1, 200)}));
  EXPECT_GE(script.HangsFromNs(), kBegin + 10 * kSecond);
  EXPECT_LT(script.HangsFromNs(), kBegin + 10 * kSecond + 2 * kMillisecond);
}

TEST(JobScriptTest, NoRankWaitsOnTheOtherCommunicatorsOfAHungJob) {
  const JobScript script(FourRanks(Fault::kAbsent));
  for (int rank = 0; rank < 4; ++rank) {
    EXPECT_EQ(script.At(rank, false, kBegin + 60 * kSecond), (Standing{200, 200, 0}));
  }
}

TEST(JobScriptTest, AllRanksWaitInACallThatOneOfThemMakesOtherwise) {
  const JobScript script(FourRanks(Fault::kMismatch));
  for (int rank = 0; rank < 4; ++rank) {
    EXPECT_EQ(script.At(rank, true, kBegin + 60 * kSecond).entered, 201u);
    EXPECT_EQ(script.IsOtherCall(rank, true, 200), rank == 2);
    EXPECT_FALSE(script.IsOtherCall(rank, true, 199));
  }
}

TEST(JobScriptTest, AJobThatEndsHasFinishedAllItsCalls) {
  JobPlan plan = FourRanks(Fault::kNone);
  plan.end_ns = kBegin + 2 * kSecond;
  const JobScript script(plan);
  for (int rank = 0; rank < 4; ++rank) {
    const Standing standing = script.At(rank, true, plan.end_ns);
    EXPECT_EQ(standing.entered, standing.finished);
    EXPECT_EQ(standing.waiting_since_ns, 0);
  }
}

TEST(CallHistoryTest, AContradictingCallChangesTheSignature) {
  const CallHistory history(100);
  EXPECT_NE(history.SignatureOf(10), history.SignatureOf(11));
  EXPECT_NE(history.SignatureOf(11), history.OtherSignatureOf(11));
}

}  // namespace
}  // namespace rollcall::fleet
