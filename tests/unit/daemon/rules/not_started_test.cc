// SPDX-License-Identifier: Apache-2.0
// The rule for a job of which some ranks wait before any rank has made an NCCL call.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "daemon/diagnosis/diagnose.h"
#include "job_builder.h"

namespace rollcall {
namespace {

// Four ranks without an NCCL call; ranks 1-3 have waited for the others since second 10.
JobBuilder Starting() {
  JobBuilder job(4);
  job.state.communicators.clear();
  for (Process& process : job.state.processes) {
    process.has_segment = false;
    process.stack_words = "main download";
    if (process.global_rank != 0) process.waits_outside_since_ns = At(10);
  }
  return job;
}

using Ranks = std::vector<int32_t>;

std::vector<Verdict> AtStart(const JobState& job, double now) {
  return Diagnose(job, At(now), Limits());
}

TEST(StartTest, NamesTheRankThatTheOthersWaitFor) {
  const JobBuilder job = Starting();
  EXPECT_TRUE(AtStart(job.state, 24.9).empty());
  const std::vector<Verdict> verdicts = AtStart(job.state, 70);
  ASSERT_EQ(verdicts.size(), 1u);
  EXPECT_EQ(verdicts[0].cause, Cause::kInitIncomplete);
  EXPECT_EQ(verdicts[0].certainty, Certainty::kLikely);
  EXPECT_EQ(verdicts[0].waiting_ranks, (Ranks{1, 2, 3}));
  EXPECT_EQ(
      verdicts[0].summary,
      "rank 0 (node-0, pid 4000) has not reached the point where the others wait, and no rank has "
      "made an NCCL call yet; "
      "3 ranks have waited 60 s");
  EXPECT_EQ(verdicts[0].advice.front().id, "rank0-only-setup");
}

TEST(StartTest, DoesNotBlameARankWithoutASample) {
  JobBuilder job = Starting();
  job.state.processes[0].stack_words = "";
  EXPECT_TRUE(AtStart(job.state, 70).empty());
}

TEST(StartTest, FindsNothingIfAllRanksWaitOrNone) {
  JobBuilder job = Starting();
  job.state.processes[0].waits_outside_since_ns = At(10);
  EXPECT_TRUE(AtStart(job.state, 70).empty());
  for (Process& process : job.state.processes) process.waits_outside_since_ns = 0;
  EXPECT_TRUE(AtStart(job.state, 70).empty());
}

TEST(StartTest, ARankWithoutAKnownProcessIsAbsent) {
  JobBuilder job = Starting();
  job.state.processes.erase(job.state.processes.begin());
  const std::vector<Verdict> verdicts = AtStart(job.state, 70);
  ASSERT_EQ(verdicts.size(), 1u);
  ASSERT_EQ(verdicts[0].culprits.size(), 1u);
  EXPECT_EQ(verdicts[0].culprits[0].rank, 0);
  EXPECT_EQ(verdicts[0].culprits[0].pid, 0);
}

// Sets the time of all samples.
void TakeStacks(JobBuilder* job, double at) {
  for (Process& process : job->state.processes) process.stacks_ns = At(at);
}

TEST(StartTest, UsesOnlyRecentStacks) {
  JobBuilder job = Starting();
  TakeStacks(&job, 30);
  EXPECT_FALSE(AtStart(job.state, 31).empty());
  EXPECT_EQ(AtStart(job.state, 31)[0].waited_ns, 20 * kSecondNs);
  EXPECT_TRUE(AtStart(job.state, 70).empty());
}

TEST(StartTest, OneSampleIsNotEnough) {
  JobBuilder job = Starting();
  TakeStacks(&job, 30);
  job.state.processes[2].waits_outside_since_ns = At(30);
  EXPECT_TRUE(AtStart(job.state, 31).empty());
}

// The ranks have trained together and have destroyed their communicators.
TEST(StartTest, RanksThatWereInACommunicatorHaveStarted) {
  JobBuilder job = Starting();
  job.state.processes[3].has_met = true;
  EXPECT_TRUE(AtStart(job.state, 70).empty());
  job.state.processes[3].liveness = Liveness::kExited;  // an earlier attempt
  EXPECT_FALSE(AtStart(job.state, 70).empty());
}

TEST(StartTest, StacksInsideNcclShowThatTheJobHasStarted) {
  JobBuilder job = Starting();
  job.state.processes[3].stack_words = "main ncclProxyService start_thread";
  EXPECT_TRUE(AtStart(job.state, 70).empty());
}

TEST(StartTest, AWorkerThatInheritedARankDoesNotRepresentIt) {
  JobBuilder job = Starting();
  Process worker = job.state.processes[1];
  worker.pid = 5001;
  worker.start_time += 1000;
  worker.waits_outside_since_ns = 0;
  job.state.processes.push_back(worker);
  const std::vector<Verdict> verdicts = AtStart(job.state, 70);
  ASSERT_EQ(verdicts.size(), 1u);
  EXPECT_EQ(CulpritRanks(verdicts[0].culprits), Ranks{0});
}

TEST(StartTest, TheEndOfAnEarlierAttemptIsNoAbsence) {
  JobBuilder job = Starting();
  for (int rank = 0; rank < 4; ++rank) {
    Process ended = job.state.processes[static_cast<size_t>(rank)];
    ended.pid -= 1000;
    ended.start_time -= 50;
    ended.liveness = Liveness::kDied;
    ended.has_segment = true;
    ended.waits_outside_since_ns = 0;
    job.state.processes.push_back(ended);
  }
  const std::vector<Verdict> verdicts = AtStart(job.state, 70);
  ASSERT_EQ(verdicts.size(), 1u);
  EXPECT_EQ(CulpritRanks(verdicts[0].culprits), Ranks{0});
  EXPECT_EQ(verdicts[0].culprits[0].pid, 4000);
}

TEST(StartTest, FindsNothingOnceThereIsACommunicator) {
  JobBuilder job = Starting();
  job.AddCommunicator(kDp, "dp", {0, 1, 2, 3});
  EXPECT_TRUE(AtStart(job.state, 70).empty());
}

}  // namespace
}  // namespace rollcall
