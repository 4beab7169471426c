// SPDX-License-Identifier: Apache-2.0
// The names of pipes and dumps by which Flight Recorders are asked.
#include "cli/run/recorder_files.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <string>

#include "base/unique_fd.h"

namespace rollcall {
namespace {

using Variables = std::map<std::string, std::string>;

Variables Added(const Variables& own, const std::string& prefix = "/tmp/run-") {
  return RecorderVariables(
      [&own](const char* name) {
        const auto at = own.find(name);
        return at == own.end() ? nullptr : at->second.c_str();
      },
      prefix);
}

std::string Environ(const Variables& variables) {
  std::string block;
  for (const auto& [name, value] : variables) block += name + "=" + value + '\0';
  return block;
}

TEST(RecorderVariablesTest, NamePipesAndDumpsUnlessTheUserHas) {
  EXPECT_EQ(Added({}), (Variables{{"TORCH_NCCL_DEBUG_INFO_PIPE_FILE", RecorderPipes("/tmp/run-")},
                                  {"TORCH_FR_DUMP_TEMP_FILE", "/tmp/run-"},
                                  {"TORCH_NCCL_DEBUG_INFO_TEMP_FILE", "/tmp/run-"}}));
}

TEST(RecorderVariablesTest, LeaveTheUsersOwnNames) {
  EXPECT_EQ(Added({{"TORCH_NCCL_DEBUG_INFO_PIPE_FILE", "/x/pipe"}})
                .count("TORCH_NCCL_DEBUG_INFO_PIPE_FILE"),
            0u);
  for (const char* name : {"TORCH_FR_DUMP_TEMP_FILE", "TORCH_NCCL_DEBUG_INFO_TEMP_FILE"}) {
    EXPECT_EQ(Added({{name, "/x/trace_"}}),
              (Variables{{"TORCH_NCCL_DEBUG_INFO_PIPE_FILE", RecorderPipes("/tmp/run-")}}));
  }
}

TEST(RecorderVariablesTest, AreNoneWithoutAFolderForThem) { EXPECT_TRUE(Added({}, "").empty()); }

TEST(RecorderFilesTest, ArePrefixesWithTheRank) {
  const RecorderFiles files = FindRecorderFiles(Environ(Added({})), 3);
  EXPECT_EQ(files.pipe, RecorderPipes("/tmp/run-") + "3.pipe");
  EXPECT_EQ(files.dump, "/tmp/run-3");
}

TEST(RecorderFilesTest, AreThoseOfTheNewerNameIfThereAreTwo) {
  const Variables variables = {{"TORCH_NCCL_DEBUG_INFO_PIPE_FILE", "/x/pipe_"},
                               {"TORCH_FR_DUMP_TEMP_FILE", "/new/rank_"},
                               {"TORCH_NCCL_DEBUG_INFO_TEMP_FILE", "/old/rank_"}};
  EXPECT_EQ(FindRecorderFiles(Environ(variables), 0).dump, "/new/rank_0");
}

TEST(RecorderFilesTest, AreNoneWithoutOneOfTheNamesOrARank) {
  EXPECT_EQ(FindRecorderFiles(Environ({{"TORCH_NCCL_DEBUG_INFO_PIPE_FILE", "/x/pipe_"}}), 0).pipe,
            "");
  EXPECT_EQ(FindRecorderFiles(Environ(Added({})), -1).pipe, "");
  EXPECT_EQ(FindRecorderFiles("", 0).pipe, "");
}

TEST(RecorderFilesTest, PipesOfARunAreRemovedAndDumpsIfItEndedWell) {
  const std::string prefix = MakeRecorderPrefix();
  ASSERT_NE(prefix, "");
  const std::string pipe = RecorderPipes(prefix) + "0.pipe";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_EQ(RemoveRecorderFiles(prefix, false), "");
  EXPECT_FALSE(std::filesystem::exists(pipe));
  std::ofstream(prefix + "0") << "dump";
  EXPECT_EQ(RemoveRecorderFiles(prefix, false), prefix + "0");
  std::filesystem::create_directory(prefix + "_quorum_1");
  EXPECT_EQ(RemoveRecorderFiles(prefix, true), "");
  EXPECT_FALSE(std::filesystem::exists(prefix + "_quorum_1"));
  EXPECT_FALSE(std::filesystem::exists(prefix + "0"));
}

TEST(RecorderFilesTest, TheNameOfAPipeDoesNotShowThatOfTheDump) {
  const std::string prefix = MakeRecorderPrefix(), pipes = RecorderPipes(prefix);
  EXPECT_EQ(pipes, RecorderPipes(prefix));
  EXPECT_NE(pipes, RecorderPipes(MakeRecorderPrefix()));
  const size_t number = std::string("/tmp/rollcall-").size();
  EXPECT_EQ(pipes.compare(0, number, prefix, 0, number), 0);
  EXPECT_NE(pipes.substr(number, 16), prefix.substr(number, 16));
}

TEST(RecorderFilesTest, OnlyAPipeThatTheProcessHasOpenIsItsOwn) {
  const std::string pipe = RecorderPipes(MakeRecorderPrefix()) + "0.pipe";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_FALSE(HasPipeOpen("/proc", getpid(), pipe));
  const UniqueFd reader(open(pipe.c_str(), O_RDONLY | O_NONBLOCK));
  EXPECT_TRUE(HasPipeOpen("/proc", getpid(), pipe));
  // Another job of the run makes its own.
  ASSERT_EQ(unlink(pipe.c_str()), 0);
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_FALSE(HasPipeOpen("/proc", getpid(), pipe));
  EXPECT_EQ(unlink(pipe.c_str()), 0);
  EXPECT_FALSE(HasPipeOpen("/proc", getpid(), pipe));
}

TEST(MayStartElsewhereTest, KnowsLaunchersOfOtherHostsAndContainers) {
  EXPECT_FALSE(MayStartElsewhere({"run", "torchrun", "train.py", "--launcher=/bin/ssh"}));
  EXPECT_FALSE(MayStartElsewhere({"bash", "-c", "cd /data; python srun_train.py"}));
  EXPECT_FALSE(MayStartElsewhere({}));
  EXPECT_TRUE(MayStartElsewhere({"srun", "python", "train.py"}));
  EXPECT_TRUE(MayStartElsewhere({"rollcall", "run", "--", "/usr/bin/mpiexec.hydra", "-n", "8"}));
  EXPECT_TRUE(MayStartElsewhere({"env", "A=B", "apptainer", "exec", "image.sif", "python"}));
  EXPECT_TRUE(MayStartElsewhere({"bash", "-c", "cd /data;srun python train.py"}));
  EXPECT_TRUE(MayStartElsewhere({"nohup", "./with_modules.sh", "mpirun", "-n", "8", "./train"}));
  EXPECT_TRUE(MayStartElsewhere({"flux", "run", "-n", "8", "python", "train.py"}));
}

TEST(MayStartElsewhereTest, ArgumentsOfAProgramStartNothing) {
  EXPECT_FALSE(MayStartElsewhere({"python3.11", "train.py", "--model", "flux"}));
  EXPECT_FALSE(MayStartElsewhere({"./train.py", "docker"}));
  EXPECT_FALSE(MayStartElsewhere({"torchrun", "--nproc-per-node", "4", "train.py", "srun"}));
  EXPECT_FALSE(MayStartElsewhere({"env", "A=B", "nohup", "python", "-c", "print(1); ssh = 2"}));
  EXPECT_FALSE(MayStartElsewhere({"sh", "-c", "cd /data && python train.py flux"}));
  EXPECT_TRUE(MayStartElsewhere({"sh", "-c", "python prepare.py flux; srun python train.py"}));
}

TEST(MayStartElsewhereTest, AWordThatIsALaunchersNameStartsNothing) {
  EXPECT_FALSE(MayStartElsewhere({"./train", "--model", "flux", "--lr", "3"}));
  EXPECT_FALSE(MayStartElsewhere({"flux"}));
}

}  // namespace
}  // namespace rollcall
