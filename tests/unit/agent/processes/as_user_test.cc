// SPDX-License-Identifier: Apache-2.0
#include "agent/processes/as_user.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <string>

#include "base/unique_fd.h"
#include "tests/unit/support/temporary_tree.h"

namespace rollcall {
namespace {

constexpr FileUser kNobody = {65534, 65534};

class AsUserTest : public testing::Test {
 protected:
  void SetUp() override {
    if (geteuid() != 0) GTEST_SKIP() << "only root can act as others";
    ASSERT_EQ(chmod(tree_.root().c_str(), 0755), 0);
  }

  int TryToMake(const std::string& name) const {
    const UniqueFd fd(open((tree_.root() + "/" + name).c_str(), O_CREAT | O_EXCL | O_WRONLY, 0600));
    return fd.valid() ? 0 : errno;
  }

  TemporaryTree tree_;
};

TEST_F(AsUserTest, WhatTheUserMayNotDoFailsAndComesBackAtTheEnd) {
  {
    const AsUser as_nobody(kNobody);
    ASSERT_TRUE(as_nobody.acts());
    EXPECT_EQ(TryToMake("file"), EACCES);
    EXPECT_EQ(chown(tree_.root().c_str(), 65534, 65534), -1);
  }
  EXPECT_EQ(TryToMake("file"), 0);
}

TEST_F(AsUserTest, WhatIsMadeBelongsToTheUser) {
  ASSERT_EQ(chmod(tree_.root().c_str(), 0777), 0);
  {
    const AsUser as_nobody(kNobody);
    ASSERT_EQ(TryToMake("file"), 0);
  }
  struct stat about;
  ASSERT_EQ(stat((tree_.root() + "/file").c_str(), &about), 0);
  EXPECT_EQ(about.st_uid, kNobody.uid);
  EXPECT_EQ(about.st_gid, kNobody.gid);
}

class FileUserTest : public testing::Test {
 protected:
  std::optional<FileUser> Read(const std::string& uids, const std::string& gids) {
    tree_.Write("7/status", "Name:\tx\nUid:\t" + uids + "\nGid:\t" + gids + "\n");
    return ReadFileUser(tree_.root(), 7);
  }

  TemporaryTree tree_;
};

TEST_F(FileUserTest, IsTheOneUserOfTheProcess) {
  const auto user = Read("1000\t1000\t1000\t1000", "100\t100\t100\t100");
  ASSERT_TRUE(user.has_value());
  EXPECT_EQ(user->uid, 1000u);
  EXPECT_EQ(user->gid, 100u);
}

TEST_F(FileUserTest, NoUserActsForASetuidProgram) {
  EXPECT_FALSE(Read("1000\t0\t0\t0", "100\t100\t100\t100").has_value());
  EXPECT_FALSE(Read("1000\t1000\t0\t1000", "100\t100\t100\t100").has_value());
  EXPECT_FALSE(Read("1000\t1000\t1000\t1000", "100\t0\t0\t0").has_value());
  EXPECT_FALSE(Read("", "").has_value());
  EXPECT_FALSE(ReadFileUser(tree_.root(), 8).has_value());
}

}  // namespace
}  // namespace rollcall
