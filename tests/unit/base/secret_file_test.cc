// SPDX-License-Identifier: Apache-2.0
#include "base/secret_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "temporary_tree.h"

namespace rollcall {
namespace {

using testing::HasSubstr;

class SecretFileTest : public testing::Test {
 protected:
  void SetUp() override { tree_.Write("a.key", "secret"); }

  // The error for a file with these permissions; empty if it may be used.
  std::string Error(mode_t mode) {
    EXPECT_EQ(chmod(path_.c_str(), mode), 0);
    WatchedFile file(path_);
    EXPECT_TRUE(file.ReadIfChanged().ok());
    return std::string(CheckSecretFile(file, "key").message());
  }
  // False if only root can give files away.
  bool GiveAway() const { return chown(path_.c_str(), 65534, 65534) == 0; }

  const TemporaryTree tree_;
  const std::string path_ = tree_.root() + "/a.key";
};

TEST_F(SecretFileTest, TheOwnerMayReadIt) {
  EXPECT_EQ(Error(0600), "");
  EXPECT_EQ(Error(0400), "");
}

TEST_F(SecretFileTest, NoOtherUserMayReadOrWriteIt) {
  EXPECT_THAT(Error(0644),
              HasSubstr("every user of this host can read the key in " + path_ + "; type: chmod "));
  for (const mode_t mode : {0604, 0602, 0666, 0620, 0660}) {
    EXPECT_NE(Error(mode), "") << std::oct << mode;
  }
}

TEST_F(SecretFileTest, AGroupMayReadAFileOfRoot) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root";
  EXPECT_EQ(Error(0640), "");
  EXPECT_EQ(Error(0440), "");
  EXPECT_THAT(Error(0644), HasSubstr("chmod go-rwx " + path_));
}

TEST_F(SecretFileTest, NoGroupMayReadAFileOfAnotherUser) {
  ASSERT_TRUE(geteuid() != 0 || GiveAway());
  EXPECT_EQ(Error(0600), "");
  EXPECT_THAT(Error(0640), HasSubstr("a group of users can read the key in " + path_ +
                                     "; type: chmod g-rwx " + path_));
}

TEST_F(SecretFileTest, AVolumeOfKubernetesIsForThePodAlone) {
  tree_.Write("..data/b.key", "secret");
  tree_.Link("b.key", "..data/b.key");
  const std::string path = tree_.root() + "/b.key";
  ASSERT_EQ(chmod(path.c_str(), 0644), 0);
  WatchedFile file(path);
  ASSERT_TRUE(file.ReadIfChanged().ok());
  EXPECT_EQ(CheckSecretFile(file, "key"), absl::OkStatus());
}

}  // namespace
}  // namespace rollcall
