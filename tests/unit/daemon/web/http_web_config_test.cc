// SPDX-License-Identifier: Apache-2.0
// The page with web.yml, the file of Prometheus's exporters, read by real clients.
#include "daemon/web/http_web_config.h"

#include <crypt.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "eventually.h"
#include "http_fixture.h"

namespace rollcall {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class HttpWebConfigTest : public HttpAccessTest {
 protected:
  void SetUp() override {
    char path[] = "/tmp/rollcall-web-XXXXXX";
    ASSERT_NE(mkdtemp(path), nullptr);
    folder_ = path;
    WritePair(authority_.Issue("DNS:first.example"));
    Write("web.yml", absl::StrCat("tls_server_config: {cert_file: tls.crt, key_file: tls.key}\n"
                                  "http_server_config: {headers: {X-Frame-Options: deny}}\n"
                                  "basic_auth_users: {prometheus: ",
                                  crypt("right", "$2b$05$abcdefghijklmnopqrstuu"), "}\n"));
    options_.web_config = folder_ / "web.yml";
  }
  void TearDown() override {
    server_.reset();
    fs::remove_all(folder_);
  }
  void Write(const std::string& name, const std::string& text) {
    std::ofstream(folder_ / (name + ".new")) << text;
    fs::permissions(folder_ / (name + ".new"), fs::perms::owner_read | fs::perms::owner_write);
    fs::rename(folder_ / (name + ".new"), folder_ / name);
  }
  void WritePair(const TestPair& pair) {
    Write("tls.crt", pair.certificate_pem);
    Write("tls.key", pair.key_pem);
  }
  httplib::Result GetAs(const std::string& user, const std::string& password,
                        const std::string& path = "/metrics") {
    return Get(path, {httplib::make_basic_authentication_header(user, password)});
  }

  fs::path folder_;
};

TEST_F(HttpWebConfigTest, ItsUsersAreViewersByTls) {
  Start();
  EXPECT_TRUE(server_->has_tls());
  const auto metrics = GetAs("prometheus", "right");
  EXPECT_EQ(metrics->status, 200);
  EXPECT_EQ(metrics->get_header_value("X-Frame-Options"), "deny");
  EXPECT_EQ(GetAs("prometheus", "wrong")->status, 401);
  EXPECT_EQ(GetAs("stranger", "right")->status, 401);
  EXPECT_THAT(GetAs("prometheus", "right", "/api/v1/whoami")->body,
              HasSubstr("\"tenants\":[\"*\"]"));
  EXPECT_EQ(Post("/api/v1/stacks?job=j&ranks=0",
                 {httplib::make_basic_authentication_header("prometheus", "right")})
                ->status,
            403);
  EXPECT_EQ(Get("/metrics", As("viewer"))->status, 200);  // tokens, too
}

// From the same network: all of loopback is one. For other networks see http_visitor_test.cc.
TEST_F(HttpWebConfigTest, ScrapesGoOnWhileAnotherClientGuesses) {
  Start();
  EXPECT_EQ(GetAs("prometheus", "right")->status, 200);
  for (int i = 0; i < 10; ++i) EXPECT_EQ(GetAs("prometheus", "wrong")->status, 401);
  EXPECT_EQ(GetAs("prometheus", "wrong")->status, 429);
  EXPECT_EQ(GetAs("prometheus", "right")->status, 200);
}

TEST_F(HttpWebConfigTest, TenWrongTokensAlsoBlockPasswords) {
  Start();
  for (int i = 0; i < 10; ++i) EXPECT_EQ(LogIn("guess")->status, 401);
  EXPECT_EQ(GetAs("prometheus", "right")->status, 429);
  EXPECT_EQ(
      client_->Post("/login", httplib::Params{{"user", "prometheus"}, {"token", "right"}})->status,
      429);
}

TEST_F(HttpWebConfigTest, APersonLogsInWithAPasswordUntilItChanges) {
  Start();
  EXPECT_THAT(Get("/login")->body, HasSubstr("name=\"user\""));
  const auto login =
      client_->Post("/login", httplib::Params{{"user", "prometheus"}, {"token", "right"}});
  EXPECT_EQ(login->status, 303);
  const httplib::Headers session = SessionOf(login);
  EXPECT_EQ(Get("/", session)->status, 200);
  Write("web.yml", absl::StrCat("tls_server_config: {cert_file: tls.crt, key_file: tls.key}\n"
                                "basic_auth_users: {prometheus: ",
                                crypt("other", "$2b$05$abcdefghijklmnopqrstuu"), "}\n"));
  EXPECT_TRUE(Eventually([&] { return Get("/", session)->status == 401; }));
  EXPECT_EQ(GetAs("prometheus", "other")->status, 200);
}

TEST_F(HttpWebConfigTest, TakesARenewedCertificate) {
  Start();
  const auto knows = [this](const std::string& name) {
    const auto answer = Connect()->Get("/login", httplib::Headers{{"Host", name}});
    return answer && answer->status == 200;
  };
  EXPECT_TRUE(knows("first.example"));
  EXPECT_FALSE(knows("second.example"));
  WritePair(authority_.Issue("DNS:second.example"));
  EXPECT_TRUE(Eventually([&] { return knows("second.example"); }));
}

TEST_F(HttpWebConfigTest, ABadFileKeepsTheServerFromStarting) {
  Write("web.yml", "tls_config: {}\n");
  HttpServer server(&queries_, options_);
  const absl::Status status = server.Start("127.0.0.1:0");
  EXPECT_THAT(std::string(status.message()), HasSubstr("the key tls_config is not supported"));
}

TEST_F(HttpWebConfigTest, CurlReadsThePage) {
  if (system("curl --version > /dev/null") != 0) GTEST_SKIP() << "curl is not installed";
  Start();
  std::ofstream(folder_ / "ca.pem") << authority_.pem();
  const std::string port = server_->address().substr(server_->address().rfind(':') + 1);
  const auto curl = [&](const std::string& more) {
    return system(absl::StrCat("curl -sSf -o /dev/null --max-time 20 --noproxy '*' --resolve ",
                               "first.example:", port, ":127.0.0.1 ", more, port,
                               "/metrics 2> /dev/null")
                      .c_str());
  };
  const std::string trusted = absl::StrCat("--cacert ", std::string(folder_ / "ca.pem"), " ");
  EXPECT_EQ(curl(trusted + "-u prometheus:right https://first.example:"), 0);
  EXPECT_NE(curl(trusted + "-u prometheus:wrong https://first.example:"), 0);
  EXPECT_NE(curl("-u prometheus:right https://first.example:"), 0);  // an unknown authority
  EXPECT_NE(curl("-u prometheus:right http://first.example:"), 0);   // no TLS
}

}  // namespace
}  // namespace rollcall
