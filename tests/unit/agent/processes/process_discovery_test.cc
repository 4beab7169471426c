// SPDX-License-Identifier: Apache-2.0
// Finds ranks by their environment, for every launcher.
#include "agent/processes/process_discovery.h"

#include <gtest/gtest.h>

namespace rollcall {
namespace {

using Environment = std::vector<std::string>;

const char kPreload[] = "LD_PRELOAD=/usr/lib/librollcall.so";
const char kDirectory[] = "ROLLCALL_DIR=/dev/shm/rollcall-0";

// Add() processes, then discover the main processes among them.
class ProcessDiscoveryTest : public ::testing::Test {
 protected:
  void Add(pid_t pid, pid_t ppid, const std::string& name, Environment environment,
           bool loaded = true) {
    if (loaded) environment.insert(environment.end(), {kPreload, kDirectory});
    Added added;
    added.stat.pid = pid;
    added.stat.ppid = ppid;
    added.stat.name = name;
    added.stat.start_time = static_cast<uint64_t>(pid) * 10;
    for (const std::string& variable : environment) added.environ += variable + '\0';
    processes_.push_back(added);
  }

  std::vector<DiscoveredProcess> Discover(const std::string& directory = "") {
    std::vector<DiscoveredProcess> found;
    for (const Added& added : processes_) {
      auto process = DiscoverIn(added.environ, added.stat, directory);
      if (process.has_value()) found.push_back(*std::move(process));
    }
    MarkMainProcesses(&found);
    return found;
  }

  // The pid of the main process of `rank`; -1: none, -2: several.
  pid_t FindMainPid(int rank) {
    pid_t found = -1;
    for (const DiscoveredProcess& process : Discover()) {
      if (!process.is_main || process.rank.coordinates.rank != rank) continue;
      found = found == -1 ? process.process.pid : -2;
    }
    return found;
  }

  struct Added {
    ProcStat stat;
    std::string environ;
  };
  std::vector<Added> processes_;
};

TEST_F(ProcessDiscoveryTest, AChainOfVeryManyProcessesCostsLittle) {
  constexpr pid_t kChain = 20'000;
  for (pid_t pid = 2; pid < kChain; ++pid) Add(pid, pid - 1, "python3", {"RANK=3"});
  EXPECT_TRUE(Discover().front().is_main);  // in time: each with all before it would be minutes
}

TEST_F(ProcessDiscoveryTest, FindsARankOfAPodWhoseLibraryComesByLdSoPreload) {
  Add(20, 10, "python3", {"RANK=3", "ROLLCALL_PRELOAD=/rollcall/lib/librollcall.so"}, false);
  Add(21, 10, "python3", {"RANK=4", "ROLLCALL_PRELOAD=/rollcall/lib/other.so"}, false);
  EXPECT_EQ(FindMainPid(3), 20);
  EXPECT_EQ(FindMainPid(4), -1);
}

TEST_F(ProcessDiscoveryTest, FindsARankByItsEnvironment) {
  Add(20, 10, "python3",
      {"HOME=/root", "RANK=3", "WORLD_SIZE=8", "LOCAL_RANK=1", "TORCHELASTIC_RUN_ID=job-7"});
  const auto found = Discover();
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].process, (ProcessId{20, 200}));
  EXPECT_EQ(found[0].ppid, 10);
  EXPECT_EQ(found[0].name, "python3");
  EXPECT_EQ(found[0].rank.coordinates.rank, 3);
  EXPECT_EQ(found[0].rank.coordinates.world_size, 8);
  EXPECT_EQ(found[0].rank.coordinates.local_rank, 1);
  EXPECT_STREQ(found[0].rank.variable, "RANK");
  EXPECT_EQ(found[0].job, "job-7");
  EXPECT_TRUE(found[0].is_main);
}

TEST_F(ProcessDiscoveryTest, SkipsProcessesWithoutTheLibrary) {
  Add(20, 1, "python3", {"RANK=3"}, false);
  Add(21, 1, "python3", {"RANK=3", "LD_PRELOAD=/lib/libjemalloc.so", kDirectory}, false);
  EXPECT_TRUE(Discover().empty());
}

TEST_F(ProcessDiscoveryTest, SkipsProcessesOfOtherDirectories) {
  Add(20, 1, "python3", {"RANK=3"});
  EXPECT_EQ(Discover("/dev/shm/rollcall-0").size(), 1u);
  EXPECT_EQ(Discover("/dev/shm/rollcall-0/").size(), 1u);
  EXPECT_TRUE(Discover("/dev/shm/rollcall-01").empty());
  EXPECT_TRUE(Discover("/dev/shm").empty());
}

TEST_F(ProcessDiscoveryTest, FindsALauncherThatHasNoRank) {
  Add(10, 1, "torchrun", {});
  const auto found = Discover();
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].rank.coordinates.rank, -1);
  EXPECT_FALSE(found[0].is_main);
}

TEST_F(ProcessDiscoveryTest, MarksTheTopmostOfARanksForkedChildren) {
  Add(20, 10, "python3", {"RANK=0"});
  Add(21, 20, "data loader", {"RANK=0"});
  Add(22, 21, "helper", {"RANK=0"});
  Add(30, 10, "python3", {"RANK=1"});
  EXPECT_EQ(FindMainPid(0), 20);
  EXPECT_EQ(FindMainPid(1), 30);
}

TEST_F(ProcessDiscoveryTest, MarksTheProgramOfAShellAndNotTheShell) {
  Add(20, 10, "bash", {"SLURM_PROCID=2", "SLURM_NTASKS=4"});
  Add(21, 20, "python3", {"SLURM_PROCID=2", "SLURM_NTASKS=4"});
  Add(22, 21, "python3", {"SLURM_PROCID=2", "SLURM_NTASKS=4"});
  EXPECT_EQ(FindMainPid(2), 21);
}

TEST_F(ProcessDiscoveryTest, MarksAShellThatRunsNothing) {
  Add(20, 10, "bash", {"SLURM_PROCID=2", "SLURM_NTASKS=4"});
  EXPECT_EQ(FindMainPid(2), 20);
}

TEST_F(ProcessDiscoveryTest, DoesNotTakeALauncherUnderSlurmForARank) {
  Add(10, 1, "torchrun", {"SLURM_PROCID=1", "SLURM_NTASKS=2"});
  Add(20, 10, "python3", {"SLURM_PROCID=1", "SLURM_NTASKS=2", "RANK=8"});
  Add(21, 10, "python3", {"SLURM_PROCID=1", "SLURM_NTASKS=2", "RANK=9"});
  EXPECT_EQ(FindMainPid(1), -1);
  EXPECT_EQ(FindMainPid(8), 20);
  EXPECT_EQ(FindMainPid(9), 21);
}

// In a pod that has RANK itself, torchrun counts nodes, and its workers ranks.
TEST_F(ProcessDiscoveryTest, DoesNotTakeALauncherThatCountsNodesForARank) {
  Add(20, 1, "torchrun", {"RANK=0", "WORLD_SIZE=2"});
  Add(21, 20, "python3", {"RANK=0", "WORLD_SIZE=16", "LOCAL_RANK=0"});
  Add(22, 20, "python3", {"RANK=1", "WORLD_SIZE=16", "LOCAL_RANK=1"});
  EXPECT_EQ(FindMainPid(0), 21);
  EXPECT_EQ(FindMainPid(1), 22);
}

// A rank that sets LOCAL_RANK itself, and a program that it starts.
TEST_F(ProcessDiscoveryTest, AHelperWithMoreVariablesIsNotTheRank) {
  Add(20, 1, "python3", {"RANK=0", "WORLD_SIZE=2"});
  Add(21, 20, "ninja", {"RANK=0", "WORLD_SIZE=2", "LOCAL_RANK=0"});
  EXPECT_EQ(FindMainPid(0), 20);
}

TEST_F(ProcessDiscoveryTest, DoesNotTakeABatchScriptOfSlurmForARank) {
  Add(10, 1, "slurm_script", {"SLURM_JOB_ID=7", "SLURM_PROCID=0"});
  Add(11, 10, "srun", {"SLURM_JOB_ID=7", "SLURM_PROCID=0"});
  Add(20, 2, "python3", {"SLURM_JOB_ID=7", "SLURM_PROCID=0", "SLURM_NTASKS=2", "SLURM_STEP_ID=0"});
  EXPECT_EQ(FindMainPid(0), 20);
  EXPECT_EQ(Discover().size(), 3u);
}

TEST_F(ProcessDiscoveryTest, EndsOnParentsThatFormACircle) {
  Add(20, 21, "python3", {"RANK=0"});
  Add(21, 20, "python3", {"RANK=0"});
  EXPECT_EQ(Discover().size(), 2u);
}

TEST(PreloadsRollcallTest, FindsTheLibraryAmongOthers) {
  EXPECT_TRUE(PreloadsRollcall("librollcall.so"));
  EXPECT_TRUE(PreloadsRollcall("/a/libx.so:/b/librollcall.so"));
  EXPECT_TRUE(PreloadsRollcall("/b/librollcall.so /a/libx.so"));
  EXPECT_FALSE(PreloadsRollcall("/b/librollcall.so.bak"));
  EXPECT_FALSE(PreloadsRollcall(""));
}

std::string Block(const Environment& variables) {
  std::string block;
  for (const std::string& variable : variables) block += variable + '\0';
  return block;
}

struct LauncherCase {
  const char* name;
  Environment environment;
  int rank;
  int world_size;
  int local_rank;
};

class RankEnvironmentTest : public ::testing::TestWithParam<LauncherCase> {};

TEST_P(RankEnvironmentTest, ReadsTheCoordinates) {
  const EnvironmentRank found = FindRankInEnviron(Block(GetParam().environment));
  EXPECT_EQ(found.coordinates.rank, GetParam().rank);
  EXPECT_EQ(found.coordinates.world_size, GetParam().world_size);
  EXPECT_EQ(found.coordinates.local_rank, GetParam().local_rank);
}

INSTANTIATE_TEST_SUITE_P(
    Launchers, RankEnvironmentTest,
    ::testing::Values(
        LauncherCase{"torchrun", {"RANK=1", "WORLD_SIZE=2", "LOCAL_RANK=0"}, 1, 2, 0},
        LauncherCase{"slurm", {"SLURM_PROCID=5", "SLURM_NTASKS=9", "SLURM_LOCALID=2"}, 5, 9, 2},
        LauncherCase{
            "open_mpi",
            {"OMPI_COMM_WORLD_RANK=4", "OMPI_COMM_WORLD_SIZE=6", "OMPI_COMM_WORLD_LOCAL_RANK=1"},
            4,
            6,
            1},
        LauncherCase{"pmi", {"PMI_RANK=7", "PMI_SIZE=8"}, 7, 8, -1},
        LauncherCase{
            "horovodrun", {"HOROVOD_RANK=3", "HOROVOD_SIZE=8", "HOROVOD_LOCAL_RANK=1"}, 3, 8, 1},
        LauncherCase{"paddle",
                     {"PADDLE_TRAINER_ID=5", "PADDLE_TRAINERS_NUM=8", "PADDLE_LOCAL_RANK=1"},
                     5,
                     8,
                     1},
        LauncherCase{
            "mvapich2",
            {"MV2_COMM_WORLD_RANK=6", "MV2_COMM_WORLD_SIZE=8", "MV2_COMM_WORLD_LOCAL_RANK=2"},
            6,
            8,
            2},
        LauncherCase{"pals", {"PALS_RANKID=4", "PALS_LOCAL_RANKID=0", "PMI_SIZE=24"}, 4, 24, 0},
        LauncherCase{
            "flux", {"FLUX_TASK_RANK=2", "FLUX_JOB_SIZE=4", "FLUX_TASK_LOCAL_ID=1"}, 2, 4, 1},
        LauncherCase{"flux_on_slurm", {"SLURM_PROCID=0", "FLUX_TASK_RANK=9"}, 9, -1, -1},
        LauncherCase{"pmix", {"PMIX_RANK=2"}, 2, -1, -1},
        LauncherCase{"kubernetes", {"JOB_COMPLETION_INDEX=3"}, 3, -1, -1},
        LauncherCase{"torchrun_on_slurm", {"SLURM_PROCID=0", "RANK=12"}, 12, -1, -1},
        LauncherCase{"replica_of_torchft",
                     {"REPLICA_GROUP_ID=2", "NUM_REPLICA_GROUPS=3", "RANK=1", "WORLD_SIZE=4",
                      "LOCAL_RANK=1"},
                     9,
                     12,
                     1},
        LauncherCase{"impossible_replica",
                     {"REPLICA_GROUP_ID=3", "NUM_REPLICA_GROUPS=3", "RANK=1", "WORLD_SIZE=4"},
                     1,
                     4,
                     -1},
        LauncherCase{
            "too_many_replicas",
            {"REPLICA_GROUP_ID=3", "NUM_REPLICA_GROUPS=999999999", "RANK=1", "WORLD_SIZE=4"},
            1,
            4,
            -1},
        LauncherCase{"none", {"RANKS=3", "MY_RANK=2", "RANK"}, -1, -1, -1},
        LauncherCase{"not_a_number", {"RANK=3a", "WORLD_SIZE=-1"}, -1, -1, -1},
        LauncherCase{"empty", {}, -1, -1, -1}),
    [](const auto& info) { return info.param.name; });

TEST(FindRankInEnvironTest, EndsOnABlockWithoutEnd) {
  EXPECT_EQ(FindRankInEnviron("RANK=4").coordinates.rank, 4);
  EXPECT_EQ(FindRankInEnviron(absl::string_view("\0\0\0RANK=4", 9)).coordinates.rank, 4);
}

}  // namespace
}  // namespace rollcall
