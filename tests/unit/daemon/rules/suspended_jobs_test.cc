// SPDX-License-Identifier: Apache-2.0
// Jobs whose processes are stopped: all of them, or one that others wait for.
#include <gtest/gtest.h>

#include <vector>

#include "daemon/diagnosis/diagnose.h"
#include "job_builder.h"

namespace rollcall {
namespace {

using Ranks = std::vector<int32_t>;

// All ranks of a job are in a call, and those in `suspended` were stopped by a signal.
std::vector<Verdict> JudgeSuspended(const std::vector<int>& suspended, char state = 'T') {
  JobBuilder job(4);
  job.Finish(24);
  job.Enter({0, 1, 2}, At(10));
  for (const int rank : suspended) job.process(rank).state = state;
  return Diagnose(job.state, At(500), Limits());
}

// As by Slurm's suspend, or by a person who stops the whole job: it goes on when they want it.
TEST(SuspendedJobTest, HasNoHang) { EXPECT_TRUE(JudgeSuspended({0, 1, 2, 3}).empty()); }

TEST(SuspendedJobTest, HasNoHangIfOneRankRunsThatNoRankWaitsFor) {
  EXPECT_TRUE(JudgeSuspended({0, 1, 2}).empty());
}

TEST(SuspendedJobTest, OneRankThatRunsAndWaitsIsEnough) {
  const std::vector<Verdict> verdicts = JudgeSuspended({1, 2, 3});
  ASSERT_FALSE(verdicts.empty());
  EXPECT_EQ(CulpritRanks(verdicts[0].culprits), (Ranks{3}));
}

TEST(SuspendedJobTest, ADebuggerSuspendsNoJob) {
  EXPECT_FALSE(JudgeSuspended({0, 1, 2, 3}, 't').empty());
}

TEST(SuspendedJobTest, IsFrozenByAControlGroup) {
  JobBuilder job(4);
  job.Finish(24);
  job.Enter({0, 1, 2}, At(10));
  for (int rank = 0; rank < 4; ++rank) job.process(rank).wait_channel = "do_freezer_trap";
  EXPECT_TRUE(Diagnose(job.state, At(500), Limits()).empty());
}

// Its ranks do not go on all at once.
TEST(SuspendedJobTest, ARankThatIsStillStoppedDoesNotMakeTheWaitsLong) {
  JobBuilder job(4);
  job.Finish(24);
  job.Enter({0, 1, 2}, At(10));
  job.process(0).suspensions = {{At(10), At(490)}};
  for (const int rank : {1, 2, 3}) job.process(rank).state = 'T';
  const std::vector<Verdict> verdicts = Diagnose(job.state, At(500), Limits());
  for (const Verdict& verdict : verdicts) EXPECT_EQ(verdict.counts_from_ns, At(490));
}

// As by gang scheduling, which would else begin each wait anew before it is long.
TEST(SuspendedJobTest, ItsWaitsCountWithoutTheTimesInWhichItDidNotRun) {
  JobBuilder job(4);
  job.Finish(24);
  job.Enter({0, 1, 2}, At(10));
  for (int rank = 0; rank < 4; ++rank) {
    job.process(rank).suspensions = {{At(5), At(20)}, {At(100), At(200)}, {At(300), At(400)}};
  }
  const std::vector<Verdict> verdicts = Diagnose(job.state, At(500), Limits());
  ASSERT_FALSE(verdicts.empty());
  EXPECT_EQ(verdicts[0].counts_from_ns, At(10 + 10 + 100 + 100));
}

}  // namespace
}  // namespace rollcall
