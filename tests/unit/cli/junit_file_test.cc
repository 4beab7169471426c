// SPDX-License-Identifier: Apache-2.0
#include "cli/junit_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <sstream>
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

std::string Read(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

TEST(JUnitFileTest, AHangIsAFailureWithTheVerdict) {
  const std::string text = JUnitText(Hung());
  EXPECT_THAT(text, HasSubstr("failures=\"1\" errors=\"0\""));
  EXPECT_THAT(text, HasSubstr("name=\"train-7\" time=\"12.500\""));
  EXPECT_THAT(text, HasSubstr("<failure type=\"missing_rank\" message=\"rank 3 is in `validate` and "
                              "has not called AllReduce #8 on communicator &quot;dp&quot;\">"));
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

TEST(JUnitFileTest, WritesTheFileAnewAndLeavesNoOther) {
  const std::string folder = ::testing::TempDir() + "/junit_file_test";
  mkdir(folder.c_str(), 0700);
  const std::string path = folder + "/junit.xml";
  ASSERT_TRUE(WriteJUnitFile(path, JUnitTextOfUnended("train-7")).ok());
  EXPECT_THAT(Read(path), HasSubstr("rollcall run did not come to its end"));
  ASSERT_TRUE(WriteJUnitFile(path, JUnitText(Hung())).ok());
  EXPECT_EQ(Read(path), JUnitText(Hung()));
  EXPECT_EQ(remove(path.c_str()), 0);
  EXPECT_EQ(remove(folder.c_str()), 0) << "another file is in it";
}

TEST(JUnitFileTest, AnErrorSaysWhichFileAndWhy) {
  const absl::Status status = WriteJUnitFile("/proc/no/junit.xml", "");
  EXPECT_EQ(status.message(), "--junit: cannot write /proc/no/junit.xml: No such file or directory");
}

TEST(JUnitFileTest, WritesThroughALinkAndIntoAFifoAndReplacesNeither) {
  const std::string folder = ::testing::TempDir() + "/junit_links";
  mkdir(folder.c_str(), 0700);
  const std::string link = folder + "/link", target = folder + "/target", fifo = folder + "/fifo";
  ASSERT_EQ(symlink("target", link.c_str()), 0);
  std::ofstream(target) << "old";
  ASSERT_TRUE(WriteJUnitFile(link, "new").ok());
  std::string text;
  std::getline(std::ifstream(target), text);
  EXPECT_EQ(text, "new");
  struct stat about;
  ASSERT_EQ(lstat(link.c_str(), &about), 0);
  EXPECT_TRUE(S_ISLNK(about.st_mode));
  ASSERT_EQ(mkfifo(fifo.c_str(), 0600), 0);
  EXPECT_FALSE(WriteJUnitFile(fifo, "text").ok()) << "nobody reads, and nobody waits";
  ASSERT_EQ(lstat(fifo.c_str(), &about), 0);
  EXPECT_TRUE(S_ISFIFO(about.st_mode));
  for (const std::string& path : {link, target, fifo}) unlink(path.c_str());
  rmdir(folder.c_str());
}

}  // namespace
}  // namespace rollcall
