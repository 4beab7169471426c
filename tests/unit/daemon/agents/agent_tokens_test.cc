// SPDX-License-Identifier: Apache-2.0
// Who an agent is, by its connection and its token, and what becomes of its stream once the token
// is revoked.
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <spdlog/sinks/ostream_sink.h>
#include <spdlog/spdlog.h>

#include <chrono>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "agent_streams.h"
#include "base/digest/digest.h"
#include "base/edit_file.h"
#include "daemon/access/access.h"
#include "eventually.h"
#include "security/access_policy.h"
#include "security/token_edit.h"
#include "security/token_file.h"
#include "security/token_list.h"
#include "temporary_tree.h"

namespace rollcall {
namespace {

class AgentTokensTest : public AgentServiceTest {};

TEST_F(AgentTokensTest, ARemoteAgentCannotUseTheIdOfALocalOne) {
  grpc::ServerBuilder builder;
  int port = 0;
  AgentService service(&sink_);
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
  builder.RegisterService(service.service());
  const std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  HandMadeAgent here(server->InProcessChannel({}));
  here.Hello("node", 1, "node/17");
  sink_.Await(1);
  HandMadeAgent elsewhere(
      grpc::CreateChannel("127.0.0.1:" + std::to_string(port), grpc::InsecureChannelCredentials()));
  elsewhere.Hello("node", 1, "node/17");
  sink_.Await(2);
  EXPECT_TRUE(sink_.connected(0).is_trusted);
  EXPECT_FALSE(sink_.connected(1).is_trusted);
  EXPECT_NE(sink_.connected(0).id, sink_.connected(1).id);
  service.CloseAll();
  server->Shutdown(std::chrono::system_clock::now());
  server->Wait();
}

// A token file with one agent's token, for the host "node" and these tenants. Returns the token.
std::string MakeAgentToken(const std::string& path, const std::vector<std::string>& tenants) {
  const std::string token = *NewToken();
  TokenEntry entry;
  entry.name = "agent";
  entry.role = Role::kAgent;
  entry.hosts = {"node"};
  entry.tenants = tenants;
  entry.sha256 = Sha256Hex(token);
  EXPECT_TRUE(EditFile(path, true, [&entry](const std::string& text) {
                return AppendToken(text, entry);
              }).ok());
  return token;
}

TEST_F(AgentTokensTest, LimitsAnAgentToTheTenantsOfItsToken) {
  const TemporaryTree tree;
  const std::string path = tree.root() + "/tokens.yaml";
  const std::string token = MakeAgentToken(path, {"team-a", "team-b"});
  TokenFile tokens(path);
  ASSERT_TRUE(tokens.Poll().ok());
  AccessOptions options = DefaultAccessOptions();
  options.tokens = &tokens;
  const AccessPolicy policy(options);
  Refusals refusals;
  FailedLogins failed_logins;
  const Access access(&policy, &refusals, &failed_logins);
  AgentService service(&sink_, &counters_, &access);
  grpc::ServerBuilder builder;
  int port = 0;
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
  builder.RegisterService(service.service());
  const std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  HandMadeAgent elsewhere(
      grpc::CreateChannel("127.0.0.1:" + std::to_string(port), grpc::InsecureChannelCredentials()),
      token);
  elsewhere.Hello("node");
  sink_.Await(1);
  HandMadeAgent here(server->InProcessChannel({}));
  here.Hello("node");
  sink_.Await(2);
  EXPECT_EQ(sink_.connected(0).tenants, (std::vector<std::string>{"team-a", "team-b"}));
  EXPECT_EQ(sink_.connected(1).tenants, std::vector<std::string>{kAll});
  service.CloseAll();
  server->Shutdown(std::chrono::system_clock::now());
  server->Wait();
}

// Agents of other processes, with the token of a file. The log goes into a text.
class RevokedAgentTest : public testing::Test {
 protected:
  RevokedAgentTest() {
    EXPECT_TRUE(tokens_.Poll().ok());
    spdlog::set_default_logger(std::make_shared<spdlog::logger>(
        "test", std::make_shared<spdlog::sinks::ostream_sink_mt>(log_)));
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port_);
    builder.RegisterService(service_.service());
    server_ = builder.BuildAndStart();
  }
  ~RevokedAgentTest() override {
    service_.CloseAll();
    server_->Shutdown(std::chrono::system_clock::now());
    server_->Wait();
    spdlog::set_default_logger(before_);
  }

  std::unique_ptr<HandMadeAgent> Connect() {
    return std::make_unique<HandMadeAgent>(grpc::CreateChannel("127.0.0.1:" + std::to_string(port_),
                                                               grpc::InsecureChannelCredentials()),
                                           token_);
  }
  void RevokeAll() {
    std::ofstream(path_) << "tokens: []\n";
    ASSERT_TRUE(Eventually([this] {
      const absl::Status status = tokens_.Poll();
      return status.ok() && !tokens_.Identify(token_, time(nullptr)).ok();
    }));
  }
  int LinesWith(const std::string& text) const {
    std::istringstream lines(log_.str());
    int found = 0;
    for (std::string line; std::getline(lines, line);) {
      if (line.find(text) != std::string::npos) ++found;
    }
    return found;
  }

  static AccessOptions OptionsFor(const TokenFile* tokens) {
    AccessOptions options = DefaultAccessOptions();
    options.tokens = tokens;
    return options;
  }

  std::ostringstream log_;
  const std::shared_ptr<spdlog::logger> before_ = spdlog::default_logger();
  const TemporaryTree tree_;
  const std::string path_ = tree_.root() + "/tokens.yaml";
  const std::string token_ = MakeAgentToken(path_, {"team-a"});
  TokenFile tokens_{path_};
  const AccessPolicy policy_{OptionsFor(&tokens_)};
  Refusals refusals_;
  FailedLogins failed_logins_;
  const Access access_{&policy_, &refusals_, &failed_logins_};
  RecordingSink sink_;
  AgentService service_{&sink_, nullptr, &access_};
  int port_ = 0;
  std::unique_ptr<grpc::Server> server_;
};

TEST_F(RevokedAgentTest, LosesAStreamWithoutAHelloToo) {
  const auto silent = Connect();
  ASSERT_TRUE(Eventually([this] { return service_.streams() == 1; }));
  service_.EndInvalid(time(nullptr));
  EXPECT_EQ(service_.streams(), 1u);
  RevokeAll();
  service_.EndInvalid(time(nullptr));
  ASSERT_TRUE(Eventually([this] { return service_.streams() == 0; }));
  EXPECT_EQ(silent->Finish().error_code(), grpc::StatusCode::UNAUTHENTICATED);
}

// Between two checks of all streams.
TEST_F(RevokedAgentTest, CannotSayHelloAnyMore) {
  const auto agent = Connect();
  ASSERT_TRUE(Eventually([this] { return service_.streams() == 1; }));
  RevokeAll();
  agent->Hello("node");
  EXPECT_EQ(agent->Finish().error_code(), grpc::StatusCode::UNAUTHENTICATED);
  EXPECT_EQ(sink_.events(), Events());
}

TEST_F(RevokedAgentTest, ALineOfTheLogNamesTheAgentsThatLoseTheirStreamsOnce) {
  std::vector<std::unique_ptr<HandMadeAgent>> agents;
  for (int i = 0; i < 5; ++i) {
    agents.push_back(Connect());
    agents.back()->Hello("node");
  }
  sink_.Await(5);
  service_.EndInvalid(time(nullptr));
  EXPECT_EQ(LinesWith("ended"), 0) << log_.str();
  RevokeAll();
  service_.EndInvalid(time(nullptr));
  service_.EndInvalid(time(nullptr));
  for (const auto& agent : agents) {
    EXPECT_EQ(agent->Finish().error_code(), grpc::StatusCode::UNAUTHENTICATED);
  }
  EXPECT_EQ(LinesWith("ended 5 streams of agents"), 1) << log_.str();
  EXPECT_EQ(LinesWith("token agent, token agent, token agent and 2 more"), 1) << log_.str();
}

}  // namespace
}  // namespace rollcall
