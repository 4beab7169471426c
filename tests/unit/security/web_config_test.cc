// SPDX-License-Identifier: Apache-2.0
// web.yml, and the files that it names.
#include "security/web_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "security/web_config_file.h"
#include "test_authority.h"

namespace rollcall {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;

// By crypt("right", "$2b$05$abcdefghijklmnopqrstuu"), from Python.
constexpr char kHash[] = "$2b$05$abcdefghijklmnopqrstuu8xaCxxL82bnl.UY74PMksDxIJShppPC";

std::string ErrorOf(const std::string& text) {
  return std::string(ParseWebConfig(text, "/etc").status().message());
}

TEST(WebConfigTest, ReadsAFileOfPrometheus) {
  const auto config = ParseWebConfig(std::string(R"(
tls_server_config:
  cert_file: tls.crt
  key_file: /secret/tls.key
  client_auth_type: RequireAndVerifyClientCert
  client_ca_file: ca.crt
  client_allowed_sans: [prometheus.example, other.example]
  min_version: TLS13
http_server_config:
  http2: false
  headers:
    Strict-Transport-Security: max-age=31536000
basic_auth_users:
  prometheus: )") + kHash + "\n",
                                     "/etc");
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_TRUE(config->has_tls);
  EXPECT_EQ(config->cert_file, "/etc/tls.crt");
  EXPECT_EQ(config->key_file, "/secret/tls.key");
  EXPECT_EQ(config->client_ca_file, "/etc/ca.crt");
  EXPECT_TRUE(config->requires_client_certificate);
  EXPECT_TRUE(config->needs_tls13);
  EXPECT_THAT(config->client_sans, ElementsAre("prometheus.example", "other.example"));
  EXPECT_THAT(config->users, ElementsAre(Pair("prometheus", kHash)));
  EXPECT_THAT(config->headers, ElementsAre(Pair("Strict-Transport-Security", "max-age=31536000")));
}

TEST(WebConfigTest, AnEmptyFileSaysNothing) {
  const auto config = ParseWebConfig("", "");
  ASSERT_TRUE(config.ok());
  EXPECT_FALSE(config->has_tls);
  EXPECT_TRUE(config->users.empty());
}

struct Mistake {
  const char* text;
  const char* error;
};

TEST(WebConfigTest, NamesWhatIsWrong) {
  for (const Mistake& mistake : std::vector<Mistake>{
           {"tls_config: {}", "the key tls_config"},
           {"tls_server_config: {cert: x}", "the key cert "},
           {"tls_server_config: {cipher_suites: [x]}", "the key cipher_suites"},
           {"tls_server_config: {cert_file: x}", "needs cert_file and key_file"},
           {"tls_server_config: x", "has no keys"},
           {"tls_server_config: {cert_file: x, key_file: y, min_version: TLS11}", "TLS11"},
           {"tls_server_config: {cert_file: x, key_file: y, "
            "client_auth_type: RequireAnyClientCert}",
            "RequireAnyClientCert is not supported"},
           {"tls_server_config: {cert_file: x, key_file: y, "
            "client_auth_type: VerifyClientCertIfGiven}",
            "needs client_ca_file"},
           {"tls_server_config: {cert_file: x, key_file: y, client_ca_file: z}",
            "client_auth_type"},
           {"tls_server_config: {cert_file: [x], key_file: y}", "not YAML"},
           {"basic_auth_users: {a: secret}", "user a: not a bcrypt hash"},
           {"http_server_config: {headers: {X-Other: x}}", "X-Other cannot be set"},
           {"http_server_config: {headers: {X-Frame-Options: \"a\\r\\nb\"}}", "not one line"},
           {"http_server_config: {http2: maybe}", "not YAML"},
           {"- a", "not a list of keys"},
           {"a: [", "not YAML"},
       }) {
    EXPECT_THAT(ErrorOf(mistake.text), HasSubstr(mistake.error)) << mistake.text;
  }
}

TEST(WebConfigTest, DoesNotRepeatSecretsInErrors) {
  EXPECT_THAT(ErrorOf("basic_auth_users: {a: secret}"), testing::Not(HasSubstr("secret")));
}

class WebConfigFileTest : public testing::Test {
 protected:
  void SetUp() override {
    char path[] = "/tmp/rollcall-web-XXXXXX";
    ASSERT_NE(mkdtemp(path), nullptr);
    folder_ = path;
    Write("web.yml", "tls_server_config: {cert_file: tls.crt, key_file: tls.key}\n");
    WritePair(authority_.Issue("DNS:first"));
  }
  void TearDown() override { fs::remove_all(folder_); }
  // As editors and secret managers do: a new file takes the place of the old one.
  void Write(const std::string& name, const std::string& text) {
    std::ofstream(folder_ / (name + ".new")) << text;
    fs::permissions(folder_ / (name + ".new"), fs::perms::owner_read | fs::perms::owner_write);
    fs::rename(folder_ / (name + ".new"), folder_ / name);
  }
  void WritePair(const TestPair& pair) {
    Write("tls.crt", pair.certificate_pem);
    Write("tls.key", pair.key_pem);
  }
  std::string Poll() { return std::string(file().Poll(time(nullptr)).message()); }
  WebConfigFile& file() {
    if (file_ == nullptr) file_ = std::make_unique<WebConfigFile>(folder_ / "web.yml");
    return *file_;
  }
  std::string name() { return file().current()->tls->names().front(); }

  const OpensslAuthority authority_;
  fs::path folder_;
  std::unique_ptr<WebConfigFile> file_;
};

TEST_F(WebConfigFileTest, TakesARenewedPair) {
  EXPECT_EQ(Poll(), "");
  EXPECT_EQ(name(), "first");
  const auto before = file().current();
  EXPECT_EQ(Poll(), "");
  EXPECT_EQ(file().current(), before);
  WritePair(authority_.Issue("DNS:second"));
  EXPECT_EQ(Poll(), "");
  EXPECT_EQ(name(), "second");
}

TEST_F(WebConfigFileTest, ABadFileNeverReplacesAGoodOne) {
  EXPECT_EQ(Poll(), "");
  const TestPair second = authority_.Issue("DNS:second");
  Write("tls.crt", second.certificate_pem);  // half of a renewal
  EXPECT_THAT(Poll(), HasSubstr("do not belong together"));
  EXPECT_THAT(Poll(), HasSubstr("do not belong together"));
  EXPECT_EQ(name(), "first");
  Write("tls.key", second.key_pem);
  EXPECT_EQ(Poll(), "");
  EXPECT_EQ(name(), "second");
  WritePair(authority_.Issue("DNS:expired", -7200, -3600));
  EXPECT_THAT(Poll(), HasSubstr("has expired"));
  fs::remove(folder_ / "tls.crt");
  EXPECT_NE(Poll(), "");
  Write("tls.crt", "garbage");
  EXPECT_THAT(Poll(), HasSubstr("no certificate"));
  Write("web.yml", "garbage: [");
  EXPECT_THAT(Poll(), HasSubstr("not YAML"));
  EXPECT_EQ(name(), "second");
}

TEST_F(WebConfigFileTest, UsesNoKeyThatOthersCanRead) {
  fs::permissions(folder_ / "tls.key", fs::perms::others_read, fs::perm_options::add);
  EXPECT_THAT(Poll(), HasSubstr("chmod go-rwx"));
  EXPECT_EQ(file().current(), nullptr);
}

TEST_F(WebConfigFileTest, TlsDoesNotEndWhileTheDaemonRuns) {
  EXPECT_EQ(Poll(), "");
  Write("web.yml", "basic_auth_users: {}\n");
  EXPECT_THAT(Poll(), HasSubstr("restart the daemon"));
  EXPECT_NE(file().current()->tls, nullptr);
}

TEST_F(WebConfigFileTest, FailsWithoutAFile) {
  fs::remove(folder_ / "web.yml");
  EXPECT_NE(Poll(), "");
  EXPECT_EQ(file().current(), nullptr);
}

}  // namespace
}  // namespace rollcall
