// SPDX-License-Identifier: Apache-2.0
// Which processes of a host are ranks, and what they have in common.
#include "cli/diagnose/ranks.h"

#include <gtest/gtest.h>

#include <ostream>
#include <string>
#include <vector>

namespace rollcall {
namespace {

constexpr pid_t kSelf = 900;
constexpr char kTrainCommand[] = "python3\0/x/train.py\0--lr\0001";

// A process whose environment is `environ`, a variable a line.
FoundProcess MakeFound(pid_t pid, pid_t ppid, std::string environ,
                       const std::string& name = "python3") {
  for (char& c : environ) {
    if (c == '\n') c = '\0';
  }
  ProcStat stat;
  stat.pid = pid;
  stat.ppid = ppid;
  stat.start_time = 5;
  stat.name = name;
  FoundProcess found;
  found.process = DescribeIn(environ, stat);
  found.state = 'S';
  found.uid = 1000;
  found.command = std::string(kTrainCommand, sizeof(kTrainCommand) - 1);
  found.marks = FindMarks(environ, "node-1");
  return found;
}

std::vector<pid_t> PidsOf(std::vector<FoundProcess> processes,
                          const std::vector<pid_t>& pids = {}) {
  std::vector<pid_t> chosen;
  for (const ChosenRank& rank : ChooseRanks(&processes, pids, kSelf)) {
    chosen.push_back(processes[rank.at].process.process.pid);
  }
  return chosen;
}

using Pids = std::vector<pid_t>;
const char kRank0[] = "RANK=0\nWORLD_SIZE=2\nMASTER_ADDR=10.0.0.1\nMASTER_PORT=29500";
const char kRank1[] = "RANK=1\nWORLD_SIZE=2\nMASTER_ADDR=10.0.0.1\nMASTER_PORT=29500";

TEST(ChooseRanksTest, TakesTheMainProcessOfEachRank) {
  // torchrun, two ranks, a data loader of each, and a shell without a rank
  EXPECT_EQ(
      PidsOf({MakeFound(10, 1, "HOME=/x"), MakeFound(11, 10, kRank0), MakeFound(12, 10, kRank1),
              MakeFound(13, 11, kRank0), MakeFound(14, 12, kRank1), MakeFound(20, 1, "")}),
      Pids({11, 12}));
}

// `kubectl exec` and `srun --overlap` give the shell and this program the variables of a rank.
TEST(ChooseRanksTest, WhoLooksIsNotARank) {
  const std::vector<FoundProcess> processes = {MakeFound(100, 1, kRank0),
                                               MakeFound(899, 1, kRank0, "bash"),
                                               MakeFound(kSelf, 899, kRank0, "rollcall")};
  EXPECT_EQ(PidsOf(processes), Pids{100});
}

TEST(ChooseRanksTest, ADataLoaderThatHasOutlivedItsRankIsNotARank) {
  EXPECT_EQ(PidsOf({MakeFound(11, 1, kRank0), MakeFound(14, 1, kRank1, "pt_data_worker")}),
            Pids({11}));
}

TEST(ChooseRanksTest, TakesWhatTalksWithoutARank) {
  FoundProcess launcher = MakeFound(10, 1, ""), one = MakeFound(11, 10, ""),
               two = MakeFound(12, 10, "");
  launcher.libraries = one.libraries = two.libraries = {"nccl", "torch"};
  one.talks = two.talks = true;
  EXPECT_EQ(PidsOf({launcher, one, two}), Pids({11, 12}));
}

TEST(ChooseRanksTest, LeavesAloneWhatHasOnlyMappedALibrary) {
  FoundProcess notebook = MakeFound(10, 1, "");
  notebook.libraries = {"nccl", "torch"};
  EXPECT_EQ(PidsOf({notebook}), Pids());
}

// Processes that talk with each other, and have mapped the library.
std::vector<FoundProcess> MakeMesh(const std::string& library, std::vector<FoundProcess> of) {
  for (FoundProcess& one : of) {
    one.libraries = {library};
    for (const FoundProcess& other : of) {
      if (other.process.process.pid != one.process.process.pid)
        one.connected.push_back(other.process.process.pid);
    }
  }
  return of;
}

TEST(ChooseRanksTest, TakesProcessesOfJaxThatTalkWithEachOther) {
  std::vector<FoundProcess> processes =
      MakeMesh("jax", {MakeFound(11, 1, ""), MakeFound(12, 5, ""), MakeFound(13, 6, "")});
  processes.push_back(MakeFound(14, 1, ""));
  processes.back().libraries = {"jax"};
  EXPECT_EQ(PidsOf(processes), Pids({11, 12, 13}));
}

TEST(ChooseRanksTest, ThoseThatTalkWithEachOtherAreOneJob) {
  std::vector<FoundProcess> processes =
      MakeMesh("jax", {MakeFound(11, 5, ""), MakeFound(12, 6, "")});
  for (FoundProcess& other : MakeMesh("jax", {MakeFound(21, 7, ""), MakeFound(22, 8, "")}))
    processes.push_back(other);
  ChooseRanks(&processes, {}, kSelf);
  EXPECT_EQ(BestMark(processes[0]), BestMark(processes[1]));
  EXPECT_EQ(BestMark(processes[2]), BestMark(processes[3]));
  EXPECT_NE(BestMark(processes[0]), BestMark(processes[2]));
}

// Star: all talk with the first one only, which keeps JAX's coordination service.
TEST(ChooseRanksTest, TakesWhatTalksWithACoordinator) {
  std::vector<FoundProcess> star = {MakeFound(11, 1, ""), MakeFound(12, 5, ""),
                                    MakeFound(13, 6, "")};
  star[0].connected = {12, 13};
  star[1].connected = star[2].connected = {11};
  for (FoundProcess& one : star) one.libraries = {"jax"};
  EXPECT_EQ(PidsOf(star), Pids({11, 12, 13}));
}

TEST(ChooseRanksTest, TakesSiblingsOfUccThatTalkWithEachOther) {
  EXPECT_EQ(PidsOf(MakeMesh("ucc", {MakeFound(11, 10, ""), MakeFound(12, 10, "")})),
            Pids({11, 12}));
  EXPECT_EQ(PidsOf(MakeMesh("ucc", {MakeFound(11, 10, ""), MakeFound(12, 9, "")})), Pids())
      << "two services";
}

// PyTorch's ranks, by their threads, where the program sets their variables itself.
TEST(ChooseRanksTest, RanksWithThreadsOfRanksThatTalkAreOneJob) {
  std::vector<FoundProcess> processes =
      MakeMesh("torch", {MakeFound(11, 10, ""), MakeFound(12, 10, "")});
  for (FoundProcess& one : processes) one.talks = true;
  ChooseRanks(&processes, {}, kSelf);
  EXPECT_EQ(BestMark(processes[0]), BestMark(processes[1]));
}

// Of another program of the same launcher: each is a job of its own no more than before.
TEST(ChooseRanksTest, AConnectionToAStrangerMakesNoJobOfOneRank) {
  std::vector<FoundProcess> processes = {MakeFound(11, 10, ""), MakeFound(12, 10, "")};
  for (FoundProcess& one : processes) {
    one.talks = true;
    one.connected = {99};
  }
  ChooseRanks(&processes, {}, kSelf);
  EXPECT_EQ(BestMark(processes[0]), BestMark(processes[1]));
}

TEST(ChooseRanksTest, LeavesAloneOtherProcessesThatTalk) {
  EXPECT_EQ(PidsOf(MakeMesh("torch", {MakeFound(11, 10, ""), MakeFound(12, 10, "")})), Pids());
  EXPECT_EQ(PidsOf(MakeMesh("jax", {MakeFound(11, 1, ""), MakeFound(12, 11, "")})), Pids())
      << "a child and its parent";
  std::vector<FoundProcess> programs =
      MakeMesh("jax", {MakeFound(11, 1, ""), MakeFound(12, 1, "")});
  programs[1].command = std::string("python3\0/x/serve.py", 19);
  EXPECT_EQ(PidsOf(programs), Pids()) << "a client and its server";
}

TEST(ChooseRanksTest, TakesWhatTheCommandNames) {
  EXPECT_EQ(PidsOf({MakeFound(10, 1, ""), MakeFound(11, 1, ""), MakeFound(12, 1, "")}, {10, 12}),
            Pids({10, 12}));
}

TEST(ChooseRanksTest, TakesTheJobOfANamedProcess) {
  const std::string other = "RANK=0\nMASTER_ADDR=10.0.0.1\nMASTER_PORT=29501";
  const std::vector<FoundProcess> all = {MakeFound(10, 1, ""), MakeFound(11, 10, kRank0),
                                         MakeFound(12, 10, kRank1), MakeFound(13, 12, kRank1),
                                         MakeFound(21, 1, other)};
  EXPECT_EQ(PidsOf(all, {11}), Pids({11, 12}));
  EXPECT_EQ(PidsOf(all, {13}), Pids({11, 12})) << "a data loader";
  EXPECT_EQ(PidsOf(all, {10}), Pids({11, 12})) << "a launcher";
}

TEST(ChooseRanksTest, TakesAnEndedRankBesideLivingOnes) {
  FoundProcess ended = MakeFound(13, 10, "");
  ended.state = 'Z';
  FoundProcess shell = MakeFound(14, 10, "", "bash");
  shell.state = 'Z';
  EXPECT_EQ(PidsOf({MakeFound(10, 1, ""), MakeFound(11, 10, kRank0), MakeFound(12, 10, kRank1),
                    ended, shell}),
            Pids({11, 12, 13}));
}

struct MarksCase {
  const char* name;
  std::string environ;  // a variable a line
  std::string best;
  bool of_host = false;
};

std::ostream& operator<<(std::ostream& out, const MarksCase& c) { return out << c.name; }

class BestMarkTest : public testing::TestWithParam<MarksCase> {};

TEST_P(BestMarkTest, SaysWhatTheRanksOfAJobShare) {
  const FoundProcess found = MakeFound(11, 1, GetParam().environ);
  EXPECT_EQ(BestMark(found), GetParam().best);
  ASSERT_EQ(found.marks.empty(), GetParam().best.empty());
  EXPECT_EQ(!found.marks.empty() && found.marks[0].of_host, GetParam().of_host);
}

const MarksCase kMarks[] = {
    {"nothing", "HOME=/x", ""},
    {"an_address", "MASTER_ADDR=10.0.0.1\nMASTER_PORT=29500", "rendezvous 10.0.0.1:29500"},
    {"an_address_of_loopback_is_of_its_host", "MASTER_ADDR=localhost\nMASTER_PORT=1234",
     "rendezvous localhost:1234 on node-1", true},
    {"an_address_without_a_port", "MASTER_ADDR=10.0.0.1\nSLURM_JOB_ID=7\nSLURM_STEP_ID=0",
     "slurm 7.0"},
    {"a_job_of_slurm_may_have_several_starts", "SLURM_JOB_ID=7", ""},
    // mpirun starts the ranks of its own node by itself, and those of the others through srun.
    {"open_mpi_on_the_node_of_mpirun", "SLURM_JOB_ID=7\nPMIX_NAMESPACE=prte-n1-40@1",
     "pmix prte-n1-40@1"},
    {"open_mpi_on_another_node", "SLURM_JOB_ID=7\nSLURM_STEP_ID=0\nPMIX_NAMESPACE=prte-n1-40@1",
     "pmix prte-n1-40@1"},
    {"torchrun_without_an_id", "TORCHELASTIC_RUN_ID=none", ""},
    {"torchrun", "TORCHELASTIC_RUN_ID=x7", "torchelastic x7"},
    {"horovodrun", "HOROVOD_GLOO_RENDEZVOUS_ADDR=10.0.0.1\nHOROVOD_GLOO_RENDEZVOUS_PORT=39",
     "rendezvous 10.0.0.1:39"},
    {"jax", "JAX_COORDINATOR_ADDRESS=node-7:1234", "rendezvous node-7:1234"},
    {"jax_on_loopback", "JAX_COORDINATOR_ADDRESS=localhost:1234",
     "rendezvous localhost:1234 on node-1", true},
    {"paddle", "PADDLE_MASTER=10.0.0.1:8090", "rendezvous 10.0.0.1:8090"},
    {"flux", "FLUX_JOB_ID=f2Ad", "flux f2Ad"},
    {"pals", "PALS_APID=ab-12", "pals ab-12"},
};

INSTANTIATE_TEST_SUITE_P(All, BestMarkTest, testing::ValuesIn(kMarks),
                         [](const auto& test) { return test.param.name; });

TEST(JobMarksTest, ReadsHowManyRanksTheHostHas) {
  EXPECT_EQ(LocalWorldSize(absl::string_view("LOCAL_WORLD_SIZE=8\0", 19)), 8);
  EXPECT_EQ(LocalWorldSize(absl::string_view("PALS_LOCAL_SIZE=12\0", 19)), 12);
  EXPECT_EQ(LocalWorldSize(absl::string_view("MV2_COMM_WORLD_LOCAL_SIZE=4\0", 28)), 4);
  EXPECT_EQ(LocalWorldSize(absl::string_view("=4\0RANK=1\0", 10)), 0);
}

TEST(JobMarksTest, NamesLibrariesAndScripts) {
  EXPECT_EQ(LibraryOf("/usr/lib/libnccl.so.2.27.3"), "nccl");
  EXPECT_EQ(LibraryOf("/usr/lib/libnccl-net.so"), "") << "a plugin";
  EXPECT_EQ(LibraryOf("/usr/lib/libc.so.6"), "");
  EXPECT_EQ(ScriptOf(std::string("python3\0-u\0/x/train.py\0--a", 26)), "train.py");
  EXPECT_EQ(ScriptOf(std::string("python3\0-m\0pkg.train", 20)), "pkg.train");
  EXPECT_EQ(ScriptOf("/x/solver"), "solver");
  EXPECT_EQ(ScriptOf(""), "");
}

}  // namespace
}  // namespace rollcall
