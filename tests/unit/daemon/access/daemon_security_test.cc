// SPDX-License-Identifier: Apache-2.0
#include "daemon/access/daemon_security.h"

#include <gtest/gtest.h>
#include <httplib.h>
#include <spdlog/sinks/ostream_sink.h>
#include <spdlog/spdlog.h>
#include <sys/stat.h>
#include <time.h>

#include <memory>
#include <sstream>
#include <string>
#include <thread>

#include "eventually.h"
#include "temporary_tree.h"
#include "test_certificates.h"

namespace rollcall {
namespace {

// Only the thread of the test logs: Poll() does.
class DaemonSecurityTest : public testing::Test {
 protected:
  DaemonSecurityTest() {
    spdlog::set_default_logger(std::make_shared<spdlog::logger>(
        "test", std::make_shared<spdlog::sinks::ostream_sink_st>(log_)));
  }
  ~DaemonSecurityTest() override { spdlog::set_default_logger(before_); }

  const AllThreadsEnd all_threads_end_;
  std::ostringstream log_;
  const std::shared_ptr<spdlog::logger> before_ = spdlog::default_logger();
};

TEST_F(DaemonSecurityTest, SaysThatTheUrlOfTheKeysAnswersWithNothing) {
  httplib::Server server;
  server.Get("/keys", [](const httplib::Request&, httplib::Response&) {});
  const int port = server.bind_to_any_port("127.0.0.1");
  std::thread thread([&server] { server.listen_after_bind(); });
  SecurityOptions options;
  options.jwks = "http://127.0.0.1:" + std::to_string(port) + "/keys";
  auto security = DaemonSecurity::Open(options);
  ASSERT_TRUE(security.ok()) << security.status();
  EXPECT_TRUE(Eventually([&] {
    (*security)->Poll(0);
    return log_.str().find("/keys answers with nothing") != std::string::npos;
  }));
  *security = nullptr;
  server.stop();
  thread.join();
}

TEST_F(DaemonSecurityTest, RefusesAReadableTokenForTheKeysAtTheStart) {
  const TemporaryTree tree;
  tree.WriteSecret("token", "abc");
  SecurityOptions options;
  options.jwks = "http://127.0.0.1:1/keys";
  options.jwks_token_file = tree.root() + "/token";
  EXPECT_TRUE(DaemonSecurity::Open(options).ok());
  ASSERT_EQ(chmod(options.jwks_token_file.c_str(), 0644), 0);
  EXPECT_EQ(DaemonSecurity::Open(options).status().message(),
            "--jwks-token-file: every user of this host can read the token in " +
                options.jwks_token_file + "; type: chmod go-rwx " + options.jwks_token_file);
  options.jwks_token_file = tree.root() + "/none";
  EXPECT_FALSE(DaemonSecurity::Open(options).ok());
}

TEST_F(DaemonSecurityTest, AnAuthorityThatIsTakenOutEndsWhatItsCertificatesBegan) {
  const int64_t now_s = time(nullptr);
  const Validity today{now_s - kDay, now_s + kDay};
  const TestAuthority stays(today, "Stays"), goes(today, "Goes");
  const TemporaryTree tree;
  const KeyAndCertificate pair = stays.Server(today);
  tree.Write("tls.crt", pair.certificate_pem);
  tree.WriteSecret("tls.key", pair.key_pem);
  tree.Write("ca.crt", stays.pem() + goes.pem());
  SecurityOptions options;
  options.tls = {tree.root() + "/tls.crt", tree.root() + "/tls.key", tree.root() + "/ca.crt", ""};
  const auto security = DaemonSecurity::Open(options);
  ASSERT_TRUE(security.ok()) << security.status();
  const Authenticator& authenticator = (*security)->authenticator();
  const auto presented = [&](const TestAuthority& authority) {
    Presented agent;
    agent.peer = "ipv4:10.0.0.1:41922";
    agent.is_encrypted = agent.is_by_client_ca = true;
    agent.certificate_pem =
        authority.Client("spiffe://d/rollcall/agent/host/node", today).certificate_pem;
    return agent;
  };
  const Presented of_stays = presented(stays), of_goes = presented(goes);
  const auto first = authenticator.Identify(of_stays), second = authenticator.Identify(of_goes);
  ASSERT_TRUE(first.ok() && second.ok()) << first.status() << second.status();
  tree.Write("ca.crt", stays.pem());
  EXPECT_TRUE(Eventually([&] {
    (*security)->Poll(now_s);
    return !authenticator.IsStillValid(*second);
  }));
  EXPECT_TRUE(authenticator.IsStillValid(*first));
  EXPECT_TRUE(authenticator.Identify(of_stays).ok());
  EXPECT_FALSE(authenticator.Identify(of_goes).ok()) << "a call on the open connection";
}

}  // namespace
}  // namespace rollcall
