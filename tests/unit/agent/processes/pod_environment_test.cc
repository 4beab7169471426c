// SPDX-License-Identifier: Apache-2.0
#include "agent/processes/pod_environment.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "absl/strings/str_replace.h"
#include "temporary_tree.h"

namespace rollcall {
namespace {

// A block with '|' in the place of its zeros.
std::string Block(const std::string& text) {
  return absl::StrReplaceAll(text, {{"|", std::string(1, '\0')}});
}

TEST(AddPodVariablesTest, AddsWhatTheProcessLacks) {
  EXPECT_EQ(AddPodVariables(Block("HOME=/root|"), "ROLLCALL_JOB=train\nPOD_NAME=a-0\n"),
            Block("HOME=/root|ROLLCALL_JOB=train|POD_NAME=a-0|"));
  EXPECT_EQ(AddPodVariables("", "ROLLCALL_JOB=train"), Block("ROLLCALL_JOB=train|"));
  EXPECT_EQ(AddPodVariables("HOME=/root", "ROLLCALL_JOB=train"),
            Block("HOME=/root|ROLLCALL_JOB=train|"));
}

TEST(AddPodVariablesTest, TheProcessesOwnVariablesCount) {
  const std::string own = Block("ROLLCALL_JOB=mine|");
  EXPECT_EQ(AddPodVariables(own, "ROLLCALL_JOB=train\n"), own);
}

TEST(AddPodVariablesTest, NothingElseComesFromAStrangersFile) {
  const std::string own = Block("HOME=/root|");
  for (const std::string& content :
       {std::string("RANK=0\n"), std::string("LD_PRELOAD=/x\n"), std::string("ROLLCALL_JOB\n"),
        std::string("=x\n\n\n"), std::string("ROLLCALL_JOB=a\0RANK=0\n", 22),
        std::string("ROLLCALL_JOBS=a")}) {
    EXPECT_EQ(AddPodVariables(own, content), own) << content;
  }
}

class WithPodVariablesTest : public testing::Test {
 protected:
  std::string Read(const std::string& own) { return WithPodVariables(own, tree_.root(), 20); }
  std::string path() const { return tree_.root() + "/20/root/rollcall/lib/environment"; }

  TemporaryTree tree_;
};

TEST_F(WithPodVariablesTest, ReadsTheFileInTheProcessesOwnRoot) {
  tree_.Write("20/root/rollcall/lib/environment", "ROLLCALL_JOB=train\n");
  EXPECT_EQ(Read(""), Block("ROLLCALL_JOB=train|"));
  EXPECT_EQ(WithPodVariables("", tree_.root(), 21), "");
}

TEST_F(WithPodVariablesTest, AProcessWithTheContainersEnvironmentKeepsIt) {
  tree_.Write("20/root/rollcall/lib/environment", "ROLLCALL_JOB=train\n");
  const std::string own = Block("ROLLCALL_PRELOAD=/rollcall/lib/librollcall.so|");
  EXPECT_EQ(Read(own), own);
}

TEST_F(WithPodVariablesTest, APipeInItsPlaceBlocksNoReader) {
  tree_.Write("20/root/rollcall/lib/other", "");
  ASSERT_EQ(mkfifo(path().c_str(), 0600), 0);
  EXPECT_EQ(Read(""), "");
}

TEST_F(WithPodVariablesTest, ALinkInItsPlaceIsNotFollowed) {
  tree_.Write("20/root/rollcall/lib/other", "ROLLCALL_JOB=train\n");
  ASSERT_EQ(symlink("other", path().c_str()), 0);
  EXPECT_EQ(Read(""), "");
}

TEST_F(WithPodVariablesTest, ALinkToAnotherRootLeadsNowhere) {
  tree_.Write("agents/lib/environment", "ROLLCALL_JOB=secret\n");
  tree_.Link("20/root/rollcall", tree_.root() + "/agents");
  EXPECT_EQ(Read(""), "");
}

}  // namespace
}  // namespace rollcall
