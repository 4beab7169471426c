// SPDX-License-Identifier: Apache-2.0
// Passwords of web.yml from several networks, without a server: tests can connect from loopback
// only.
#include "daemon/web/http_visitor.h"

#include <crypt.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"

namespace rollcall {
namespace {

constexpr int64_t kNowNs = 3'600'000'000'000;
constexpr char kScraper[] = "ipv4:10.0.0.1:41922";
constexpr char kScraperAgain[] = "ipv4:10.0.0.1:41923";
constexpr char kGuesser[] = "ipv4:192.0.2.7:52000";

class HttpVisitorTest : public testing::Test {
 protected:
  // 200, or the status of the refusal.
  int Ask(const std::string& peer, const std::string& password) {
    HttpCredentials credentials;
    credentials.caller.peer = peer;
    credentials.caller.is_encrypted = true;
    credentials.authorization =
        absl::StrCat("Basic ", absl::Base64Escape(absl::StrCat("prometheus:", password)));
    const HttpVisitor visitor = visitors_.Identify(credentials, kNowNs);
    return visitor.identity.has_value() ? 200 : visitor.denial.status;
  }
  int LogIn(const std::string& peer, const std::string& password) {
    HttpCaller caller;
    caller.peer = peer;
    caller.is_encrypted = true;
    const HttpVisitors::Login login = visitors_.LogIn(caller, "prometheus", password, kNowNs);
    return login.denial.status == 0 ? 200 : login.denial.status;
  }
  void GuessUntilBlocked(const std::string& peer) {
    for (int i = 0; i < 10; ++i) EXPECT_EQ(Ask(peer, "wrong"), 401);
    EXPECT_EQ(Ask(peer, "wrong"), 429);
  }

  const std::shared_ptr<Passwords> users_ =
      std::make_shared<Passwords>(std::map<std::string, std::string>{
          {"prometheus", crypt("right", "$2b$04$abcdefghijklmnopqrstuu")}});
  HttpVisitors visitors_{"", nullptr, [this] { return users_; }};
};

TEST_F(HttpVisitorTest, ABlockedGuesserLearnsNothingOfAPasswordInUseElsewhere) {
  EXPECT_EQ(Ask(kScraper, "right"), 200);
  GuessUntilBlocked(kGuesser);
  EXPECT_EQ(Ask(kGuesser, "right"), 429);
  EXPECT_EQ(LogIn(kGuesser, "right"), 429);
}

TEST_F(HttpVisitorTest, AScraperGoesOnWhileAnotherClientGuesses) {
  EXPECT_EQ(Ask(kScraper, "right"), 200);
  GuessUntilBlocked(kGuesser);
  EXPECT_EQ(Ask(kScraperAgain, "right"), 200);
}

// A network of IPv6 has 2^64 addresses, and many people have 2^16 such networks.
TEST_F(HttpVisitorTest, ManyNetworksTogetherBurnNoMoreThanTheBudget) {
  EXPECT_EQ(Ask(kScraper, "right"), 200);
  PasswordBudget::Limits limits;
  limits.most_spent_ns = 1;  // one wrong password is enough
  HttpVisitors visitors("", nullptr, [this] { return users_; }, nullptr, limits);
  const auto ask = [&](const std::string& peer, const std::string& password, int64_t now_ns) {
    HttpCaller caller;
    caller.peer = peer;
    caller.is_encrypted = true;
    return visitors.LogIn(caller, "prometheus", password, now_ns).denial;
  };
  EXPECT_EQ(ask("ipv6:[2001:db8:0:1::1]:1", "wrong", kNowNs).status, 401);
  const HttpDenial second = ask("ipv6:[2001:db8:0:2::1]:1", "wrong", kNowNs);
  EXPECT_EQ(second.status, 429);
  EXPECT_GT(second.retry_after_s, 0);
  EXPECT_EQ(ask("ipv6:[2001:db8:0:3::1]:1", "right", kNowNs).status, 429);
  EXPECT_EQ(ask(kScraper, "right", kNowNs).status, 0) << "it was right before";
  const int64_t later_ns = kNowNs + 60'000'000'000;
  EXPECT_EQ(ask("ipv6:[2001:db8:0:3::1]:1", "right", later_ns).status, 0);
}

// A visitor who must wait has not guessed.
TEST_F(HttpVisitorTest, ARefusalForLackOfTimeIsNotAFailedLogin) {
  PasswordBudget::Limits limits;
  limits.most_spent_ns = 1;
  HttpVisitors visitors("", nullptr, [this] { return users_; }, nullptr, limits);
  HttpCaller guesser, other;
  guesser.peer = kGuesser;
  other.peer = kScraper;
  guesser.is_encrypted = other.is_encrypted = true;
  EXPECT_EQ(visitors.LogIn(guesser, "prometheus", "wrong", kNowNs).denial.status, 401);
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(visitors.LogIn(other, "prometheus", "right", kNowNs).denial.status, 429);
  }
  const int64_t later_ns = kNowNs + 30'000'000'000;
  EXPECT_EQ(visitors.LogIn(other, "prometheus", "right", later_ns).denial.status, 0);
}

TEST(PasswordBudgetTest, WrongPasswordsCostTimeThatComesBack) {
  PasswordBudget::Limits limits;
  limits.most_spent_ns = 1'000'000'000;
  limits.share = 0.25;
  PasswordBudget budget(limits);
  ASSERT_EQ(budget.Begin(0), 0);
  budget.End(false, 900'000'000);
  ASSERT_EQ(budget.Begin(0), 0);
  budget.End(false, 900'000'000);
  EXPECT_EQ(budget.Begin(0), 4) << "0.8 s too much, at a quarter of a core";
  EXPECT_EQ(budget.Begin(2'000'000'000), 2);
  ASSERT_EQ(budget.Begin(4'000'000'000), 0);
  budget.End(true, 9'000'000'000);
  EXPECT_EQ(budget.Begin(4'000'000'000), 0) << "a right password costs nothing";
}

TEST(PasswordBudgetTest, FewChecksAtOneTime) {
  PasswordBudget::Limits limits;
  limits.at_once = 2;
  PasswordBudget budget(limits);
  ASSERT_EQ(budget.Begin(0), 0);
  ASSERT_EQ(budget.Begin(0), 0);
  EXPECT_EQ(budget.Begin(0), 1);
  budget.End(true, 1);
  EXPECT_EQ(budget.Begin(0), 0);
}

TEST_F(HttpVisitorTest, AScraperGoesOnBehindTheAddressOfAGuesser) {
  EXPECT_EQ(Ask(kScraper, "right"), 200);
  GuessUntilBlocked(kScraperAgain);
  EXPECT_EQ(Ask(kScraperAgain, "right"), 200);
  EXPECT_EQ(Ask(kScraper, "right"), 200);
}

}  // namespace
}  // namespace rollcall
