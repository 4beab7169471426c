// SPDX-License-Identifier: Apache-2.0
// Standstills of jobs of which ranks have ended.
#include <gtest/gtest.h>

#include "standing_job.h"

namespace rollcall {
namespace {

TEST(StandEndsTest, BlamesARankThatHasDied) {
  const RankPlaceOf ring = {" clock_nanosleep q.Ring.acquire_read engine.run ",
                            "/x/q.py:43 in Ring.acquire_read"};
  StandingJob job({ring, ring, ring});
  job.state.processes[2].liveness = Liveness::kDied;
  job.state.processes[2].exit_signal = 9;
  job.state.processes[2].standing = nullptr;
  const Verdict verdict = job.Only();
  EXPECT_EQ(CulpritsOf(verdict), Ranks{2});
  EXPECT_EQ(verdict.advice.front().id, "killed");
}

TEST(StandEndsTest, ARankMayLiveOnAfterTheOthersHaveEndedWell) {
  StandingJob job({{" clock_nanosleep time.sleep train.keep ", "/x/train.py:90 in keep"}, kQueue});
  Process& ended = job.state.processes[1];
  ended.liveness = Liveness::kExited;
  ended.exit_code = 0;
  ended.standing = nullptr;
  EXPECT_TRUE(job.Judge().empty());
  ended.liveness = Liveness::kDied;
  ended.exit_code = 1;
  EXPECT_EQ(CulpritsOf(job.Only()), Ranks{1});
}

// The lock is free now, and no sample shows yet that somebody takes it.
TEST(StandEndsTest, AWaitCountsFromTheEndOfTheOthers) {
  const RankPlaceOf flock = {" flock fcntl_flock train.save ", "/x/train.py:25 in save"};
  StandingJob job({flock, kQueue});
  EndWell(&job.state.processes[1]);
  job.state.processes[1].ended_ns = At(15);
  EXPECT_EQ(job.Only().standstill.shape, StandShape::kEnded);
  job.state.processes[1].ended_ns = At(59);
  EXPECT_TRUE(job.Judge().empty());
}

// It would have read the end of its connection.
TEST(StandEndsTest, AReaderOfAnAnswerDoesNotWaitForARankThatEndedNormally) {
  StandingJob job({{" __recv client.HTTPResponse.read train.report ",
                    "/x/train.py:9 in report",
                    {},
                    EndKind::kSocket},
                   kQueue});
  EndWell(&job.state.processes[1]);
  EXPECT_TRUE(job.Judge().empty());
}

TEST(StandEndsTest, BlamesNoEndedRankForAWaitForAnOwnChild) {
  StandingJob job(
      {{" wait4 popen_fork.Popen.poll process.BaseProcess.join train.end ", "/x/train.py:9 in end"},
       kQueue});
  EndWell(&job.state.processes[1]);
  EXPECT_EQ(CulpritsOf(job.Only()), Ranks{});
}

}  // namespace
}  // namespace rollcall
