// SPDX-License-Identifier: Apache-2.0
// The daemon's end of the agents' streams: connected and disconnected agents.
#include "daemon/agents/agent_service.h"

#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <spdlog/sinks/ostream_sink.h>
#include <spdlog/spdlog.h>

#include <chrono>
#include <fstream>
#include <functional>
#include <sstream>
#include <thread>

#include "absl/synchronization/mutex.h"
#include "base/digest/digest.h"
#include "base/edit_file.h"
#include "daemon/access/access.h"
#include "eventually.h"
#include "rollcall/v1/agent.grpc.pb.h"
#include "security/access_policy.h"
#include "security/token_edit.h"
#include "security/token_file.h"
#include "security/token_list.h"
#include "temporary_tree.h"

namespace rollcall {
namespace {

// Records the calls of the service.
class Sink : public AgentSink {
 public:
  void OnTick(const AgentName& agent, std::shared_ptr<const v1::Tick> tick,
              std::function<void()> applied) override {
    {
      const absl::MutexLock lock(&mutex_);
      if (holds_ticks_) held_.push_back(std::exchange(applied, [] {}));
    }
    {
      const absl::MutexLock lock(&mutex_);
      newest_ = *tick;
    }
    Record("tick " + agent.host);
    applied();
  }
  void OnHostFacts(const AgentName&, const v1::HostFactsReply&) override {}
  void OnStackReply(const AgentName& agent, const v1::StackReply&) override {
    Record("stack " + agent.host);
  }
  void OnUnrecorded(const AgentName& agent, const v1::UnrecordedProcesses& list) override {
    Record(absl::StrCat("unrecorded ", agent.host, " ", list.processes_size()));
  }
  void OnConnected(const AgentName& agent) override {
    {
      const absl::MutexLock lock(&mutex_);
      connected_.push_back(agent);
    }
    Record("connected " + agent.host);
  }
  void OnDisconnected(const AgentName& agent) override { Record("gone " + agent.host); }

  // From now on ticks stay unapplied until Apply().
  void HoldTicks() {
    const absl::MutexLock lock(&mutex_);
    holds_ticks_ = true;
  }
  void Apply() {
    std::vector<std::function<void()>> held;
    {
      const absl::MutexLock lock(&mutex_);
      held.swap(held_);
    }
    for (const auto& applied : held) applied();
  }

  v1::Tick newest() const {
    const absl::MutexLock lock(&mutex_);
    return newest_;
  }
  AgentName connected(size_t i) const {
    const absl::MutexLock lock(&mutex_);
    return connected_.at(i);
  }
  std::vector<std::string> events() const {
    const absl::MutexLock lock(&mutex_);
    return events_;
  }
  // Waits until the sink has recorded `count` calls.
  void Await(size_t count) const {
    const auto enough = [this, count]()
                            ABSL_SHARED_LOCKS_REQUIRED(mutex_) { return events_.size() >= count; };
    const absl::MutexLock lock(&mutex_);
    mutex_.AwaitWithTimeout(absl::Condition(&enough), absl::Seconds(60));
  }

 private:
  void Record(const std::string& what) {
    const absl::MutexLock lock(&mutex_);
    events_.push_back(what);
  }

  mutable absl::Mutex mutex_;
  v1::Tick newest_ ABSL_GUARDED_BY(mutex_);
  bool holds_ticks_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<std::function<void()>> held_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::string> events_ ABSL_GUARDED_BY(mutex_);
  std::vector<AgentName> connected_ ABSL_GUARDED_BY(mutex_);
};

// An agent's end of a stream.
class HandMadeAgent {
 public:
  explicit HandMadeAgent(grpc::Server* server) : HandMadeAgent(server->InProcessChannel({})) {}
  explicit HandMadeAgent(const std::shared_ptr<grpc::ChannelInterface>& channel)
      : HandMadeAgent(channel, "") {}
  // Presents the token, unless it is empty.
  HandMadeAgent(const std::shared_ptr<grpc::ChannelInterface>& channel, const std::string& token)
      : stub_(v1::AgentLink::NewStub(channel)) {
    if (!token.empty()) context_.AddMetadata("authorization", "Bearer " + token);
    stream_ = stub_->Connect(&context_);
  }

  void Hello(const std::string& host, uint32_t protocol = 1, const std::string& id = "") {
    v1::AgentMessage message;
    message.mutable_hello()->set_agent_id(id);
    message.mutable_hello()->set_tick_ns(50'000'000);
    message.mutable_hello()->set_protocol(protocol);
    message.mutable_hello()->set_host(host);
    stream_->Write(message);
  }
  void Tick() {
    v1::Tick tick;
    tick.set_now_ns(1);
    Send(tick);
  }
  void Send(const v1::Tick& tick) {
    v1::AgentMessage message;
    *message.mutable_tick() = tick;
    stream_->Write(message);
  }
  // A tick of these bytes: on the wire, a field that this client does not know looks like one that
  // it does.
  void SendTickOf(const std::string& bytes) {
    constexpr int kTick = 2;
    v1::AgentMessage message;
    message.GetReflection()->MutableUnknownFields(&message)->AddLengthDelimited(kTick, bytes);
    stream_->Write(message);
  }
  bool Read(v1::DaemonMessage* message) { return stream_->Read(message); }
  grpc::Status Finish() {
    stream_->WritesDone();
    v1::DaemonMessage rest;
    while (stream_->Read(&rest)) {
    }
    return stream_->Finish();
  }

 private:
  std::unique_ptr<v1::AgentLink::Stub> stub_;
  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientReaderWriter<v1::AgentMessage, v1::DaemonMessage>> stream_;
};

class AgentServiceTest : public testing::Test {
 protected:
  AgentServiceTest() : service_(&sink_, &counters_) {
    grpc::ServerBuilder builder;
    builder.SetMaxReceiveMessageSize(16 << 20);
    builder.RegisterService(service_.service());
    server_ = builder.BuildAndStart();
  }
  ~AgentServiceTest() override {
    service_.CloseAll();
    server_->Shutdown(std::chrono::system_clock::now());
    server_->Wait();
  }

  Sink sink_;
  DaemonCounters counters_;
  AgentService service_;
  std::unique_ptr<grpc::Server> server_;
};

using Events = std::vector<std::string>;

TEST_F(AgentServiceTest, NoTimeOfATickIsTooLargeToAddOrSubtract) {
  constexpr int64_t kLatestNs = int64_t{1} << 61;
  v1::Tick tick;
  tick.set_now_ns(INT64_MIN);
  v1::ProcessUpdate* process = tick.add_processes();
  process->mutable_identity()->set_started_ns(INT64_MAX);
  process->mutable_evidence()->set_ended_ns(INT64_MIN);
  process->mutable_evidence()->add_blocked()->set_since_ns(INT64_MAX);
  v1::CommUpdate* comm = process->add_communicators();
  comm->set_waiting_since_ns(INT64_MAX);
  comm->set_state_since_ns(5);
  for (const int64_t delta_ns : {int64_t{100}, INT64_MAX, INT64_MIN, int64_t{7}}) {
    comm->mutable_records()->add_entered_delta_ns(delta_ns);
    comm->mutable_records()->add_duration_ns(delta_ns);
  }
  HandMadeAgent agent(server_.get());
  agent.Hello("node-1");
  agent.Send(tick);
  sink_.Await(2);
  const v1::Tick came = sink_.newest();
  EXPECT_EQ(came.now_ns(), 0);
  ASSERT_EQ(came.processes_size(), 1);
  EXPECT_EQ(came.processes(0).identity().started_ns(), kLatestNs);
  EXPECT_EQ(came.processes(0).evidence().ended_ns(), 0);
  EXPECT_EQ(came.processes(0).evidence().blocked(0).since_ns(), kLatestNs);
  const v1::CommUpdate& update = came.processes(0).communicators(0);
  EXPECT_EQ(update.waiting_since_ns(), kLatestNs);
  EXPECT_EQ(update.state_since_ns(), 5);
  int64_t entered_ns = 0;
  for (int i = 0; i < 4; ++i) {
    entered_ns += update.records().entered_delta_ns(i);
    EXPECT_GE(entered_ns, 0);
    EXPECT_LE(entered_ns + update.records().duration_ns(i), kLatestNs);
  }
  EXPECT_EQ(entered_ns, 7);
  EXPECT_EQ(update.records().duration_ns(2), -1) << "the call has not returned";
}

TEST_F(AgentServiceTest, AnAgentConnectsTicksAndDisconnects) {
  HandMadeAgent agent(server_.get());
  agent.Hello("node");
  agent.Tick();
  sink_.Await(2);
  EXPECT_EQ(service_.agents(), 1);
  EXPECT_TRUE(agent.Finish().ok());
  sink_.Await(3);
  EXPECT_EQ(sink_.events(), (Events{"connected node", "tick node", "gone node"}));
  EXPECT_EQ(service_.agents(), 0);
}

TEST_F(AgentServiceTest, ReadsNoTickBeforeTheLastOneIsApplied) {
  sink_.HoldTicks();
  HandMadeAgent slow(server_.get()), other(server_.get());
  slow.Hello("slow");
  sink_.Await(1);
  slow.Tick();
  sink_.Await(2);
  std::thread second_tick([&] { slow.Tick(); });  // waits for the daemon
  other.Hello("other");
  sink_.Await(3);
  other.Tick();
  sink_.Await(4);
  EXPECT_EQ(sink_.events(),
            (Events{"connected slow", "tick slow", "connected other", "tick other"}));
  sink_.Apply();
  sink_.Await(5);
  EXPECT_EQ(sink_.events().back(), "tick slow");
  second_tick.join();
  sink_.Apply();
  slow.Finish();
  other.Finish();
}

TEST_F(AgentServiceTest, AStreamMayEndBeforeItsTickIsApplied) {
  sink_.HoldTicks();
  {
    HandMadeAgent agent(server_.get());
    agent.Hello("node");
    agent.Tick();
    sink_.Await(2);
    service_.CloseAll();
    EXPECT_EQ(agent.Finish().error_code(), grpc::StatusCode::CANCELLED);
  }
  sink_.Await(3);
  EXPECT_EQ(sink_.events().back(), "gone node");
  sink_.Apply();
}

TEST_F(AgentServiceTest, CutsAndCountsALongHostNameAndId) {
  HandMadeAgent agent(server_.get());
  agent.Hello(std::string(1000, 'h'), 1, std::string(1000, 'i'));
  sink_.Await(1);
  EXPECT_EQ(sink_.connected(0).host, std::string(limits::kName, 'h'));
  EXPECT_EQ(sink_.connected(0).id,
            "here " + std::string(limits::kName, 'h') + " " + std::string(limits::kAgentId, 'i'));
  EXPECT_EQ(counters_.Get().dropped[static_cast<size_t>(Dropped::kTexts)], 2u);
  agent.Finish();
}

TEST_F(AgentServiceTest, IgnoresTicksBeforeTheHello) {
  HandMadeAgent agent(server_.get());
  agent.Tick();
  agent.Tick();
  agent.Hello("node");
  sink_.Await(1);
  EXPECT_EQ(sink_.events(), Events{"connected node"});
  agent.Finish();
}

TEST_F(AgentServiceTest, AHelloOfAMegabyteIsRefused) {
  HandMadeAgent agent(server_.get());
  agent.Hello(std::string(1 << 20, 'n'));
  EXPECT_EQ(agent.Finish().error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(sink_.events(), Events{});
}

// 3,000,000 empty communicators of one process: 6 MB that would become 1,100.
TEST_F(AgentServiceTest, AMessageThatBecomesHundredsOfMegabytesIsNotParsed) {
  HandMadeAgent agent(server_.get());
  agent.Hello("node");
  sink_.Await(1);
  std::string communicators;
  for (int i = 0; i < 3'000'000; ++i) communicators += std::string("\x2a\x00", 2);
  std::string process = "\x1a";
  for (size_t size = communicators.size(); size > 0; size >>= 7) {
    process += static_cast<char>(size < 128 ? size : size % 128 + 128);
  }
  agent.SendTickOf(process + communicators);
  EXPECT_EQ(agent.Finish().error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  sink_.Await(2);
  EXPECT_EQ(sink_.events(), (Events{"connected node", "gone node"}));
}

// A tick that becomes so large that no other one may be parsed beside it.
std::string TickThatTakesAllRoom() {
  std::string communicators;
  for (int i = 0; i < 600'000; ++i) communicators += std::string("\x2a\x00", 2);
  std::string process = "\x1a";
  for (size_t size = communicators.size(); size > 0; size >>= 7) {
    process += static_cast<char>(size < 128 ? size : size % 128 + 128);
  }
  return process + communicators;
}

TEST(UnparsedMessagesTest, AnAgentWithTooManyUnparsedMessagesLosesAStream) {
  Sink sink;
  sink.HoldTicks();
  StreamLimits limits;
  limits.unparsed_bytes = 4 << 20;
  AgentService service(&sink, nullptr, nullptr, limits);
  grpc::ServerBuilder builder;
  builder.SetMaxReceiveMessageSize(16 << 20);
  builder.RegisterService(service.service());
  const std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  HandMadeAgent first(server.get()), second(server.get()), third(server.get());
  first.Hello("first");
  second.Hello("second");
  third.Hello("third");
  sink.Await(3);
  first.SendTickOf(TickThatTakesAllRoom());
  sink.Await(4);
  v1::Tick large;
  large.set_now_ns(1);
  large.add_processes()->mutable_identity()->set_command(std::string(2'200'000, 'c'));
  second.Send(large);
  third.Send(large);
  // One of the two that wait is too much.
  sink.Await(5);
  const bool is_third = sink.events().back() == "gone third";
  EXPECT_TRUE(is_third || sink.events().back() == "gone second") << sink.events().back();
  HandMadeAgent& refused = is_third ? third : second;
  EXPECT_EQ(refused.Finish().error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  sink.Apply();
  sink.Await(6);
  EXPECT_EQ(sink.events().back(), is_third ? "tick second" : "tick third");
  sink.Apply();
  service.CloseAll();
  server->Shutdown(std::chrono::system_clock::now());
  server->Wait();
}

TEST_F(AgentServiceTest, AnotherProtocolIsRefused) {
  HandMadeAgent agent(server_.get());
  agent.Hello("node", 99);
  EXPECT_EQ(agent.Finish().error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_EQ(sink_.events(), Events{});
}

TEST_F(AgentServiceTest, RefusesAndCountsOneStreamTooMany) {
  grpc::ServerBuilder builder;
  AgentService service(&sink_, &counters_, nullptr, {2, 1});
  builder.RegisterService(service.service());
  const std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  {
    HandMadeAgent first(server.get());
    first.Hello("first");
    sink_.Await(1);
    HandMadeAgent silent(server.get());  // a stream without a hello counts too
    ASSERT_TRUE(Eventually([&] { return service.streams() == 2; }));
    const grpc::Status refused = HandMadeAgent(server.get()).Finish();
    EXPECT_EQ(refused.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
    EXPECT_EQ(refused.error_message(),
              "this daemon serves 2 agents already: raise rollcalld --max-streams");
    EXPECT_EQ(counters_.Get().dropped[static_cast<size_t>(Dropped::kStreams)], 1u);
    EXPECT_TRUE(first.Finish().ok());
    silent.Finish();
  }
  ASSERT_TRUE(Eventually([&] { return service.streams() == 0; }));
  HandMadeAgent later(server.get());
  later.Hello("later");
  sink_.Await(3);
  EXPECT_EQ(sink_.events().back(), "connected later");
  later.Finish();
  server->Shutdown(std::chrono::system_clock::now());
  server->Wait();
}

// Two `rollcall run --daemon=...` on one machine.
TEST_F(AgentServiceTest, TreatsTwoAgentsOfAHostSeparately) {
  HandMadeAgent older(server_.get()), newer(server_.get());
  older.Hello("node");
  sink_.Await(1);
  newer.Hello("node");
  sink_.Await(2);
  EXPECT_EQ(service_.agents(), 2);
  EXPECT_NE(sink_.connected(0).id, sink_.connected(1).id);
  v1::DaemonMessage request, received;
  request.mutable_take_stacks()->set_request(7);
  EXPECT_TRUE(service_.Send(sink_.connected(0).id, request));
  while (older.Read(&received) && !received.has_take_stacks()) {
  }
  EXPECT_EQ(received.take_stacks().request(), 7u);
  newer.Finish();
  sink_.Await(3);
  EXPECT_EQ(sink_.events().back(), "gone node");
  EXPECT_FALSE(service_.Send(sink_.connected(1).id, request));
  older.Tick();
  sink_.Await(4);
  EXPECT_EQ(sink_.events().back(), "tick node");
  older.Finish();
  sink_.Await(5);
  EXPECT_EQ(sink_.events().back(), "gone node");
}

TEST_F(AgentServiceTest, TheHelloHasTheTickIntervalAndTheId) {
  HandMadeAgent first(server_.get()), again(server_.get());
  first.Hello("node", 1, "node/17");
  sink_.Await(1);
  again.Hello("node", 1, "node/17");
  sink_.Await(2);
  EXPECT_EQ(sink_.connected(0).tick_ns, 50'000'000);
  EXPECT_EQ(sink_.connected(0).id, sink_.connected(1).id);
  EXPECT_TRUE(sink_.connected(0).is_trusted);  // it runs in this process
}

TEST_F(AgentServiceTest, ARemoteAgentCannotUseTheIdOfALocalOne) {
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

TEST_F(AgentServiceTest, LimitsAnAgentToTheTenantsOfItsToken) {
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
  Sink sink_;
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

TEST_F(AgentServiceTest, RestartEndsTheAgentsStream) {
  HandMadeAgent agent(server_.get());
  agent.Hello("node", 1, "node/17");
  sink_.Await(1);
  service_.Restart(sink_.connected(0).id);
  EXPECT_EQ(agent.Finish().error_code(), grpc::StatusCode::CANCELLED);
  service_.Restart("nobody");
}

TEST_F(AgentServiceTest, EndsAndCountsTheStreamOfAnAgentThatDoesNotRead) {
  constexpr int kMany = 20'000;
  HandMadeAgent agent(server_.get()), other(server_.get());
  agent.Hello("node");
  sink_.Await(1);
  other.Hello("other");
  sink_.Await(2);
  v1::DaemonMessage request;
  int sent = 0;
  while (sent < kMany && service_.Send(sink_.connected(0).id, request)) ++sent;
  EXPECT_LT(sent, kMany);
  EXPECT_GT(sent, 100);  // a burst of requests is not a reason
  EXPECT_FALSE(service_.Send(sink_.connected(0).id, request));
  EXPECT_EQ(agent.Finish().error_code(), grpc::StatusCode::CANCELLED);
  EXPECT_EQ(counters_.Get().dropped[static_cast<size_t>(Dropped::kStreams)], 1u);
  EXPECT_TRUE(service_.Send(sink_.connected(1).id, request));
  EXPECT_TRUE(other.Finish().ok());
}

TEST_F(AgentServiceTest, RefusesASecondHello) {
  {
    HandMadeAgent agent(server_.get());
    agent.Hello("one");
    sink_.Await(1);
    agent.Hello("two");
    EXPECT_EQ(agent.Finish().error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  }
  sink_.Await(2);
  EXPECT_EQ(sink_.events(), (Events{"connected one", "gone one"}));
  EXPECT_FALSE(service_.Send("two", v1::DaemonMessage()));
  EXPECT_FALSE(service_.Send("one", v1::DaemonMessage()));
}

TEST_F(AgentServiceTest, SendFailsForAnAgentThatIsNotConnected) {
  EXPECT_FALSE(service_.Send("nobody", v1::DaemonMessage()));
}

TEST_F(AgentServiceTest, ClosingEndsEveryStream) {
  HandMadeAgent one(server_.get()), two(server_.get());
  one.Hello("one");
  two.Hello("two");
  sink_.Await(2);
  service_.CloseAll();
  EXPECT_EQ(one.Finish().error_code(), grpc::StatusCode::CANCELLED);
  EXPECT_EQ(two.Finish().error_code(), grpc::StatusCode::CANCELLED);
  sink_.Await(4);
  EXPECT_EQ(service_.agents(), 0);
}

}  // namespace
}  // namespace rollcall
