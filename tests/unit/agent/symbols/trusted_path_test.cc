// SPDX-License-Identifier: Apache-2.0
#include "agent/symbols/trusted_path.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string>

#include "temporary_tree.h"

namespace rollcall {
namespace {

class TrustedPathTest : public ::testing::Test {
 protected:
  TrustedPathTest() { tree_.Write("file", "text"); }

  TemporaryTree tree_;  // below /tmp, which is sticky
  const std::string folder_ = tree_.root();
};

TEST_F(TrustedPathTest, TrustsAFileInAFolderOfTheSameUser) {
  EXPECT_TRUE(IsTrustedPath(folder_ + "/file"));
  EXPECT_TRUE(IsTrustedPath("/usr/bin/env"));
}

TEST_F(TrustedPathTest, TrustsNamesThatNoOtherUserCanAdd) {
  EXPECT_TRUE(IsTrustedPath(folder_ + "/no/such/file"));
  EXPECT_FALSE(IsTrustedPath("/tmp/no-such-folder-of-the-test/file"));
}

TEST_F(TrustedPathTest, RefusesAFolderThatOthersCanWrite) {
  chmod(folder_.c_str(), 0777);
  EXPECT_FALSE(IsTrustedPath(folder_ + "/file"));
  EXPECT_FALSE(IsTrustedPath(folder_ + "/none"));
  chmod(folder_.c_str(), 01777);
  EXPECT_TRUE(IsTrustedPath(folder_ + "/file"));
  EXPECT_FALSE(IsTrustedPath(folder_ + "/none"));
}

TEST_F(TrustedPathTest, RefusesLinksAndPipes) {
  const std::string link = folder_ + "/link";
  const std::string pipe = folder_ + "/pipe";
  ASSERT_EQ(symlink("file", link.c_str()), 0);
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_FALSE(IsTrustedPath(link));
  EXPECT_FALSE(IsTrustedPath(pipe));
  EXPECT_FALSE(IsTrustedPath(folder_ + "/file/name"));
}

TEST_F(TrustedPathTest, RefusesWhatBelongsToAnotherUser) {
  const std::string file = folder_ + "/file";
  if (chown(file.c_str(), 65534, 65534) != 0) GTEST_SKIP() << "only root can give a file away";
  EXPECT_FALSE(IsTrustedPath(file));
  EXPECT_TRUE(IsTrustedPath(folder_ + "/none"));
  ASSERT_EQ(chown(folder_.c_str(), 65534, 65534), 0);
  EXPECT_FALSE(IsTrustedPath(folder_ + "/none"));
}

TEST_F(TrustedPathTest, RefusesRelativePaths) {
  EXPECT_FALSE(IsTrustedPath(""));
  EXPECT_FALSE(IsTrustedPath("usr/bin/env"));
}

}  // namespace
}  // namespace rollcall
