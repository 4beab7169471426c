// SPDX-License-Identifier: Apache-2.0
// Looks at real folders: good, missing, of others, and links.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "cli/doctor/probes.h"
#include "temporary_tree.h"

namespace rollcall::doctor {
namespace {

class ProbeFolderTest : public testing::Test {
 protected:
  FolderFacts Probe(const std::string& name) const {
    return ProbeFolder({{"ROLLCALL_DIR", tree_.root() + "/" + name}});
  }

  const TemporaryTree tree_;
};

TEST_F(ProbeFolderTest, AFolderOfThisUserIsUsableAndHasRoom) {
  tree_.Write("segments/7-8.seg", std::string(10000, 'x'));
  const FolderFacts facts = Probe("segments");
  EXPECT_EQ(facts.state, FolderState::kUsable);
  EXPECT_TRUE(facts.is_chosen);
  EXPECT_EQ(facts.owner, geteuid());
  EXPECT_TRUE(facts.room.unlimited || facts.room.free_bytes > 0);
  EXPECT_GE(facts.room.held_bytes, 10000u);
}

TEST_F(ProbeFolderTest, TheLookLeavesNothingThere) {
  tree_.Write("segments/a", "");
  Probe("segments");
  Probe("not-yet");
  int count = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(tree_.root())) {
    static_cast<void>(entry);
    ++count;
  }
  EXPECT_EQ(count, 2);  // the folder and its file
}

TEST_F(ProbeFolderTest, AMissingFolderCanBeMadeInAParentThatIsThere) {
  EXPECT_EQ(Probe("not-yet").state, FolderState::kUsable);
  EXPECT_EQ(Probe("not/yet").state, FolderState::kNotMade);
}

TEST_F(ProbeFolderTest, ALinkAndAFileAreNotFolders) {
  tree_.Write("real/x", "");
  std::filesystem::create_symlink(tree_.root() + "/real", tree_.root() + "/link");
  EXPECT_EQ(Probe("link").state, FolderState::kNoFolder);
  EXPECT_EQ(Probe("real/x").state, FolderState::kNoFolder);
  EXPECT_EQ(Probe("real/x/y").state, FolderState::kNotMade);
}

TEST_F(ProbeFolderTest, AFolderOfAnotherUserIsNotUsed) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root, to make a folder of another user";
  tree_.Write("others/x", "");
  ASSERT_EQ(chown((tree_.root() + "/others").c_str(), 7, 7), 0);
  const FolderFacts facts = Probe("others");
  EXPECT_EQ(facts.state, FolderState::kOtherUser);
  EXPECT_EQ(facts.owner, 7u);
}

TEST_F(ProbeFolderTest, WithoutTheVariableItIsTheUsersInSharedMemory) {
  const FolderFacts facts = ProbeFolder({});
  EXPECT_EQ(facts.path, "/dev/shm/rollcall-" + std::to_string(geteuid()));
  EXPECT_FALSE(facts.is_chosen);
}

TEST(ProbeSharedMemoryTest, AFolderThatIsMissingIsNotSharedMemory) {
  EXPECT_FALSE(ProbeSharedMemory("/no/such/folder").exists);
  EXPECT_TRUE(ProbeSharedMemory("/").exists);
}

}  // namespace
}  // namespace rollcall::doctor
