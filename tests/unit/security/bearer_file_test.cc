// SPDX-License-Identifier: Apache-2.0
#include "security/bearer_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "temporary_tree.h"

namespace rollcall {
namespace {

using testing::HasSubstr;

class BearerFileTest : public testing::Test {
 protected:
  std::string Error() { return std::string(file_.Read().status().message()); }

  // As its owner would: no other user may read the token.
  const mode_t umask_ = umask(077);
  ~BearerFileTest() override { umask(umask_); }

  const TemporaryTree tree_;
  BearerFile file_{tree_.root() + "/token"};
};

TEST_F(BearerFileTest, ReturnsTheTokenWithoutTheLineEnd) {
  tree_.Write("token", "  rollcall_abc\r\n");
  EXPECT_EQ(file_.Read().value(), "rollcall_abc");
  EXPECT_EQ(file_.Read().value(), "rollcall_abc");
  tree_.Write("token", "rollcall_def");
  EXPECT_EQ(file_.Read().value(), "rollcall_def");
}

TEST_F(BearerFileTest, RefusesATokenThatOthersMayRead) {
  tree_.Write("token", "one");
  const std::string path = tree_.root() + "/token";
  ASSERT_EQ(chmod(path.c_str(), 0604), 0);
  EXPECT_THAT(Error(), HasSubstr("chmod go-rwx " + path));
  ASSERT_EQ(chmod(path.c_str(), 0600), 0);
  EXPECT_EQ(file_.Read().value(), "one");
}

TEST_F(BearerFileTest, KeepsTheLastTokenWhileTheFileIsUnusable) {
  tree_.Write("token", "one");
  ASSERT_TRUE(file_.Read().ok());
  for (const char* bad : {"", "two tokens", "line\nline"}) {
    tree_.Write("token", bad);
    EXPECT_EQ(file_.Read().value(), "one");
  }
  tree_.Remove("token");
  EXPECT_EQ(file_.Read().value(), "one");
}

TEST_F(BearerFileTest, WithoutAnyTokenSaysWhyEachTime) {
  EXPECT_THAT(Error(), HasSubstr("No such file"));
  tree_.Write("token", "");
  EXPECT_THAT(Error(), HasSubstr("is empty"));
  EXPECT_THAT(Error(), HasSubstr("is empty"));
  tree_.Write("token", "a b");
  EXPECT_THAT(Error(), HasSubstr("does not hold exactly one token"));
  tree_.Write("token", std::string(BearerFile::kMaxTokenBytes + 1, 'x'));
  EXPECT_THAT(Error(), HasSubstr("does not hold exactly one token"));
}

}  // namespace
}  // namespace rollcall
