// SPDX-License-Identifier: Apache-2.0
// The debugger as a child with limits. A script stands in for it.
#include "cli/gpu_dump/cuda_gdb.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <string>

#include "cli/gpu_dump/cuda_gdb_text.h"

namespace rollcall {
namespace {

constexpr int64_t kPatienceNs = 60'000'000'000;  // for a machine that is busy

class CudaGdbTest : public testing::Test {
 protected:
  CudaGdbTest() {
    char path[] = "/tmp/rollcall-test-XXXXXX";
    folder_ = mkdtemp(path);
  }
  ~CudaGdbTest() override { std::filesystem::remove_all(folder_); }

  std::string Script(const std::string& lines) {
    const std::string path = folder_ + "/cuda-gdb";
    std::ofstream(path) << "#!/bin/sh\n" << lines;
    chmod(path.c_str(), 0755);
    return path;
  }

  GdbOutput Output(const std::string& lines, GdbLimits limits = {kPatienceNs}) {
    return RunCudaGdb(Script(lines), "/tmp/core.7", limits, is_stopping_);
  }

  std::string folder_;
  std::atomic<bool> is_stopping_{false};
};

TEST_F(CudaGdbTest, IsFoundOnThePath) {
  EXPECT_EQ(FindCudaGdb(("/nowhere:" + folder_).c_str()).find(folder_), std::string::npos);
  const std::string script = Script("");
  EXPECT_EQ(FindCudaGdb(("/nowhere::relative:" + folder_).c_str()), script);
  chmod(script.c_str(), 0644);
  EXPECT_NE(FindCudaGdb(folder_.c_str()), script) << "nobody may run it";
}

TEST_F(CudaGdbTest, GetsTheDumpAndReadsNoScriptOfTheUser) {
  const GdbOutput output = Output("printf '%s\\n' \"$@\"; echo failed >&2\n");
  EXPECT_EQ(output.problem, "");
  EXPECT_NE(output.text.find("target cudacore /tmp/core.7\n"), std::string::npos) << output.text;
  EXPECT_NE(output.text.find("-nx\n"), std::string::npos);
  EXPECT_NE(output.text.find("failed\n"), std::string::npos) << "its errors, too";
}

TEST_F(CudaGdbTest, HasLimitsAndNoSecretsOfTheEnvironment) {
  setenv("ROLLCALL_TEST_SECRET", "hunter2", 1);
  const GdbOutput output = Output("ulimit -t; ulimit -v; ulimit -c; ulimit -f; env\n",
                                  {kPatienceNs, 17, int64_t{4} << 20});
  unsetenv("ROLLCALL_TEST_SECRET");
  EXPECT_EQ(output.text.find("17\n4194304\n0\n1048576\n"), 0u) << output.text;
  EXPECT_EQ(output.text.find("hunter2"), std::string::npos);
}

TEST_F(CudaGdbTest, OneThatDoesNotEndIsEnded) {
  const GdbOutput output = Output("echo begun; exec sleep 600\n", {1'500'000'000});
  EXPECT_NE(output.problem.find("did not end"), std::string::npos);
}

TEST_F(CudaGdbTest, ItIsNotAwaitedWhenTheRunEnds) {
  is_stopping_ = true;
  EXPECT_EQ(Output("exec sleep 600\n").problem, "the run ended first");
}

TEST_F(CudaGdbTest, EndlessOutputIsCut) {
  const GdbOutput output = Output("exec yes 'Kernel 0'\n");
  EXPECT_NE(output.problem.find("more than"), std::string::npos);
  EXPECT_LE(output.text.size(), kMostGdbText + 16384);
}

TEST_F(CudaGdbTest, ReportsOneThatCannotStart) {
  const GdbOutput output =
      RunCudaGdb(folder_ + "/none", "/tmp/core.7", {kPatienceNs}, is_stopping_);
  EXPECT_NE(output.text.find("none"), std::string::npos) << "the shell says it: " << output.text;
}

}  // namespace
}  // namespace rollcall
