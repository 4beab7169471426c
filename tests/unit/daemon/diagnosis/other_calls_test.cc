// SPDX-License-Identifier: Apache-2.0
// Ranks that train over NCCL while a thread of each waits in a call of gloo.
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "daemon/diagnosis/diagnose.h"
#include "daemon/diagnosis/life/incident_life.h"
#include "job_builder.h"

namespace rollcall {
namespace {

constexpr int kWaitsSince = 10;

// All wait for rank 0 in gloo. The others have made calls of NCCL until then, and rank 2 as long.
JobState WaitsInTheBackground(int trains_until, int rank_2, CommKind kind = CommKind::kGloo) {
  JobBuilder job(4);
  job.AddCommunicator(7, "save", {0, 1, 2, 3});
  job.comm().kind = kind;
  job.Enter({1, 2, 3}, At(kWaitsSince));
  job.On(kDp);
  job.Finish({0, 1, 3}, 1, AllReduce(), At(trains_until));
  job.Finish({2}, 1, AllReduce(), At(rank_2));
  return job.state;
}

JobState WaitsInTheBackground(int train_until) {
  return WaitsInTheBackground(train_until, train_until);
}

Verdict Judge(const JobState& state, int now) {
  const std::vector<Verdict> verdicts = Diagnose(state, At(now), Limits());
  EXPECT_EQ(verdicts.size(), 1u);
  return verdicts.empty() ? Verdict() : verdicts[0];
}

// The seconds after which the incident is confirmed; 0 if it is not within ten minutes.
int ConfirmedAt(int trains_for) {
  IncidentLife life("job");
  for (int now = 20; now < 600; now += 10) {
    const JobState state = WaitsInTheBackground(std::min(now, trains_for));
    for (const IncidentEvent& event :
         life.Update(state, Diagnose(state, At(now), Limits()), At(now), Limits(), View::kWhole)) {
      if (event.kind == IncidentEvent::Kind::kConfirmed) return now;
    }
  }
  return 0;
}

TEST(OtherCallsTest, AJobThatGoesOnInOtherCallsDoesNotHang) {
  EXPECT_EQ(ConfirmedAt(600), 0);
  EXPECT_EQ(Judge(WaitsInTheBackground(70), 80).certainty, Certainty::kLikely);
}

TEST(OtherCallsTest, OnceItStandsItHangsAsUsual) {
  EXPECT_EQ(ConfirmedAt(kWaitsSince), 70);
  EXPECT_EQ(ConfirmedAt(100), 160);
  EXPECT_EQ(Judge(WaitsInTheBackground(5), 80).certainty, Certainty::kCertain);
}

TEST(OtherCallsTest, OneRankThatStandsIsEnough) {
  EXPECT_EQ(Judge(WaitsInTheBackground(70, 9), 80).certainty, Certainty::kCertain);
}

// Ranks 0-3 evaluate on, and ranks 4-7 wait for them in a call of the world.
TEST(OtherCallsTest, ARankWhoseGpuFinishesOtherCallsMayStillCome) {
  const auto judge = [](int finished_until) {
    JobBuilder job(8);
    job.AddCommunicator(7, "tp", {0, 1, 2, 3});
    job.On(kDp);
    job.Enter({4, 5, 6, 7}, At(kWaitsSince));
    job.On(7);
    job.Finish({0, 1, 2, 3}, 1, AllReduce(), At(finished_until));
    return Judge(job.state, 80).certainty;
  };
  EXPECT_EQ(judge(75), Certainty::kLikely);
  EXPECT_EQ(judge(5), Certainty::kCertain);
}

TEST(OtherCallsTest, CallsBehindAStuckCallOfNcclSayNothing) {
  EXPECT_EQ(Judge(WaitsInTheBackground(70, 70, CommKind::kNccl), 80).certainty,
            Certainty::kCertain);
}

}  // namespace
}  // namespace rollcall
