// SPDX-License-Identifier: Apache-2.0
// Ranks that are slow and not stuck: stragglers, ranks that run other code, and how long a call may
// take.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "daemon/diagnosis/diagnose.h"
#include "job_builder.h"

namespace rollcall {
namespace {

TEST(StragglerTest, WarnsOfTheRankThatIsAlwaysLast) {
  JobBuilder job(4);
  job.Finish(100);
  job.comm().arrivals = {64, 2, 63, 140'000'000, 900'000'000};
  const std::vector<Verdict> verdicts = Diagnose(job.state, At(100), Limits());
  ASSERT_EQ(verdicts.size(), 1u);
  EXPECT_TRUE(IsWarning(verdicts[0].cause));
  EXPECT_EQ(verdicts[0].summary,
            "rank 2 (node-2, pid 4002) is the last to enter nearly every call on communicator "
            "\"dp\", typically by 140 ms; nothing hangs");
}

TEST(StragglerTest, AHangHidesStragglers) {
  JobBuilder job(4);
  job.Finish(100);
  job.comm().arrivals = {64, 2, 63, 140'000'000, 900'000'000};
  job.Enter({0, 1, 2}, At(10));
  for (const Verdict& v : Diagnose(job.state, At(100), Limits())) EXPECT_FALSE(IsWarning(v.cause));
}

TEST(LateTest, ARankThatRunsOtherCodeIsLate) {
  JobBuilder job(4);
  job.Finish(24);
  job.Enter({0, 1, 2}, At(10));
  job.process(3).cpu_moving = true;
  job.process(3).motion = Motion::kMoving;
  const std::vector<Verdict> verdicts = Diagnose(job.state, At(40), Limits());
  ASSERT_EQ(verdicts.size(), 1u);
  EXPECT_TRUE(verdicts[0].late);
  EXPECT_NE(verdicts[0].summary.find("is late for AllReduce #24"), std::string::npos);
}

TEST(LateTest, StacksFromBeforeTheWaitHaveNoEffect) {
  JobBuilder job(4);
  job.Finish(24);
  job.Enter({0, 1, 2}, At(10));
  job.process(3).cpu_moving = true;
  job.process(3).motion = Motion::kMoving;
  job.process(3).stack_words = "evaluate";
  job.process(3).stacks_ns = At(9);
  const std::vector<Verdict> verdicts = Diagnose(job.state, At(40), Limits());
  ASSERT_EQ(verdicts.size(), 1u);
  EXPECT_FALSE(verdicts[0].late);
  EXPECT_EQ(verdicts[0].stack_words, "");
}

TEST(LearnedLimitTest, ACallThatIsUsuallyFastIsSuspectedSooner) {
  JobBuilder job(4);
  job.Finish(24);
  job.Enter({0, 1, 2}, At(10));
  job.comm().usual = {{Op::kAllReduce, 21, 100, 20'000'000}};
  EXPECT_TRUE(Diagnose(job.state, At(14.9), Limits()).empty());
  EXPECT_FALSE(Diagnose(job.state, At(15), Limits()).empty());
}

TEST(LearnedLimitTest, ACallThatUsuallyTakesLongHasTheCeiling) {
  JobBuilder job(4);
  job.Finish(24);
  job.Enter({0, 1, 2}, At(10));
  job.comm().usual = {{Op::kAllReduce, 21, 100, 40'000'000'000}};
  EXPECT_TRUE(Diagnose(job.state, At(24.9), Limits()).empty());
  EXPECT_FALSE(Diagnose(job.state, At(25), Limits()).empty());
}

}  // namespace
}  // namespace rollcall
