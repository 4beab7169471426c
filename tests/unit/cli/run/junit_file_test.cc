// SPDX-License-Identifier: Apache-2.0
#include "cli/run/junit_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace rollcall {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

JUnitRun Hung() {
  JUnitRun run;
  run.job = "train-7";
  run.seconds = 12.5;
  run.exit_code = 75;
  run.cause = "missing_rank";
  run.summary = "rank 3 is in `validate` and has not called AllReduce #8 on communicator \"dp\"";
  run.verdicts = "rollcall: rank 3 <is> late\nrollcall:   certainty: certain\n";
  return run;
}

TEST(JUnitFileTest, AHangIsAFailureWithTheVerdict) {
  const std::string text = JUnitText(Hung());
  EXPECT_THAT(text, HasSubstr("failures=\"1\" errors=\"0\""));
  EXPECT_THAT(text, HasSubstr("name=\"train-7\" time=\"12.500\""));
  EXPECT_THAT(text, HasSubstr("<failure type=\"missing_rank\" message=\"rank 3 is in `validate` "
                              "and has not called AllReduce #8 on communicator &quot;dp&quot;\">"));
  EXPECT_THAT(text, HasSubstr("rollcall: rank 3 &lt;is&gt; late\nrollcall:   certainty"));
}

TEST(JUnitFileTest, AnExitCodeWithoutAHangIsAnError) {
  JUnitRun run;
  run.job = "train-7";
  run.exit_code = 3;
  const std::string text = JUnitText(run);
  EXPECT_THAT(text, HasSubstr("failures=\"0\" errors=\"1\""));
  EXPECT_THAT(text, HasSubstr("the job ended with exit code 3; Rollcall saw no hang"));
}

TEST(JUnitFileTest, TheExitCodesOfShellsAreSaidInWords) {
  const struct {
    int exit_code;
    const char* words;
  } kCases[] = {
      {126, "\"command not executable, exit code 126; Rollcall saw no hang\""},
      {127, "\"command not found, exit code 127; Rollcall saw no hang\""},
      {139, "\"killed by signal 11 (SIGSEGV), exit code 139; Rollcall saw no hang\""},
      {143, "\"killed by signal 15 (SIGTERM), exit code 143; Rollcall saw no hang\""},
      {163, "\"killed by signal 35, exit code 163; Rollcall saw no hang\""},
      {128, "\"the job ended with exit code 128; Rollcall saw no hang\""},
      {255, "\"the job ended with exit code 255; Rollcall saw no hang\""},
  };
  for (const auto& one : kCases) {
    JUnitRun run;
    run.exit_code = one.exit_code;
    EXPECT_THAT(JUnitText(run), HasSubstr(one.words));
  }
}

TEST(JUnitFileTest, ARunThatRecoveredHasPassedAndKeepsTheVerdict) {
  JUnitRun run = Hung();
  run.exit_code = 0;
  const std::string text = JUnitText(run);
  EXPECT_THAT(text, HasSubstr("failures=\"0\" errors=\"0\""));
  EXPECT_THAT(text, HasSubstr("<system-out>rollcall: rank 3 &lt;is&gt; late\n"));
}

TEST(JUnitFileTest, LeavesNoSignThatXmlDoesNotAllow) {
  JUnitRun run = Hung();
  run.job = "a\x1b[31m\x01 job";
  run.verdicts = "rollcall: \x02\x7f\xff\n";
  const std::string text = JUnitText(run);
  for (const char c : text) {
    EXPECT_TRUE(c == '\n' || static_cast<unsigned char>(c) >= 0x20) << static_cast<int>(c);
  }
  EXPECT_THAT(text, Not(HasSubstr("\xff")));
}

}  // namespace
}  // namespace rollcall
