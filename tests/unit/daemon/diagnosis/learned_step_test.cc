// SPDX-License-Identifier: Apache-2.0
// The step of a program that reports none.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "daemon/diagnosis/diagnose.h"
#include "job_builder.h"

namespace rollcall {
namespace {

bool Says(const std::vector<std::string>& lines, const std::string& words) {
  return std::any_of(lines.begin(), lines.end(), [&](const std::string& line) {
    return line.find(words) != std::string::npos;
  });
}

// Three calls of a warm-up, and steps of four calls; rank 3 does not make the second one of
// step 30.
JobBuilder InStep30() {
  JobBuilder job(4);
  job.Finish(3, Broadcast());
  for (int step = 0; step <= 30; ++step) {
    job.Finish(1, AllReduce(100));
    if (step == 30) break;
    for (const uint64_t count : {200, 300, 400}) job.Finish(1, AllReduce(count));
  }
  job.Enter({0, 1, 2}, At(10), AllReduce(200));
  return job;
}

Verdict First(const JobState& state) {
  const std::vector<Verdict> verdicts = Diagnose(state, At(70), Limits());
  EXPECT_FALSE(verdicts.empty());
  return verdicts.empty() ? Verdict() : verdicts[0];
}

TEST(LearnedStepTest, TheStepIsCountedByTheCallsThatRepeat) {
  const Verdict v = First(InStep30().state);
  EXPECT_EQ(v.step, 30) << v.summary;
  EXPECT_NE(v.summary.find("3 ranks have waited 60 s in step 30 (of period 4 calls)"),
            std::string::npos)
      << v.summary;
  EXPECT_TRUE(Says(v.evidence,
                   "step 30: counted by the 4 calls that the ranks repeat on the "
                   "communicator"));
}

TEST(LearnedStepTest, WithLostRecordsItIsAnEstimate) {
  JobBuilder job = InStep30();
  job.LoseRecordsBefore(40);
  const Verdict v = First(job.state);
  EXPECT_EQ(v.step, 31);  // the warm-up is not known any more
  EXPECT_TRUE(Says(v.evidence, "older calls are lost, so it may be some steps fewer"));
}

TEST(LearnedStepTest, AReportedStepCounts) {
  JobBuilder job = InStep30();
  for (const int rank : {0, 1, 2, 3}) job.process(rank).step = 812;
  EXPECT_EQ(First(job.state).step, 812);
}

TEST(LearnedStepTest, AShortPastDecidesNothing) {
  JobBuilder job(4);
  for (int i = 0; i < 4; ++i) {
    job.Finish(1, AllReduce(100));
    job.Finish(1, AllReduce(200));
  }
  job.Enter({0, 1, 2}, At(10), AllReduce(100));
  EXPECT_EQ(First(job.state).step, -1);
}

TEST(LearnedStepTest, EqualCallsAreNotSteps) {
  JobBuilder job(4);
  job.Finish(100);
  job.Enter({0, 1, 2}, At(10));
  EXPECT_EQ(First(job.state).step, -1);
}

}  // namespace
}  // namespace rollcall
