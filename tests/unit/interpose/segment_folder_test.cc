// SPDX-License-Identifier: Apache-2.0
#include "interpose/segment_folder.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string>

#include "tests/unit/support/temporary_tree.h"

namespace rollcall {
namespace {

class SegmentFolderTest : public testing::Test {
 protected:
  struct Found {
    SegmentFolderChoice choice;
    std::string path;
  };

  Found Find() const {
    char path[256];
    const SegmentFolderChoice choice =
        SegmentFolderSearch::Find(path, sizeof(path), tree_.root().c_str());
    return {choice, path};
  }

  // A link is as good as a folder of another user, and needs no root.
  void TakeUsualName() { ASSERT_EQ(symlink("/", usual_.c_str()), 0); }

  TemporaryTree tree_;
  const std::string usual_ = tree_.root() + "/rollcall-" + std::to_string(geteuid());
};

TEST_F(SegmentFolderTest, IsTheUsualOneIfItDoesNotExist) {
  EXPECT_EQ(Find().choice, SegmentFolderChoice::kUsual);
  EXPECT_EQ(Find().path, usual_);
  ASSERT_EQ(mkdir(usual_.c_str(), 0700), 0);
  EXPECT_EQ(Find().path, usual_);
}

TEST_F(SegmentFolderTest, TakesARandomNameIfTheUsualOneIsTaken) {
  TakeUsualName();
  const Found first = Find();
  EXPECT_EQ(first.choice, SegmentFolderChoice::kInvented);
  EXPECT_EQ(first.path.substr(0, usual_.size() + 1), usual_ + "-");
  EXPECT_EQ(first.path.size(), usual_.size() + 9);
  EXPECT_NE(Find().path, first.path);
}

TEST_F(SegmentFolderTest, AllProcessesFindTheSameOneAgain) {
  TakeUsualName();
  for (const char* end : {"-0badcafe", "-00000001", "-ffffffff"}) {
    ASSERT_EQ(mkdir((usual_ + end).c_str(), 0700), 0);
  }
  EXPECT_EQ(Find().choice, SegmentFolderChoice::kFound);
  EXPECT_EQ(Find().path, usual_ + "-00000001");
}

TEST_F(SegmentFolderTest, IgnoresFoldersOfOtherUsersAndFiles) {
  TakeUsualName();
  tree_.Write("rollcall-" + std::to_string(geteuid()) + "-00000001", "");
  ASSERT_EQ(mkdir((usual_ + "7-00000002").c_str(), 0700), 0);
  ASSERT_EQ(mkdir((usual_ + "-short").c_str(), 0700), 0);
  ASSERT_EQ(mkdir((usual_ + "-00000003").c_str(), 0700), 0);
  if (chown((usual_ + "-00000003").c_str(), 65534, 65534) != 0)
    rmdir((usual_ + "-00000003").c_str());
  EXPECT_EQ(Find().choice, SegmentFolderChoice::kInvented);
}

// Somebody may have filled the parent.
TEST_F(SegmentFolderTest, IsFoundAmongThousands) {
  TakeUsualName();
  for (int i = 0; i < 3000; ++i) tree_.Write("f" + std::to_string(i), "");
  ASSERT_EQ(mkdir((usual_ + "-0badcafe").c_str(), 0700), 0);
  EXPECT_EQ(Find().path, usual_ + "-0badcafe");
}

}  // namespace
}  // namespace rollcall
