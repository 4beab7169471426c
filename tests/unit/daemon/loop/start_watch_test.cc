// SPDX-License-Identifier: Apache-2.0
// When the ranks of a job that makes no calls are sampled with what they have started.
#include "daemon/loop/start_watch.h"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "daemon/model/standing.h"
#include "job_builder.h"

namespace rollcall {
namespace {

constexpr int kHour = 3600;

// A job of three ranks that have made some calls by second 5, and use the CPU ever since.
struct WatchedJob : JobBuilder {
  WatchedJob() : JobBuilder(3) {
    Finish(4);
    for (Process& process : state.processes) process.quiet_since_ns = 0;
  }

  void Work(double now) {
    for (size_t rank = 0; rank < state.processes.size(); ++rank) {
      Process& process = state.processes[rank];
      const bool is_quiet = rank == 0 && has_a_quiet_rank;
      if (!is_quiet || process.quiet_since_ns == 0) process.quiet_since_ns = At(now);
    }
  }

  // Times, in seconds, at which the ranks are sampled in the first hour.
  std::vector<int> Watch() {
    StartWatch watch;
    std::vector<int> sampled;
    for (int now = 1; now < kHour; ++now) {
      Work(now);
      const SamplesWanted wanted = watch.Next(state, false, At(now), Limits());
      if (!wanted.children || wanted.processes.empty()) continue;
      sampled.push_back(now);
      for (const int32_t process : wanted.processes) Sample(process, now);
    }
    return sampled;
  }

  // Another rank than the first one is in MPI, or computes.
  void Sample(int32_t index, double now) {
    auto standing = std::make_shared<Standing>();
    standing->newest_ns = At(now);
    StackPlace place;
    place.functions = waits_in_mpi ? " opal_progress PMPI_Win_lock main " : " dgemm_ main ";
    standing->place = StandPlace(place);
    state.processes[static_cast<size_t>(index)].standing = standing;
  }

  bool has_a_quiet_rank = false, waits_in_mpi = false;
};

TEST(StartWatchTest, RanksThatAllUseTheCpuAreLeftAlone) {
  EXPECT_TRUE(WatchedJob().Watch().empty());
}

TEST(StartWatchTest, RanksThatComputeBesideAQuietOneAreSeldomSampled) {
  WatchedJob job;
  job.has_a_quiet_rank = true;
  const std::vector<int> sampled = job.Watch();
  EXPECT_GE(sampled.size(), 3u);
  EXPECT_LE(sampled.size(), 12u);
}

TEST(StartWatchTest, RanksThatSpinInALibraryAreWatched) {
  WatchedJob job;
  job.has_a_quiet_rank = true;
  job.waits_in_mpi = true;
  EXPECT_GE(job.Watch().size(), 50u);
}

// Ranks that have made no call yet: rank 0 is quiet, and the others use the CPU now and then.
struct StartingJob : JobBuilder {
  StartingJob() : JobBuilder(3) {
    state.communicators.clear();
    for (Process& process : state.processes) process.has_segment = false;
  }

  bool WantsChildren(const Limits& limits) {
    StartWatch watch;
    watch.Next(state, false, At(0), limits);
    const double due = 1 + static_cast<double>(limits.suspect_after_ns) / 1e9;
    for (Process& process : state.processes) process.quiet_since_ns = At(due - 1);
    if (is_first_quiet) state.processes[0].quiet_since_ns = At(due - 5);
    return watch.Next(state, false, At(due), limits).children;
  }

  bool is_first_quiet = true;
};

TEST(StartWatchTest, AQuietRankForWhichOthersWaitIsSampledWithItsBytes) {
  StartingJob job;
  EXPECT_FALSE(job.WantsChildren(Limits()));
  job.state.processes[1].waits_outside_since_ns = At(1);
  EXPECT_TRUE(job.WantsChildren(Limits()));
  job.is_first_quiet = false;
  EXPECT_FALSE(job.WantsChildren(Limits()));
}

TEST(StartWatchTest, TheWatchOnCallsTakesNoBytes) {
  StartingJob job;
  job.state.processes[1].waits_outside_since_ns = At(1);
  Limits limits;
  limits.watches_calls_only = true;
  EXPECT_FALSE(job.WantsChildren(limits));
}

}  // namespace
}  // namespace rollcall
