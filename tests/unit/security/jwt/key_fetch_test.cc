// SPDX-License-Identifier: Apache-2.0
// Real servers on loopback, with and without TLS.
#include "security/jwt/key_fetch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <httplib.h>
#include <sys/stat.h>

#include <ctime>
#include <thread>

#include "temporary_tree.h"
#include "test_certificates.h"

namespace rollcall {
namespace {

using ::testing::HasSubstr;

std::string MessageOf(const absl::StatusOr<std::string>& result) {
  return std::string(result.status().message());
}

// Answers at /keys, /big, /moved, and /guarded with the token "abc" only.
template <typename Server>
class Running {
 public:
  template <typename... Arguments>
  explicit Running(const Arguments&... arguments) : server_(arguments...) {
    using httplib::Request, httplib::Response;
    server_.Get("/keys", [](const Request&, Response& r) { r.set_content("keys", "text/plain"); });
    server_.Get("/big", [](const Request&, Response& r) {
      r.set_content(std::string(2 << 20, 'x'), "text/plain");
    });
    server_.Get("/moved", [](const Request&, Response& r) { r.set_redirect("/keys"); });
    server_.Get("/guarded", [](const Request& request, Response& r) {
      r.status = request.get_header_value("Authorization") == "Bearer abc" ? 200 : 401;
      r.set_content("guarded", "text/plain");
    });
    port_ = server_.bind_to_any_port("127.0.0.1");
    thread_ = std::thread([this] { server_.listen_after_bind(); });
    while (!server_.is_running()) std::this_thread::yield();
  }
  ~Running() {
    server_.stop();
    thread_.join();
  }
  std::string Url(const std::string& scheme, const std::string& path) const {
    return scheme + "://127.0.0.1:" + std::to_string(port_) + path;
  }

 private:
  Server server_;
  int port_ = 0;
  std::thread thread_;
};

TEST(KeyFetchTest, OnlyHttpsAndLoopbackAreUrlsOfKeys) {
  for (const char* good : {"https://kubernetes.default.svc/openid/v1/jwks",
                           "https://10.0.0.1:6443/x", "http://127.0.0.1:8001/openid/v1/jwks",
                           "http://localhost:8001", "http://[::1]:8001/x", "http://127.0.0.1/x"}) {
    EXPECT_TRUE(CheckKeyUrl(good).ok()) << good;
  }
  for (const char* bad :
       {"", "keys.json", "http://kubernetes.default.svc/x", "http://10.0.0.1/x", "https://",
        "ftp://127.0.0.1/x", "http://127.0.0.1.example/x", "http://localhost.example/x",
        "http://localhost:80@example/x", "https://user:secret@example/x"}) {
    EXPECT_FALSE(CheckKeyUrl(bad).ok()) << bad;
  }
  EXPECT_FALSE(FetchKeys({"http://10.0.0.1/x", "", ""}).ok());
}

TEST(KeyFetchTest, AnAnswerIsFetchedFromLoopback) {
  const Running<httplib::Server> server;
  EXPECT_EQ(*FetchKeys({server.Url("http", "/keys"), "", ""}), "keys");
}

TEST(KeyFetchTest, ATokenComesFromItsFile) {
  const TemporaryTree tree;
  tree.WriteSecret("token", "abc\n");
  tree.WriteSecret("bad", "abc\nX-Other: 1");
  const Running<httplib::Server> server;
  const std::string url = server.Url("http", "/guarded");
  EXPECT_EQ(*FetchKeys({url, "", tree.root() + "/token"}), "guarded");
  EXPECT_THAT(MessageOf(FetchKeys({url, "", ""})), HasSubstr("--jwks-token-file=FILE"));
  EXPECT_THAT(MessageOf(FetchKeys({url, "", tree.root() + "/bad"})), HasSubstr("holds no token"));
  EXPECT_FALSE(FetchKeys({url, "", tree.root() + "/none"}).ok());
  ASSERT_EQ(chmod((tree.root() + "/token").c_str(), 0644), 0);
  EXPECT_THAT(MessageOf(FetchKeys({url, "", tree.root() + "/token"})), HasSubstr("chmod go-rwx"));
}

TEST(KeyFetchTest, WhatIsTooLongOrElsewhereIsNotTaken) {
  const Running<httplib::Server> server;
  EXPECT_THAT(MessageOf(FetchKeys({server.Url("http", "/big"), "", ""})), HasSubstr("1 MiB"));
  EXPECT_THAT(MessageOf(FetchKeys({server.Url("http", "/moved"), "", ""})), HasSubstr("302"));
  EXPECT_THAT(MessageOf(FetchKeys({server.Url("http", "/none"), "", ""})), HasSubstr("404"));
  EXPECT_FALSE(FetchKeys({"http://127.0.0.1:1/keys", "", ""}).ok());
}

TEST(KeyFetchTest, TheServersCertificateIsVerified) {
  const int64_t now_s = time(nullptr);
  const Validity validity = {now_s - kDay, now_s + kDay};
  const TestAuthority ours(validity), other(validity, "another");
  const KeyAndCertificate pair = ours.Server(validity);
  const KeyAndCertificate elsewhere =
      ours.Issue({"elsewhere", {}, {"elsewhere.example"}, {}, /*is_server=*/true}, validity);
  const TemporaryTree tree;
  tree.Write("cert", pair.certificate_pem);
  tree.Write("key", pair.key_pem);
  tree.Write("cert2", elsewhere.certificate_pem);
  tree.Write("key2", elsewhere.key_pem);
  tree.Write("ca", ours.pem());
  tree.Write("other", other.pem());
  const auto path = [&tree](const char* name) { return tree.root() + "/" + name; };
  const Running<httplib::SSLServer> server(path("cert").c_str(), path("key").c_str());
  const std::string url = server.Url("https", "/keys");
  const auto fetched = FetchKeys({url, path("ca"), ""});
  ASSERT_TRUE(fetched.ok()) << fetched.status();
  EXPECT_EQ(*fetched, "keys");
  EXPECT_FALSE(FetchKeys({url, path("other"), ""}).ok());
  EXPECT_FALSE(FetchKeys({url, path("none"), ""}).ok());
  EXPECT_FALSE(FetchKeys({url, "", ""}).ok()) << "the system does not know this authority";
  const Running<httplib::SSLServer> wrong(path("cert2").c_str(), path("key2").c_str());
  EXPECT_FALSE(FetchKeys({wrong.Url("https", "/keys"), path("ca"), ""}).ok());
}

}  // namespace
}  // namespace rollcall
