// SPDX-License-Identifier: Apache-2.0
#include "security/passwords.h"

#include <crypt.h>
#include <gtest/gtest.h>

#include <ctime>

namespace rollcall {
namespace {

constexpr char kHere[] = "ipv4:10.0.0.1";
constexpr char kElsewhere[] = "ipv4:192.0.2.7";

std::string HashOf(const std::string& password, const std::string& cost = "05",
                   const std::string& kind = "2b") {
  const std::string setting = "$" + kind + "$" + cost + "$abcdefghijklmnopqrstuu";
  return crypt(password.c_str(), setting.c_str());
}

TEST(PasswordsTest, TakesTheRightPasswordOnly) {
  Passwords passwords({{"prometheus", HashOf("right")}, {"other", HashOf("else", "05", "2y")}});
  for (int i = 0; i < 2; ++i) {  // the second time from memory
    EXPECT_TRUE(passwords.Check("prometheus", "right", kHere));
    EXPECT_TRUE(passwords.Check("other", "else", kHere));
    EXPECT_FALSE(passwords.Check("prometheus", "else", kHere));
    EXPECT_FALSE(passwords.Check("other", "right", kHere));
    EXPECT_FALSE(passwords.Check("prometheus", "", kHere));
    EXPECT_FALSE(passwords.Check("", "right", kHere));
    EXPECT_FALSE(passwords.Check("stranger", "right", kHere));
  }
}

TEST(PasswordsTest, RemembersOnlyWhatWasRight) {
  Passwords passwords({{"prometheus", HashOf("right")}});
  passwords.Check("prometheus", "wrong", kHere);
  EXPECT_FALSE(passwords.IsRemembered("prometheus", "wrong", kHere));
  EXPECT_FALSE(passwords.IsRemembered("prometheus", "right", kHere));
  passwords.Check("prometheus", "right", kHere);
  EXPECT_TRUE(passwords.IsRemembered("prometheus", "right", kHere));
}

// A guesser must not learn from another network's login which password is in use.
TEST(PasswordsTest, RemembersForTheNetworkThatTheyCameFrom) {
  Passwords passwords({{"prometheus", HashOf("right")}});
  EXPECT_TRUE(passwords.Check("prometheus", "right", kHere));
  EXPECT_FALSE(passwords.IsRemembered("prometheus", "right", kElsewhere));
  EXPECT_FALSE(passwords.Check("prometheus", "wrong", kElsewhere));
  EXPECT_FALSE(passwords.IsRemembered("prometheus", "right", kElsewhere));
  EXPECT_TRUE(passwords.Check("prometheus", "right", kElsewhere));
  EXPECT_TRUE(passwords.IsRemembered("prometheus", "right", kElsewhere));
}

TEST(PasswordsTest, ForgetsTheNetworkThatWasAwayLongest) {
  Passwords passwords({{"prometheus", HashOf("right", "04")}});
  const auto network = [](size_t i) { return "ipv4:10.1.0." + std::to_string(i); };
  for (size_t i = 0; i < Passwords::kMostRemembered; ++i) {
    ASSERT_TRUE(passwords.Check("prometheus", "right", network(i)));
  }
  EXPECT_TRUE(passwords.Check("prometheus", "right", network(0)));  // is there again
  EXPECT_TRUE(passwords.Check("prometheus", "right", kElsewhere));
  EXPECT_TRUE(passwords.IsRemembered("prometheus", "right", network(0)));
  EXPECT_FALSE(passwords.IsRemembered("prometheus", "right", network(1)));
  EXPECT_TRUE(passwords.IsRemembered("prometheus", "right", network(2)));
  EXPECT_TRUE(passwords.IsRemembered("prometheus", "right", kElsewhere));
}

// What crypt() does not read must not be ignored.
TEST(PasswordsTest, RefusesPasswordsThatBcryptWouldCut) {
  const std::string longest(72, 'x');
  Passwords passwords({{"a", HashOf(longest)}, {"b", HashOf("right")}});
  EXPECT_TRUE(passwords.Check("a", longest, kHere));
  EXPECT_FALSE(passwords.Check("a", longest + "y", kHere));
  EXPECT_FALSE(passwords.Check("b", std::string("right\0more", 10), kHere));
}

TEST(PasswordsTest, NoPasswordIsRightWithoutUsers) {
  EXPECT_FALSE(Passwords({}).Check("", "", kHere));
  EXPECT_TRUE(Passwords({}).empty());
}

TEST(PasswordsTest, AStrangerCostsAsMuchAsAUser) {
  Passwords passwords({{"cheap", HashOf("x", "04")}, {"prometheus", HashOf("right", "10")}});
  const auto time = [&passwords](const std::string& user) {
    const std::clock_t begun = std::clock();  // of the processor: others may run meanwhile
    for (int i = 0; i < 3; ++i) passwords.Check(user, "wrong", kHere);
    return static_cast<double>(std::clock() - begun);
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
