// SPDX-License-Identifier: Apache-2.0
#include "security/token_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/digest/digest.h"
#include "base/edit_file.h"
#include "security/token_edit.h"
#include "temporary_tree.h"

namespace rollcall {
namespace {

using ::testing::HasSubstr;

class TokenFileTest : public testing::Test {
 protected:
  std::string path() const { return tree_.root() + "/tokens.yaml"; }

  std::string Add(const std::string& name, Role role = Role::kViewer, int64_t expires_s = 0) {
    const std::string token = *NewToken();
    TokenEntry entry;
    entry.name = name;
    entry.role = role;
    entry.tenants = {"default"};
    entry.expires_s = expires_s;
    entry.sha256 = Sha256Hex(token);
    const absl::Status status = EditFile(
        path(), /*create=*/true, [&entry](std::string text) { return AppendToken(text, entry); });
    EXPECT_TRUE(status.ok()) << status;
    return token;
  }

  void Remove(const std::string& name) {
    const absl::Status status = EditFile(
        path(), /*create=*/false, [&name](std::string text) { return RemoveToken(text, name); });
    EXPECT_TRUE(status.ok()) << status;
  }

  TemporaryTree tree_;
};

TEST_F(TokenFileTest, ATokenGivesTheIdentityOfItsEntry) {
  const std::string token = Add("ci", Role::kOperator, 1000);
  TokenFile file(path());
  ASSERT_TRUE(file.Poll().ok());
  const auto identity = file.Identify(token, 999);
  ASSERT_TRUE(identity.ok()) << identity.status();
  EXPECT_EQ(identity->name, "token ci");
  EXPECT_TRUE(identity->Has(Role::kOperator));
  EXPECT_EQ(identity->expires_s, 1000);
  EXPECT_EQ(identity->credential, "token " + Sha256Hex(token));
  EXPECT_TRUE(file.IsStillValid(*identity, 999));
  EXPECT_FALSE(file.IsStillValid(*identity, 1000));
}

TEST_F(TokenFileTest, TheMessageDoesNotSayWhetherATokenExists) {
  const std::string expired = Add("old", Role::kViewer, 1000);
  TokenFile file(path());
  ASSERT_TRUE(file.Poll().ok());
  EXPECT_EQ(file.Identify(expired, 1000).status(), file.Identify(*NewToken(), 1000).status());
  EXPECT_EQ(file.Identify("guess", 1000).status().code(), absl::StatusCode::kUnauthenticated);
}

TEST_F(TokenFileTest, ANewTokenCountsAndARevokedOneDoesNot) {
  const std::string first = Add("first");
  TokenFile file(path());
  ASSERT_TRUE(file.Poll().ok());
  const Identity identity = *file.Identify(first, 1);
  const std::string second = Add("second");
  EXPECT_FALSE(file.Identify(second, 1).ok());
  ASSERT_TRUE(file.Poll().ok());
  EXPECT_TRUE(file.Identify(second, 1).ok());
  EXPECT_TRUE(file.IsStillValid(identity, 1));
  Remove("first");
  ASSERT_TRUE(file.Poll().ok());
  EXPECT_FALSE(file.Identify(first, 1).ok());
  EXPECT_FALSE(file.IsStillValid(identity, 1));
}

TEST_F(TokenFileTest, AnOpenConnectionEndsWhenTheRightsOfItsTokenChange) {
  const std::string token = Add("ci", Role::kOperator);
  TokenFile file(path());
  ASSERT_TRUE(file.Poll().ok());
  const Identity identity = *file.Identify(token, 1);
  tree_.Write("tokens.yaml", "tokens:\n- {name: ci, role: viewer, expires: never, sha256: " +
                                 Sha256Hex(token) + "}\n");
  ASSERT_TRUE(file.Poll().ok());
  EXPECT_TRUE(file.Identify(token, 1).ok());
  EXPECT_FALSE(file.IsStillValid(identity, 1));
}

TEST_F(TokenFileTest, ABadFileNeverReplacesAGoodOne) {
  const std::string token = Add("ci");
  TokenFile file(path());
  ASSERT_TRUE(file.Poll().ok());
  for (const char* bad : {"tokens: [", "tokens:\n  - name: ci\n", "\x01\x02garbage"}) {
    tree_.Write("tokens.yaml", bad);
    for (int i = 0; i < 2; ++i) EXPECT_FALSE(file.Poll().ok()) << "an error as long as it is bad";
    EXPECT_TRUE(file.Identify(token, 1).ok()) << bad;
  }
  unlink(path().c_str());
  EXPECT_FALSE(file.Poll().ok());
  EXPECT_TRUE(file.Identify(token, 1).ok());
  const std::string next = Add("next");
  EXPECT_TRUE(file.Poll().ok());
  EXPECT_TRUE(file.Identify(next, 1).ok());
  EXPECT_FALSE(file.Identify(token, 1).ok());
}

TEST_F(TokenFileTest, AFileThatOthersMayWriteDoesNotCount) {
  for (const mode_t mode : {0620, 0602}) {
    const std::string token = Add("of-" + std::to_string(mode));
    ASSERT_EQ(chmod(path().c_str(), mode), 0);
    TokenFile file(path());
    const absl::Status status = file.Poll();
    EXPECT_EQ(status.code(), absl::StatusCode::kPermissionDenied);
    EXPECT_THAT(std::string(status.message()), HasSubstr("chmod go-w"));
    EXPECT_FALSE(file.Identify(token, 1).ok());
    ASSERT_EQ(chmod(path().c_str(), 0644), 0);
    EXPECT_TRUE(file.Poll().ok());
    EXPECT_TRUE(file.Identify(token, 1).ok());
  }
}

TEST_F(TokenFileTest, AFileOfAnotherUserDoesNotCount) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can give a file away";
  Add("ci");
  ASSERT_EQ(chown(path().c_str(), 65534, 65534), 0);
  TokenFile file(path());
  EXPECT_THAT(std::string(file.Poll().message()), HasSubstr("belongs to uid 65534"));
}

TEST_F(TokenFileTest, WithoutAFileThereAreNoTokens) {
  TokenFile file(path());
  EXPECT_FALSE(file.Poll().ok());
  EXPECT_FALSE(file.Identify(*NewToken(), 1).ok());
}

}  // namespace
}  // namespace rollcall
