// SPDX-License-Identifier: Apache-2.0
// Whose GPUs are dumped, and when.
#include "daemon/loop/gpu_dump_watch.h"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

namespace rollcall {
namespace {

const JobKey kDumpedJob;

JobState FourRanks() {
  JobState state;
  state.processes.resize(4);
  for (int32_t i = 0; i < 4; ++i) {
    Process& process = state.processes[static_cast<size_t>(i)];
    process.host = "node-1";
    process.pid = 4000 + i;
    process.global_rank = i;
    process.liveness = Liveness::kAlive;
  }
  return state;
}

// Ranks 2 and 3 are blamed, and the others wait.
std::vector<Verdict> Hang(Cause cause = Cause::kStalledInFlight) {
  Verdict verdict;
  verdict.cause = cause;
  for (const int32_t process : {2, 3}) {
    Culprit culprit;
    culprit.process = process;
    culprit.device = process + 4;
    verdict.culprits.push_back(culprit);
  }
  verdict.waiting_processes = {2, 0, 1};
  return {verdict};
}

TEST(ChooseGpuDumpsTest, ACulpritAndARankThatWaitsAreChosen) {
  const std::vector<GpuDumpTarget> targets = ChooseGpuDumps(FourRanks(), Hang());
  ASSERT_EQ(targets.size(), 2u);
  EXPECT_TRUE(targets[0].is_culprit);
  EXPECT_EQ(targets[0].rank, 2);
  EXPECT_EQ(targets[0].pid, 4002);
  EXPECT_EQ(targets[0].device, 6);
  EXPECT_FALSE(targets[1].is_culprit);
  EXPECT_EQ(targets[1].rank, 0) << "a culprit that waits, too, is no victim";
  EXPECT_EQ(targets[1].host, "node-1");
}

TEST(ChooseGpuDumpsTest, AProcessThatHasEndedOrIsSilentIsNotChosen) {
  JobState state = FourRanks();
  state.processes[2].liveness = Liveness::kDied;
  state.processes[0].liveness = Liveness::kSilent;
  const std::vector<GpuDumpTarget> targets = ChooseGpuDumps(state, Hang());
  ASSERT_EQ(targets.size(), 2u);
  EXPECT_EQ(targets[0].rank, 3);
  EXPECT_EQ(targets[1].rank, 1);
}

TEST(ChooseGpuDumpsTest, AStoppedProcessIsNamedAndMustNotBeAsked) {
  JobState state = FourRanks();
  state.processes[2].state = 'T';
  const std::vector<GpuDumpTarget> targets = ChooseGpuDumps(state, Hang());
  ASSERT_EQ(targets.size(), 2u);
  EXPECT_EQ(targets[0].rank, 2);
  EXPECT_FALSE(targets[0].why_not.empty());
  EXPECT_TRUE(targets[1].why_not.empty());
}

TEST(ChooseGpuDumpsTest, AWarningDumpsNothing) {
  EXPECT_TRUE(ChooseGpuDumps(FourRanks(), Hang(Cause::kStraggler)).empty());
  EXPECT_TRUE(ChooseGpuDumps(FourRanks(), {}).empty());
}

TEST(GpuDumpWatchTest, EachConfirmedIncidentIsAskedOnce) {
  GpuDumpWatch watch;
  const std::vector<GpuDumpTarget> targets = ChooseGpuDumps(FourRanks(), Hang());
  EXPECT_FALSE(watch.Next(kDumpedJob, "", targets)) << "none is confirmed";
  const auto request = watch.Next(kDumpedJob, "job-1", targets);
  ASSERT_TRUE(request);
  EXPECT_EQ(request->incident, "job-1");
  EXPECT_EQ(request->targets.size(), 2u);
  EXPECT_FALSE(watch.Next(kDumpedJob, "job-1", targets));
  EXPECT_TRUE(watch.Next(kDumpedJob, "job-2", targets));
}

TEST(GpuDumpWatchTest, ReportsThatNoProcessOfAnIncidentCanBeAsked) {
  GpuDumpWatch watch;
  const auto request = watch.Next(kDumpedJob, "job-1", {});
  ASSERT_TRUE(request);
  EXPECT_TRUE(request->targets.empty());
}

}  // namespace
}  // namespace rollcall
