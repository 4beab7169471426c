// SPDX-License-Identifier: Apache-2.0
// What the environment sets for CUDA's core dumps, and where none may be asked for.
#include "cli/gpu_dump/dump_variables.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <string>

namespace rollcall {
namespace {

using Settings = std::map<std::string, std::string>;

constexpr char kNewDriver[] =
    "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.65.06  Release Build\n"
    "GCC version:  gcc version 12.2.0 (Debian 12.2.0-14)\n";

std::string WhyNot(const Settings& own, const std::string& driver = kNewDriver,
                   bool has_mps_pipes = false) {
  return WhyNoGpuDumps(
      [&own](const char* name) {
        const auto at = own.find(name);
        return at == own.end() ? nullptr : at->second.c_str();
      },
      driver, has_mps_pipes);
}

std::string BlockOf(const Settings& variables) {
  std::string block;
  for (const auto& [name, value] : variables) block += name + "=" + value + '\0';
  return block;
}

TEST(GpuDumpVariablesTest, ADumpHasNoMemoryAndEndsNoProcess) {
  const Settings set = GpuDumpVariables("/tmp/x");
  const std::string flags = set.at("CUDA_COREDUMP_GENERATION_FLAGS");
  for (const char* flag :
       {"skip_global_memory", "skip_shared_memory", "skip_local_memory", "skip_abort"}) {
    EXPECT_NE(flags.find(flag), std::string::npos) << flag;
  }
  EXPECT_EQ(set.at("CUDA_COREDUMP_PIPE"), "/tmp/x/pipe.%p");
  EXPECT_EQ(set.count("CUDA_ENABLE_COREDUMP_ON_EXCEPTION"), 0u) << "dumps only when asked";
  EXPECT_EQ(GpuDumpPipe("/tmp/x", 7), "/tmp/x/pipe.7");
  EXPECT_EQ(GpuDumpFile("/tmp/x", 7), "/tmp/x/core.7");
}

TEST(GpuDumpVariablesTest, WithoutAFolderNothingIsSet) {
  EXPECT_TRUE(GpuDumpVariables("").empty());
}

TEST(GpuDumpVariablesTest, AProcessWithOtherValuesIsKnown) {
  Settings set = GpuDumpVariables("/tmp/x");
  EXPECT_TRUE(HasGpuDumpVariables(BlockOf(set), "/tmp/x"));
  EXPECT_FALSE(HasGpuDumpVariables(BlockOf(set), "/tmp/y"));
  set["CUDA_COREDUMP_GENERATION_FLAGS"] = "skip_global_memory";
  EXPECT_FALSE(HasGpuDumpVariables(BlockOf(set), "/tmp/x")) << "it would end the process";
  EXPECT_FALSE(HasGpuDumpVariables("", "/tmp/x"));
}

TEST(WhyNoGpuDumpsTest, TheUsersOwnSettingsStay) {
  EXPECT_EQ(WhyNot({}), "");
  for (const char* name : {"CUDA_COREDUMP_PIPE", "CUDA_ENABLE_COREDUMP_ON_EXCEPTION",
                           "CUDA_ENABLE_CPU_COREDUMP_ON_EXCEPTION"}) {
    EXPECT_NE(WhyNot({{name, "0"}}).find(name), std::string::npos) << name;
  }
}

TEST(WhyNoGpuDumpsTest, ADumpMustNotEndOtherProcesses) {
  EXPECT_NE(WhyNot({{"CUDA_MPS_PIPE_DIRECTORY", "/x"}}), "");
  EXPECT_NE(WhyNot({}, kNewDriver, true), "");
}

TEST(WhyNoGpuDumpsTest, AnOldDriverEndsTheProcess) {
  const std::string old =
      "NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54.15  Tue Mar  5 22:23:56 UTC 2024\n";
  EXPECT_NE(WhyNot({}, old).find("550"), std::string::npos);
  EXPECT_EQ(WhyNot({}, ""), "") << "without a driver nobody makes a pipe";
  EXPECT_EQ(WhyNot({}, "some other text 1.2 1234.5"), "");
}

TEST(GpuDumpFolderTest, IsPrivateAndGoesWithItsPipes) {
  const auto folder = MakeGpuDumpFolder();
  ASSERT_TRUE(folder.ok()) << folder.status();
  struct stat about;
  ASSERT_EQ(stat(folder->c_str(), &about), 0);
  EXPECT_EQ(about.st_mode & 07777, 0700u);
  ASSERT_EQ(mkfifo(GpuDumpPipe(*folder, 7).c_str(), 0600), 0);
  EXPECT_EQ(RemoveGpuDumpFolder(*folder), "");
  EXPECT_FALSE(std::filesystem::exists(*folder));
}

TEST(GpuDumpFolderTest, ADumpInItStays) {
  const auto folder = MakeGpuDumpFolder();
  ASSERT_TRUE(folder.ok()) << folder.status();
  std::ofstream(GpuDumpFile(*folder, 7)) << "dump";
  EXPECT_EQ(RemoveGpuDumpFolder(*folder), GpuDumpFile(*folder, 7));
  EXPECT_TRUE(std::filesystem::exists(GpuDumpFile(*folder, 7)));
  std::filesystem::remove_all(*folder);
}

}  // namespace
}  // namespace rollcall
