// SPDX-License-Identifier: Apache-2.0
#include "daemon/web/http_sessions.h"

#include <gtest/gtest.h>

#include <set>

#include "absl/strings/str_cat.h"

namespace rollcall {
namespace {

Identity Token(const std::string& name) {
  Identity identity;
  identity.name = name;
  identity.credential = "token " + name;
  return identity;
}

TEST(HttpSessionsTest, KnowsASessionUntilItEnds) {
  HttpSessions sessions;
  const std::string secret = sessions.Begin(Token("ci"), 5);
  EXPECT_EQ(secret.size(), 43u);
  EXPECT_EQ(sessions.Find(secret, 6)->name, "ci");
  EXPECT_FALSE(sessions.Find("", 6).has_value());
  EXPECT_FALSE(sessions.Find(secret.substr(1), 6).has_value());
  EXPECT_TRUE(sessions.Find(secret, 4 + HttpSessions::kLifetimeNs).has_value());
  EXPECT_FALSE(sessions.Find(secret, 5 + HttpSessions::kLifetimeNs).has_value());
  sessions.End(secret);
  EXPECT_FALSE(sessions.Find(secret, 6).has_value());
}

TEST(HttpSessionsTest, SecretsAreAllDifferent) {
  HttpSessions sessions;
  std::set<std::string> secrets;
  for (int i = 0; i < 200; ++i) secrets.insert(sessions.Begin(Token(absl::StrCat(i)), i));
  EXPECT_EQ(secrets.size(), 200u);
}

TEST(HttpSessionsTest, OneTokenCannotEndTheSessionsOfOthers) {
  HttpSessions sessions;
  const std::string other = sessions.Begin(Token("other"), 0);
  const std::string first = sessions.Begin(Token("busy"), 1);
  for (int i = 0; i < 2000; ++i) sessions.Begin(Token("busy"), 2 + i);
  EXPECT_EQ(sessions.size(), 1 + HttpSessions::kMostOfOne);
  EXPECT_TRUE(sessions.Find(other, 3000).has_value());
  EXPECT_FALSE(sessions.Find(first, 3000).has_value());
}

TEST(HttpSessionsTest, TheTableIsBounded) {
  HttpSessions sessions;
  const std::string first = sessions.Begin(Token("first"), 0);
  for (size_t i = 0; i < HttpSessions::kMostSessions + 10; ++i) {
    sessions.Begin(Token(absl::StrCat(i)), static_cast<int64_t>(1 + i));
  }
  EXPECT_EQ(sessions.size(), HttpSessions::kMostSessions);
  EXPECT_FALSE(sessions.Find(first, 2000).has_value());
  sessions.Begin(Token("later"), 2 * HttpSessions::kLifetimeNs);
  EXPECT_EQ(sessions.size(), 1u);  // the others have expired
}

}  // namespace
}  // namespace rollcall
