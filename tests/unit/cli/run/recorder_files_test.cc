// SPDX-License-Identifier: Apache-2.0
// The names of pipes and dumps by which Flight Recorders are asked.
#include "cli/run/recorder_files.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <string>

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

TEST(RecorderVariablesTest, NamePipesAndDumpsWhereTheUserHasNamedNone) {
  EXPECT_EQ(Added({}), (Variables{{"TORCH_NCCL_DEBUG_INFO_PIPE_FILE", "/tmp/run-"},
                                  {"TORCH_FR_DUMP_TEMP_FILE", "/tmp/run-"},
                                  {"TORCH_NCCL_DEBUG_INFO_TEMP_FILE", "/tmp/run-"}}));
}

TEST(RecorderVariablesTest, LeaveTheUsersOwnNames) {
  EXPECT_EQ(Added({{"TORCH_NCCL_DEBUG_INFO_PIPE_FILE", "/x/pipe"}})
                .count("TORCH_NCCL_DEBUG_INFO_PIPE_FILE"),
            0u);
  for (const char* name : {"TORCH_FR_DUMP_TEMP_FILE", "TORCH_NCCL_DEBUG_INFO_TEMP_FILE"}) {
    EXPECT_EQ(Added({{name, "/x/trace_"}}),
              (Variables{{"TORCH_NCCL_DEBUG_INFO_PIPE_FILE", "/tmp/run-"}}));
  }
}

TEST(RecorderVariablesTest, AreNoneWithoutAFolderForThem) { EXPECT_TRUE(Added({}, "").empty()); }

TEST(RecorderFilesTest, ArePrefixesWithTheRank) {
  const RecorderFiles files = FindRecorderFiles(Environ(Added({})), 3);
  EXPECT_EQ(files.pipe, "/tmp/run-3.pipe");
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

TEST(RecorderFilesTest, PipesOfARunAreRemovedAndDumpsStay) {
  const std::string prefix = MakeRecorderPrefix();
  ASSERT_NE(prefix, "");
  ASSERT_EQ(mkfifo((prefix + "0.pipe").c_str(), 0600), 0);
  EXPECT_EQ(RemoveRecorderPipes(prefix), "");
  EXPECT_FALSE(std::filesystem::exists(prefix + "0.pipe"));
  std::ofstream(prefix + "0") << "dump";
  EXPECT_EQ(RemoveRecorderPipes(prefix), prefix + "0");
  EXPECT_TRUE(std::filesystem::remove(prefix + "0"));
}

}  // namespace
}  // namespace rollcall
