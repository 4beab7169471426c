// SPDX-License-Identifier: Apache-2.0
// Who may do what on the page: a real server and real clients, with made-up answers and identities.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <httplib.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <thread>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "daemon/web/http.h"
#include "daemon/web/http_routes.h"
#include "eventually.h"
#include "http_fixture.h"

namespace rollcall {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

std::string AddressOf(const HttpRoute& route) {
  std::string path = route.path;
  if (path.back() == '*') path.back() = 'x';
  return route.role == Role::kOperator ? path + "?job=j&ranks=0&id=x&text=hello&for=1h"
                                       : path + "?id=x&job=j";
}

bool IsStream(const HttpRoute& route) { return route.path == "/api/v1/events"; }

TEST_F(HttpAccessTest, EveryAddressNeedsItsRole) {
  Start();
  ASSERT_GT(HttpRoutes().size(), 15u);
  for (const HttpRoute& route : HttpRoutes()) {
    for (const std::string token : {"", "agent", "viewer", "operator"}) {
      Identity caller;
      if (!token.empty()) caller.roles = {*ParseRole(token)};
      const bool may = !route.role.has_value() || caller.Has(*route.role);
      if (route.path == "/login" && route.method == "POST") continue;  // below
      if (IsStream(route) && may) continue;                            // below
      const auto answer = route.method == "GET" ? Get(AddressOf(route), As(token))
                                                : Post(AddressOf(route), As(token));
      ASSERT_TRUE(answer) << route.path;
      const std::string what = absl::StrCat(route.method, " ", route.path, " as ", token);
      if (may) {
        EXPECT_LT(answer->status, 400) << what;
      } else {
        EXPECT_EQ(answer->status, token.empty() ? 401 : 403) << what;
      }
    }
  }
  EXPECT_EQ(queries_.stacks_taken, 1);
  EXPECT_EQ(queries_.looks_taken, 1);
}

TEST_F(HttpAccessTest, SaysWhoYouAreAndWhatIsNeeded) {
  Start();
  const auto answer = Post("/api/v1/stacks?job=j&ranks=0", As("viewer"));
  EXPECT_EQ(answer->body, "you are token viewer (viewer); this needs the role operator\n");
  const auto who = Get("/api/v1/whoami", As("operator"));
  EXPECT_THAT(who->body, HasSubstr("\"name\":\"token operator\""));
  EXPECT_THAT(who->body, HasSubstr("\"may_act\":true"));
  EXPECT_THAT(who->body, HasSubstr("\"has_session\":false"));
}

TEST_F(HttpAccessTest, SaysWhetherTheDaemonIsInsecure) {
  Start();
  EXPECT_THAT(Get("/api/v1/whoami", As("viewer"))->body, HasSubstr("\"insecure\":false"));
  server_.reset();
  options_.is_insecure = true;
  Start();
  EXPECT_THAT(Get("/api/v1/whoami", As("viewer"))->body, HasSubstr("\"insecure\":true"));
}

TEST_F(HttpAccessTest, StrangersDoNotLearnWhichAddressesThereAre) {
  Start();
  EXPECT_EQ(Get("/no/such/address")->status, 401);
  EXPECT_EQ(Get("/no/such/address", As("viewer"))->status, 404);
  EXPECT_EQ(client_->Delete("/api/v1/jobs", {{"X-Rollcall", "1"}})->status, 401);
}

TEST_F(HttpAccessTest, AnAddressThatTakesAnotherMethodSaysWhich) {
  Start();
  const httplib::Headers operator_ = {{"X-Rollcall", "1"}, {"Authorization", "Bearer operator"}};
  const auto deleted = client_->Delete("/api/v1/jobs", operator_);
  EXPECT_EQ(deleted->status, 405);
  EXPECT_EQ(deleted->get_header_value("Allow"), "GET, HEAD");
  const auto read = Get("/api/v1/silence?job=x&for=1h", As("viewer"));
  EXPECT_EQ(read->status, 405);
  EXPECT_EQ(read->get_header_value("Allow"), "POST");
  EXPECT_EQ(read->body, "this address takes POST, and not GET\n");
  EXPECT_EQ(client_->Head("/api/v1/silence", As("viewer"))->status, 405);
  EXPECT_EQ(Post("/api/v1/jobs", As("operator"))->get_header_value("Allow"), "GET, HEAD");
  EXPECT_EQ(client_->Put("/login", operator_, "", "text/plain")->get_header_value("Allow"),
            "GET, HEAD, POST");
  EXPECT_EQ(Get("/api/v1/silence")->status, 401) << "strangers do not learn it";
}

TEST_F(HttpAccessTest, ABodyThatIsNotAFormIsRefusedAndNeverIgnored) {
  Start();
  const httplib::Headers operator_ = {{"X-Rollcall", "1"}, {"Authorization", "Bearer operator"}};
  for (const char* type : {"application/json", "text/plain", ""}) {
    const auto refused =
        client_->Post("/api/v1/silence", operator_, R"({"job": "x", "for": "1h"})", type);
    EXPECT_EQ(refused->status, 415) << type;
    EXPECT_THAT(refused->body, HasSubstr("application/x-www-form-urlencoded"));
  }
  const auto form =
      client_->Post("/api/v1/silence", operator_, httplib::Params{{"job", "train"}, {"for", "1h"}});
  EXPECT_EQ(form->status, 200);
  EXPECT_THAT(form->body, HasSubstr("\"job\":\"train\""));
}

TEST_F(HttpAccessTest, AFormThatIsTooLargeIsAnErrorThatSaysSo) {
  Start();
  const auto refused = client_->Post(
      "/api/v1/silence", {{"X-Rollcall", "1"}, {"Authorization", "Bearer operator"}},
      httplib::Params{{"job", "train"}, {"for", "1h"}, {"comment", std::string(9000, 'x')}});
  EXPECT_EQ(refused->status, 413);
  EXPECT_EQ(refused->body, "a form has at most 8 KiB\n");
}

// Cleaned, it would be the pattern "??", which fits the jobs of others.
TEST_F(HttpAccessTest, AParameterThatIsNotTextIsAnError) {
  Start();
  const auto action = Post("/api/v1/silence?job=%ff%fe&for=1h", As("operator"));
  EXPECT_EQ(action->status, 400);
  EXPECT_EQ(action->body, "job is not text in UTF-8: \"??\"\n");
  EXPECT_EQ(Get("/api/v1/job?job=%ff", As("viewer"))->status, 400);
  EXPECT_EQ(Get("/api/v1/job?job=j%C3%B6b", As("viewer"))->status, 200);
}

TEST_F(HttpAccessTest, SwitchesAndNumbersOfAnotherFormAreErrors) {
  Start();
  const auto banana = Post("/api/v1/incident/acknowledge?id=x&take_back=banana", As("operator"));
  EXPECT_EQ(banana->status, 400);
  EXPECT_EQ(banana->body, "take_back is 1 or 0; not \"banana\"\n");
  EXPECT_EQ(Get("/api/v1/incidents?grouped=yes", As("viewer"))->status, 400);
  EXPECT_EQ(Get("/api/v1/incidents?grouped=0", As("viewer"))->status, 200);
  EXPECT_EQ(Get("/api/v1/incidents?limit=-1", As("viewer"))->status, 400);
  EXPECT_EQ(Get("/api/v1/job?job=x&attempt=-1", As("viewer"))->status, 400);
}

TEST_F(HttpAccessTest, NotesEveryAction) {
  Start();
  Post("/api/v1/stacks?job=train&ranks=0,3&other=x", As("operator"));
  Post("/api/v1/stacks?job=train&ranks=0", As("viewer"));
  Get("/api/v1/jobs", As("operator"));
  Post("/api/v1/diagnose?job=eval.py&tenant=team", As("operator"));
  EXPECT_THAT(audit(),
              ElementsAre("token operator take stacks job team/train attempt 2, ranks 0,3",
                          "token viewer refused: take stacks needs the role operator",
                          "token operator diagnose job team/eval.py, which is not recorded"));
}

TEST_F(HttpAccessTest, NotesWhyAnActionWasNotDone) {
  Start();
  Post("/api/v1/incident/note?id=x", As("operator"));
  EXPECT_THAT(audit(), ElementsAre("token operator note incident x",
                                   "token operator refused: note a note needs a text"));
}

TEST_F(HttpAccessTest, NotesAnActionThatItCannotRead) {
  Start();
  Post("/api/v1/silence?job=x&for=soon", As("operator"));
  Post("/api/v1/incident/acknowledge?id=x&take_back=1", As("operator"));
  const std::vector<std::string> noted = audit();
  ASSERT_GE(noted.size(), 3u);
  EXPECT_THAT(noted[0], HasSubstr("silence none: for: "));
  EXPECT_THAT(noted[1], HasSubstr("refused: silence for: "));
  EXPECT_EQ(noted[2], "token operator take back incident x");
}

TEST_F(HttpAccessTest, SendsBrowsersToTheLogin) {
  Start();
  const httplib::Headers browser = {{"Accept", "text/html,application/xhtml+xml"}};
  const auto page = Get("/", browser);
  EXPECT_EQ(page->status, 302);
  EXPECT_EQ(page->get_header_value("Location"), "login");
  EXPECT_EQ(Get("/incidents/x", browser)->get_header_value("Location"), "../login");
  const auto form = Get("/login", browser);
  EXPECT_EQ(form->status, 200);
  EXPECT_THAT(form->body, HasSubstr("rollcall token new"));
  EXPECT_THAT(form->body, Not(HasSubstr("name=\"user\"")));
  const std::string policy = form->get_header_value("Content-Security-Policy");
  EXPECT_THAT(policy, HasSubstr("default-src 'none'"));
  EXPECT_THAT(policy, HasSubstr("form-action 'self'"));
  EXPECT_THAT(policy, Not(HasSubstr("unsafe")));
  EXPECT_EQ(form->get_header_value_count("Referrer-Policy"), 1u);
}

TEST_F(HttpAccessTest, ASessionHasTheRolesOfItsToken) {
  Start();
  const auto login = LogIn("viewer");
  EXPECT_EQ(login->status, 303);
  EXPECT_EQ(login->get_header_value("Location"), "./");
  const httplib::Headers session = SessionOf(login);
  EXPECT_EQ(Get("/api/v1/jobs", session)->status, 200);
  EXPECT_EQ(Post("/api/v1/stacks?job=j&ranks=0", session)->status, 403);
  EXPECT_THAT(Get("/api/v1/whoami", session)->body, HasSubstr("\"has_session\":true"));
  const std::string cookie = session.find("Cookie")->second;
  const std::string name = cookie.substr(0, cookie.find('='));
  EXPECT_EQ(Get("/api/v1/jobs", {{"Cookie", name + "=viewer"}})->status, 401);
}

TEST_F(HttpAccessTest, TheCookieIsForThisSiteAndNotForScripts) {
  Start();
  const std::string cookie = LogIn("viewer")->get_header_value("Set-Cookie");
  EXPECT_THAT(cookie, testing::MatchesRegex("rollcall_session_[0-9a-f]{8}=[A-Za-z0-9_-]{43}; "
                                            "Path=/; HttpOnly; SameSite=Strict"));
  EXPECT_THAT(cookie, Not(HasSubstr("viewer")));
}

TEST_F(HttpAccessTest, ByTlsTheCookieIsSecure) {
  UseTls();
  Start();
  EXPECT_THAT(LogIn("viewer")->get_header_value("Set-Cookie"), HasSubstr("; Secure"));
}

// A browser sends the cookies of a host to all of its ports.
TEST_F(HttpAccessTest, TwoDaemonsOfOneHostKeepTheirSessionsApart) {
  Start();
  HttpServer other(&queries_, options_);
  ASSERT_TRUE(other.Start("127.0.0.1:0").ok());
  httplib::Client client("http://" + other.address());
  const httplib::Params token = {{"token", "viewer"}};
  const httplib::Headers here = SessionOf(LogIn("viewer"));
  const httplib::Headers there = SessionOf(client.Post("/login", token));
  const std::string first = here.find("Cookie")->second, second = there.find("Cookie")->second;
  EXPECT_NE(first.substr(0, first.find('=')), second.substr(0, second.find('=')));
  const httplib::Headers both = {{"Cookie", first + "; " + second}};
  EXPECT_EQ(Get("/api/v1/jobs", both)->status, 200);
  EXPECT_EQ(client.Get("/api/v1/jobs", both)->status, 200);
}

// The browser speaks TLS to the proxy, and the proxy plain HTTP to the page.
TEST_F(HttpAccessTest, BehindAProxyWithTlsTheCookieIsSecure) {
  options_.page_url = "https://rollcall.example/page/";
  Start();
  const auto cookie = [this](const httplib::Headers& headers) {
    return client_->Post("/login", headers, httplib::Params{{"token", "viewer"}})
        ->get_header_value("Set-Cookie");
  };
  EXPECT_THAT(cookie({{"Origin", "https://rollcall.example"}}), HasSubstr("; Secure"));
  EXPECT_THAT(cookie({}), HasSubstr("; Secure"));
  EXPECT_THAT(Get("/?token=viewer")->get_header_value("Set-Cookie"), HasSubstr("; Secure"));
  // A browser that comes past the proxy would not send such a cookie back.
  EXPECT_THAT(cookie({{"Origin", "http://" + server_->address()}}), Not(HasSubstr("; Secure")));
}

TEST_F(HttpAccessTest, ScriptsLogInByJson) {
  Start();
  const auto login = client_->Post("/login", R"({"token": "viewer"})", "application/json");
  EXPECT_EQ(login->status, 200);
  EXPECT_EQ(Get("/api/v1/jobs", SessionOf(login))->status, 200);
  for (const char* body : {R"({"token": "x"})", R"({"token": 1})", "[", "\"viewer\"", ""}) {
    EXPECT_EQ(client_->Post("/login", body, "application/json")->status, 401) << body;
  }
}

TEST_F(HttpAccessTest, ATokenInTheAddressIsExchangedOnce) {
  Start();
  const auto login = Get("/?token=viewer");
  EXPECT_EQ(login->status, 302);
  EXPECT_EQ(login->get_header_value("Location"), "./");
  EXPECT_EQ(Get("/", SessionOf(login))->status, 200);
  const auto wrong = Get("/?token=wrong");
  EXPECT_EQ(wrong->status, 401);
  EXPECT_EQ(wrong->get_header_value("Set-Cookie"), "");
  EXPECT_EQ(Get("/api/v1/jobs?token=viewer")->status, 401);
}

// Otherwise that site could make people use the page under a name of its choice.
TEST_F(HttpAccessTest, ALinkOfAnotherSiteLogsNoBrowserInUnasked) {
  Start();
  const auto follow = [this](const std::string& token, const std::string& site) {
    return Get("/?token=" + token, {{"Sec-Fetch-Site", site}, {"Sec-Fetch-Mode", "navigate"}});
  };
  for (const char* site : {"cross-site", "same-site"}) {
    const auto asked = follow("viewer", site);
    EXPECT_EQ(asked->status, 200) << site;
    EXPECT_EQ(asked->get_header_value("Set-Cookie"), "") << site;
    EXPECT_THAT(asked->body, HasSubstr("a link of another page"));
    EXPECT_THAT(asked->body, HasSubstr("value=\"viewer\""));
    EXPECT_THAT(asked->get_header_value("Content-Security-Policy"),
                HasSubstr("frame-ancestors 'none'"));
  }
  EXPECT_THAT(follow("%22%3E%3Cb%3E", "cross-site")->body,
              HasSubstr("value=\"&quot;&gt;&lt;b&gt;\""));
  for (const char* site : {"same-origin", "none"}) {
    EXPECT_EQ(follow("viewer", site)->status, 302) << site;
    EXPECT_NE(follow("viewer", site)->get_header_value("Set-Cookie"), "") << site;
  }
}

// An image or a frame could log a browser in unseen.
TEST_F(HttpAccessTest, APageLogsNoBrowserInUnseen) {
  Start();
  const auto load = [this](const std::string& site, const std::string& mode,
                           const std::string& destination) {
    return Get(
        "/?token=viewer",
        {{"Sec-Fetch-Site", site}, {"Sec-Fetch-Mode", mode}, {"Sec-Fetch-Dest", destination}});
  };
  int refusals = 0;
  for (const char* site : {"cross-site", "same-site", "same-origin"}) {
    for (const auto& [mode, destination] :
         {std::pair("navigate", "iframe"), std::pair("no-cors", "image"),
          std::pair("cors", "empty")}) {
      const auto answer = load(site, mode, destination);
      const std::string what = absl::StrCat(site, " ", mode, " ", destination);
      EXPECT_EQ(answer->status, 403) << what;
      EXPECT_EQ(answer->get_header_value("Set-Cookie"), "") << what;
      EXPECT_THAT(answer->body, Not(HasSubstr("<form"))) << what;
      EXPECT_EQ(refused("origin"), ++refusals) << what;
    }
  }
  EXPECT_NE(load("none", "navigate", "document")->get_header_value("Set-Cookie"), "");
  EXPECT_NE(Get("/?token=viewer")->get_header_value("Set-Cookie"), "") << "a script";
}

// A login is an action too: a person logged in under a name of that site's choice shows it what the
// page has for that name.
TEST_F(HttpAccessTest, PagesOfOtherSitesPostNoLogin) {
  Start();
  const auto post = [this](const httplib::Headers& headers) {
    return client_->Post("/login", headers, httplib::Params{{"token", "viewer"}});
  };
  const std::string own = "http://" + server_->address();
  for (const httplib::Headers& other :
       {httplib::Headers{{"Origin", "http://evil.example"}}, httplib::Headers{{"Origin", "null"}},
        httplib::Headers{{"Sec-Fetch-Site", "cross-site"}, {"Sec-Fetch-Mode", "navigate"}},
        httplib::Headers{{"Sec-Fetch-Site", "same-site"}, {"Sec-Fetch-Mode", "navigate"}},
        httplib::Headers{{"Origin", own}, {"Sec-Fetch-Site", "cross-site"}}}) {
    const auto answer = post(other);
    EXPECT_EQ(answer->status, 403) << other.begin()->second;
    EXPECT_EQ(answer->get_header_value("Set-Cookie"), "") << other.begin()->second;
  }
  EXPECT_EQ(post({{"Origin", own}, {"Sec-Fetch-Site", "same-origin"}})->status, 303);
  EXPECT_EQ(post({})->status, 303) << "a script";
}

TEST_F(HttpAccessTest, AnAgentsTokenBeginsNoSession) {
  Start();
  const auto login = LogIn("agent");
  EXPECT_EQ(login->status, 403);
  EXPECT_EQ(login->get_header_value("Set-Cookie"), "");
}

TEST_F(HttpAccessTest, LoggingOutEndsTheSession) {
  Start();
  const httplib::Headers session = SessionOf(LogIn("viewer"));
  EXPECT_EQ(client_->Post("/logout", session, "", "text/plain")->status, 403);  // no X-Rollcall
  EXPECT_EQ(Get("/api/v1/jobs", session)->status, 200);
  const auto logout = Post("/logout", session);
  EXPECT_EQ(logout->status, 204);
  EXPECT_THAT(logout->get_header_value("Set-Cookie"),
              testing::MatchesRegex("rollcall_session_[0-9a-f]{8}=; .*"));
  EXPECT_THAT(logout->get_header_value("Set-Cookie"), HasSubstr("Max-Age=0"));
  EXPECT_EQ(Get("/api/v1/jobs", session)->status, 401);
}

TEST_F(HttpAccessTest, ASessionAndItsStreamEndWithTheToken) {
  Start();
  const httplib::Headers session = SessionOf(LogIn("viewer"));
  std::atomic<int> events{0};
  std::atomic<bool> has_ended{false};
  std::thread viewer([&] {
    const auto client = Connect();
    client->Get("/api/v1/events", session, [&](const char* data, size_t size) {
      if (absl::StrContains(absl::string_view(data, size), "change")) ++events;
      return true;
    });
    has_ended = true;
  });
  EXPECT_TRUE(Eventually([&] { return events == 1; }));
  authenticator_.Revoke("viewer");
  EXPECT_EQ(Get("/api/v1/jobs", session)->status, 401);
  queries_.version = 2;
  EXPECT_TRUE(Eventually([&] { return has_ended.load(); }));
  viewer.join();
  EXPECT_EQ(events, 1);
}

TEST_F(HttpAccessTest, ParametersWithoutMeaningMakeNoNewAnswers) {
  Start();
  const auto ask = [this](const std::string& path) {
    const auto answer = Get(path, As("viewer"));
    EXPECT_EQ(answer->status, 200) << path;
    return server_->answer_bytes();
  };
  const size_t plain = ask("/api/v1/jobs");
  EXPECT_GT(plain, 0u);
  EXPECT_EQ(ask("/api/v1/jobs?made=up&job=none"), plain);
  EXPECT_EQ(ask("/api/v1/jobs?limit=3&x=1"), ask("/api/v1/jobs?x=2&limit=3"));
  EXPECT_GT(ask("/api/v1/jobs?limit=3"), plain) << "a parameter with a meaning";
}

// Asks for the stream of changes, and leaves at once if there is one. Returns the status.
int AskForStream(httplib::Client* client, const httplib::Headers& headers) {
  int status = 0;
  client->Get(
      "/api/v1/events", headers,
      [&status](const httplib::Response& response) {
        status = response.status;
        return false;
      },
      [](const char*, size_t) { return false; });
  return status;
}

TEST_F(HttpAccessTest, RefusesAndCountsOneViewerTooMany) {
  std::atomic<int> dropped{0};
  options_.over_share = [&dropped](const Owner&) { ++dropped; };
  Start();
  std::atomic<int> watching{0};
  std::atomic<bool> is_over{false};
  std::vector<std::thread> viewers;
  for (int i = 0; i < HttpLimits().viewers; ++i) {
    viewers.emplace_back([&, client = std::shared_ptr<httplib::Client>(Connect())] {
      bool has_heard = false;
      client->Get("/api/v1/events", As("viewer"), [&](const char*, size_t) {
        if (!std::exchange(has_heard, true)) ++watching;
        return !is_over;
      });
    });
  }
  EXPECT_TRUE(Eventually([&] { return watching == HttpLimits().viewers; }));
  EXPECT_EQ(dropped, 0);
  EXPECT_EQ(AskForStream(Connect().get(), As("viewer")), 503);
  EXPECT_EQ(dropped, 1);
  is_over = true;
  ++queries_.version;  // an event wakes each viewer
  for (std::thread& viewer : viewers) viewer.join();
  EXPECT_TRUE(Eventually([&] { return AskForStream(Connect().get(), As("viewer")) == 200; }));
}

TEST_F(HttpAccessTest, GuessingIsBlockedAndSessionsGoOn) {
  Start();
  const httplib::Headers session = SessionOf(LogIn("viewer"));
  for (int i = 0; i < 10; ++i) EXPECT_EQ(LogIn(absl::StrCat("guess", i))->status, 401) << i;
  const auto blocked = LogIn("guess");
  EXPECT_EQ(blocked->status, 429);
  const int wait_s = std::stoi(blocked->get_header_value("Retry-After"));
  EXPECT_GT(wait_s, 0);
  EXPECT_LE(wait_s, 60);
  EXPECT_EQ(Get("/?token=guess")->status, 429);
  EXPECT_EQ(Get("/api/v1/jobs", As("guess"))->status, 429);
  // A right token is not a guess, wherever it comes.
  EXPECT_EQ(Get("/api/v1/jobs", As("viewer"))->status, 200);
  EXPECT_EQ(LogIn("operator")->status, 303);
  EXPECT_EQ(Get("/api/v1/jobs", session)->status, 200);
  EXPECT_EQ(refused("guessing"), 3);
}

TEST_F(HttpAccessTest, WithoutACredentialNoClientGuesses) {
  Start();
  for (int i = 0; i < 50; ++i) EXPECT_EQ(Get("/api/v1/jobs")->status, 401);
  EXPECT_EQ(refused("nobody"), 50);
}

TEST_F(HttpAccessTest, ANameOfAnotherSiteIsRefused) {
  options_.hosts = {"rollcall.example"};
  Start();
  const auto rebound =
      Get("/api/v1/jobs", {{"Host", "evil.example"}, {"Authorization", "Bearer operator"}});
  EXPECT_EQ(rebound->status, 421);
  EXPECT_THAT(rebound->body, HasSubstr("--http-host=evil.example"));
  EXPECT_EQ(Get("/login", {{"Host", "evil.example:80"}})->status, 421);
  EXPECT_EQ(Get("/?token=viewer", {{"Host", "evil.example:80"}})->status, 421);
  EXPECT_EQ(Get("/api/v1/jobs", {{"Host", "rollcall.example"}, {"Authorization", "Bearer viewer"}})
                ->status,
            200);
  EXPECT_EQ(Get("/healthz", {{"Host", "evil.example"}})->status, 200);
}

TEST_F(HttpAccessTest, KnowsTheNamesOfItsCertificate) {
  UseTls();
  Start();
  EXPECT_EQ(Get("/login", {{"Host", "page.example"}})->status, 200);
  EXPECT_EQ(Get("/login", {{"Host", "other.example"}})->status, 421);
}

TEST_F(HttpAccessTest, PagesOfOtherSitesDoNotAct) {
  Start();
  const std::string own = "http://" + server_->address();
  httplib::Headers session = SessionOf(LogIn("operator"));
  const auto with = [&session](const std::string& name, const std::string& value) {
    httplib::Headers headers = session;
    headers.insert({name, value});
    return headers;
  };
  const std::string stacks = "/api/v1/stacks?job=j&ranks=0";
  EXPECT_EQ(Post(stacks, with("Origin", "http://evil.example"))->status, 403);
  EXPECT_EQ(Post(stacks, with("Sec-Fetch-Site", "cross-site"))->status, 403);
  EXPECT_EQ(client_->Post(stacks, session, "", "text/plain")->status, 403);
  EXPECT_EQ(queries_.stacks_taken, 0);
  EXPECT_EQ(Post(stacks, with("Origin", own))->status, 200);
  EXPECT_EQ(client_
                ->Post("/login", {{"Origin", "http://evil.example"}},
                       httplib::Params{{"token", "viewer"}})
                ->status,
            403);
  httplib::Headers fetch = with("Sec-Fetch-Site", "cross-site");
  fetch.insert({"Sec-Fetch-Mode", "no-cors"});
  EXPECT_EQ(Get("/api/v1/jobs", fetch)->status, 403);
}

TEST_F(HttpAccessTest, AClientsCertificateIsItsIdentity) {
  UseTls();
  const TestPair own = authority_.Issue("URI:spiffe://x/rollcall/operator");
  authenticator_.certificate = own.certificate_pem;
  Start();
  const fs::path folder = testing::TempDir();
  std::ofstream(folder / "own.crt") << own.certificate_pem;
  std::ofstream(folder / "own.key") << own.key_pem;
  httplib::Client client("https://" + server_->address(), folder / "own.crt", folder / "own.key");
  client.enable_server_certificate_verification(false);
  EXPECT_THAT(client.Get("/api/v1/whoami")->body, HasSubstr("\"name\":\"certificate\""));
  // A browser sends the cookie of a session that has ended, too.
  const std::string cookie = SessionOf(LogIn("viewer")).find("Cookie")->second;
  const httplib::Headers ended = {{"Cookie", cookie.substr(0, cookie.find('=')) + "=ended"}};
  EXPECT_THAT(client.Get("/api/v1/whoami", ended)->body, HasSubstr("\"name\":\"certificate\""));
  EXPECT_EQ(Get("/api/v1/whoami", ended)->status, 401);
  EXPECT_EQ(Get("/api/v1/whoami")->status, 401);
}

// Without an authenticator, as in `rollcall run`.
TEST(HttpTokenTest, TheTokenMakesItsHolderTheOwner) {
  FakeQueries queries;
  HttpServerOptions options;
  options.token = "0123456789abcdef0123";
  HttpServer server(&queries, options);
  ASSERT_TRUE(server.Start("127.0.0.1:0").ok());
  httplib::Client client("http://" + server.address());
  EXPECT_EQ(client.Get("/api/v1/jobs")->status, 401);
  const auto login = client.Get("/?token=" + options.token);
  EXPECT_EQ(login->status, 302);
  const std::string cookie = login->get_header_value("Set-Cookie");
  EXPECT_THAT(cookie, Not(HasSubstr(options.token)));
  const httplib::Headers session = {{"Cookie", cookie.substr(0, cookie.find(';'))},
                                    {"X-Rollcall", "1"}};
  EXPECT_EQ(client.Post("/api/v1/stacks?job=j&ranks=0", session, "", "text/plain")->status, 200);
}

TEST(HttpTokenTest, WithoutATokenEverybodyIsTheOwner) {
  FakeQueries queries;
  HttpServer server(&queries, {});
  ASSERT_TRUE(server.Start("127.0.0.1:0").ok());
  httplib::Client client("http://" + server.address());
  EXPECT_EQ(client.Get("/api/v1/jobs")->status, 200);
  // A proxy in front may have asked for a password.
  EXPECT_EQ(client.Get("/api/v1/jobs", {{"Authorization", "Basic YTpi"}})->status, 200);
}

}  // namespace
}  // namespace rollcall
