// SPDX-License-Identifier: Apache-2.0
// Runs real programs for a moment.
#include "cli/doctor/short_command.h"

#include <gtest/gtest.h>

namespace rollcall::doctor {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

ShortResult Shell(const std::string& script, milliseconds patience = seconds(30)) {
  return RunShortly({"/bin/sh", "-c", script}, {"WORD=of the environment"}, patience);
}

TEST(ShortCommandTest, ReadsBothOutputsAndTheEnvironment) {
  const ShortResult result = Shell("echo out $WORD; echo err >&2");
  EXPECT_EQ(result.attempt, Attempt::kWorked);
  EXPECT_EQ(result.out, "out of the environment\n");
  EXPECT_EQ(result.err, "err\n");
}

TEST(ShortCommandTest, AnotherExitCodeAndASignalAreFailures) {
  EXPECT_EQ(Shell("exit 3").attempt, Attempt::kFailed);
  EXPECT_EQ(Shell("kill -SEGV $$").attempt, Attempt::kFailed);
}

TEST(ShortCommandTest, AProgramThatDoesNotExistIsNotRun) {
  EXPECT_EQ(RunShortly({"/no/such/program"}, {}, seconds(30)).attempt, Attempt::kNotMade);
}

TEST(ShortCommandTest, AProgramThatDoesNotEndIsKilled) {
  const auto begun = std::chrono::steady_clock::now();
  EXPECT_EQ(Shell("echo begun; exec sleep 1000", milliseconds(200)).attempt, Attempt::kNoAnswer);
  EXPECT_LT(std::chrono::steady_clock::now() - begun, seconds(60));
}

TEST(ShortCommandTest, MuchOutputIsCutAndDoesNotStopTheProgram) {
  const ShortResult result = Shell("head -c 1000000 /dev/zero");
  EXPECT_EQ(result.attempt, Attempt::kWorked);
  EXPECT_EQ(result.out.size(), size_t{64} << 10);
}

}  // namespace
}  // namespace rollcall::doctor
