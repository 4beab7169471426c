// SPDX-License-Identifier: Apache-2.0
// Passwords of web.yml from several networks, without a server: tests can connect from loopback only.
#include "daemon/server/http_visitor.h"

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

TEST_F(HttpVisitorTest, AScraperGoesOnWhileSomebodyElseGuesses) {
  EXPECT_EQ(Ask(kScraper, "right"), 200);
  GuessUntilBlocked(kGuesser);
  EXPECT_EQ(Ask(kScraperAgain, "right"), 200);
}

TEST_F(HttpVisitorTest, AScraperGoesOnBehindTheAddressOfAGuesser) {
  EXPECT_EQ(Ask(kScraper, "right"), 200);
  GuessUntilBlocked(kScraperAgain);
  EXPECT_EQ(Ask(kScraperAgain, "right"), 200);
  EXPECT_EQ(Ask(kScraper, "right"), 200);
}

}  // namespace
}  // namespace rollcall
