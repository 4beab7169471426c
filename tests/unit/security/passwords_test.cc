// SPDX-License-Identifier: Apache-2.0
#include "security/passwords.h"

#include <crypt.h>
#include <gtest/gtest.h>

#include <chrono>

namespace rollcall {
namespace {

using std::chrono::steady_clock;

std::string HashOf(const std::string& password, const std::string& cost = "05",
                   const std::string& kind = "2b") {
  const std::string setting = "$" + kind + "$" + cost + "$abcdefghijklmnopqrstuu";
  return crypt(password.c_str(), setting.c_str());
}

TEST(PasswordsTest, TakesTheRightPasswordOnly) {
  Passwords passwords({{"prometheus", HashOf("right")}, {"other", HashOf("else", "05", "2y")}});
  for (int i = 0; i < 2; ++i) {  // the second time from memory
    EXPECT_TRUE(passwords.Check("prometheus", "right"));
    EXPECT_TRUE(passwords.Check("other", "else"));
    EXPECT_FALSE(passwords.Check("prometheus", "else"));
    EXPECT_FALSE(passwords.Check("other", "right"));
    EXPECT_FALSE(passwords.Check("prometheus", ""));
    EXPECT_FALSE(passwords.Check("", "right"));
    EXPECT_FALSE(passwords.Check("stranger", "right"));
  }
}

TEST(PasswordsTest, RemembersOnlyWhatWasRight) {
  Passwords passwords({{"prometheus", HashOf("right")}});
  passwords.Check("prometheus", "wrong");
  EXPECT_FALSE(passwords.IsRemembered("prometheus", "wrong"));
  EXPECT_FALSE(passwords.IsRemembered("prometheus", "right"));
  passwords.Check("prometheus", "right");
  EXPECT_TRUE(passwords.IsRemembered("prometheus", "right"));
}

// What crypt() does not read must not be ignored.
TEST(PasswordsTest, RefusesPasswordsThatBcryptWouldCut) {
  const std::string longest(72, 'x');
  Passwords passwords({{"a", HashOf(longest)}, {"b", HashOf("right")}});
  EXPECT_TRUE(passwords.Check("a", longest));
  EXPECT_FALSE(passwords.Check("a", longest + "y"));
  EXPECT_FALSE(passwords.Check("b", std::string("right\0more", 10)));
}

TEST(PasswordsTest, NobodyHasAPasswordWithoutUsers) {
  EXPECT_FALSE(Passwords({}).Check("", ""));
  EXPECT_TRUE(Passwords({}).empty());
}

TEST(PasswordsTest, AStrangerCostsAsMuchAsAUser) {
  Passwords passwords({{"cheap", HashOf("x", "04")}, {"prometheus", HashOf("right", "10")}});
  const auto time = [&passwords](const std::string& user) {
    steady_clock::duration least = std::chrono::hours(1);
    for (int i = 0; i < 3; ++i) {
      const auto begun = steady_clock::now();
      passwords.Check(user, "wrong");
      least = std::min(least, steady_clock::now() - begun);
    }
    return std::chrono::duration<double>(least).count();
  };
  EXPECT_GT(time("stranger") / time("prometheus"), 0.3);
}

TEST(PasswordsTest, TheCredentialChangesWithTheHash) {
  const Passwords before({{"a", HashOf("x")}}), after({{"a", HashOf("y")}});
  EXPECT_NE(before.CredentialOf("a"), after.CredentialOf("a"));
  EXPECT_EQ(before.CredentialOf("a"), Passwords({{"a", HashOf("x")}}).CredentialOf("a"));
  EXPECT_EQ(before.CredentialOf("b"), "");
}

TEST(PasswordsTest, RefusesHashesOfOtherKindsAndCosts) {
  const std::string good = HashOf("x");
  EXPECT_TRUE(CheckPasswordHash(good).ok());
  EXPECT_TRUE(CheckPasswordHash(HashOf("x", "05", "2y")).ok());
  for (const std::string& bad :
       {std::string(), std::string("right"), std::string("$6$salt$hash"), good + "x",
        good.substr(1), good.substr(0, 59) + "\n", "$2b$31$" + good.substr(7),
        "$2b$03$" + good.substr(7), "$2b$1x$" + good.substr(7), "$2x$05$" + good.substr(7)}) {
    EXPECT_FALSE(CheckPasswordHash(bad).ok()) << bad;
  }
}

}  // namespace
}  // namespace rollcall
