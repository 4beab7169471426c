// SPDX-License-Identifier: Apache-2.0
// Every call of the daemon's services, by every role and without one, over real sockets.
#include "daemon/access/access.h"

#include <google/protobuf/descriptor.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <httplib.h>
#include <spdlog/sinks/ostream_sink.h>
#include <spdlog/spdlog.h>

#include <atomic>
#include <map>
#include <memory>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "daemon/daemon.h"
#include "eventually.h"
#include "rollcall/v1/agent.grpc.pb.h"
#include "rollcall/v1/query.grpc.pb.h"

namespace rollcall {
namespace {

// Knows one bearer token for each role: its name.
class ByName : public Authenticator {
 public:
  absl::StatusOr<Identity> Identify(const Presented& presented) const override {
    const std::optional<Role> role = ParseRole(presented.bearer);
    if (!role.has_value() || revoked) {
      return absl::UnauthenticatedError("this daemon needs a token: --token-file=FILE");
    }
    return Identity{"token " + presented.bearer, {*role}, {"node"}, {"team"}, 0, presented.bearer};
  }
  bool IsStillValid(const Identity& /*identity*/) const override { return !revoked; }

  std::atomic<bool> revoked{false};
};

class AccessTest : public testing::Test {
 protected:
  void SetUp() override {
    DaemonOptions options;
    options.listen = options.http = "127.0.0.1:0";
    options.authenticator = &authenticator_;
    options.log_incidents = false;
    daemon_ = std::make_unique<Daemon>(options);
    ASSERT_TRUE(daemon_->Start().ok());
    channel_ = grpc::CreateChannel(absl::StrCat("127.0.0.1:", daemon_->grpc_port()),
                                   grpc::InsecureChannelCredentials());
  }

  std::unique_ptr<grpc::ClientContext> As(const std::string& token) {
    auto context = std::make_unique<grpc::ClientContext>();
    if (!token.empty()) context->AddMetadata("authorization", "Bearer " + token);
    context->set_deadline(std::chrono::system_clock::now() + kPatience);
    return context;
  }

  // The status of a call with an empty request.
  grpc::Status Call(const std::string& method, const std::string& token) {
    grpc::GenericStub stub(channel_);
    grpc::CompletionQueue queue;
    const auto context = As(token);
    const auto call = stub.PrepareCall(context.get(), method, &queue);
    void* tag = nullptr;
    bool ok = false;
    const auto await = [&] { queue.Next(&tag, &ok); };
    call->StartCall(nullptr);
    await();
    const grpc::Slice nothing;
    call->WriteLast(grpc::ByteBuffer(&nothing, 1), grpc::WriteOptions(), nullptr);
    await();
    do {  // gRPC reports the status after the last message
      grpc::ByteBuffer answer;
      call->Read(&answer, nullptr);
      await();
    } while (ok);
    grpc::Status status;
    call->Finish(&status, nullptr);
    await();
    return status;
  }

  // The status of a call whose caller sends no request and waits.
  grpc::Status CallInSilence(const std::string& method, const std::string& token) {
    grpc::GenericStub stub(channel_);
    grpc::CompletionQueue queue;
    const auto context = As(token);
    const auto call = stub.PrepareCall(context.get(), method, &queue);
    void* tag = nullptr;
    bool ok = false;
    call->StartCall(nullptr);
    queue.Next(&tag, &ok);
    grpc::Status status;
    call->Finish(&status, nullptr);
    queue.Next(&tag, &ok);
    return status;
  }

  // Connects as the agent of a host; returns the end of the stream, or OK once it is welcomed.
  grpc::Status Greet(const std::string& token, const std::string& host) {
    const auto stub = v1::AgentLink::NewStub(channel_);
    const auto context = As(token);
    const auto stream = stub->Connect(context.get());
    v1::AgentMessage hello;
    hello.mutable_hello()->set_protocol(1);
    hello.mutable_hello()->set_host(host);
    stream->Write(hello);
    v1::DaemonMessage answer;
    if (!stream->Read(&answer)) return stream->Finish();
    stream->WritesDone();
    while (stream->Read(&answer)) {
    }
    return stream->Finish();
  }

  // The jobs of this name, as the caller sees them. Empty means the owner of the daemon.
  std::vector<std::string> JobsAs(const std::string& token, const std::string& job) {
    const auto stub = token.empty() ? v1::Query::NewStub(daemon_->InProcessChannel())
                                    : v1::Query::NewStub(channel_);
    v1::StatusRequest request;
    request.set_job(job);
    v1::StatusResponse response;
    EXPECT_TRUE(stub->GetStatus(As(token).get(), request, &response).ok());
    std::vector<std::string> jobs;
    for (const v1::JobStatus& status : response.jobs()) jobs.push_back(status.name());
    return jobs;
  }

  ByName authenticator_;
  std::unique_ptr<Daemon> daemon_;
  std::shared_ptr<grpc::Channel> channel_;
};

// The host in what a process says, too: else an agent could have another host blamed.
TEST_F(AccessTest, AProcessCannotSayThatItIsOnAnotherHost) {
  const auto stub = v1::AgentLink::NewStub(channel_);
  const auto context = As("agent");
  const auto stream = stub->Connect(context.get());
  v1::AgentMessage hello, tick;
  hello.mutable_hello()->set_protocol(1);
  hello.mutable_hello()->set_host("node");
  ASSERT_TRUE(stream->Write(hello));
  tick.mutable_tick()->set_now_ns(1);
  tick.mutable_tick()->set_whole(true);
  v1::ProcessUpdate* process = tick.mutable_tick()->add_processes();
  process->set_pid(7);
  process->set_start_time(8);
  process->mutable_identity()->set_job("a-job");
  process->mutable_identity()->set_tenant("team");
  process->mutable_identity()->set_world_size(1);
  process->mutable_identity()->set_host("victim");
  v1::ProcessUpdate* other = tick.mutable_tick()->add_processes();
  *other = *process;
  other->set_pid(9);
  other->mutable_identity()->set_host("node.cluster.example");
  ASSERT_TRUE(stream->Write(tick));
  const auto query = v1::Query::NewStub(daemon_->InProcessChannel());
  v1::ProcessesResponse response;
  EXPECT_TRUE(Eventually([&] {
    v1::ProcessesRequest request;
    request.set_job("a-job");
    response.Clear();
    return query->ListProcesses(As("").get(), request, &response).ok() &&
           response.processes_size() == 2;
  }));
  ASSERT_EQ(response.processes_size(), 2);
  EXPECT_EQ(response.processes(0).host(), "node");
  EXPECT_EQ(response.processes(1).host(), "node");
  httplib::Client page(daemon_->http_address());
  const auto metrics = page.Get("/metrics", {{"Authorization", "Bearer viewer"}});
  ASSERT_TRUE(metrics);
  EXPECT_NE(metrics->body.find("rollcall_refused_total{reason=\"agent_host\"} 1"),
            std::string::npos)
      << "the process with a domain in its host is no attempt: " << metrics->body;
  context->TryCancel();
}

TEST_F(AccessTest, TheTableHasEveryCallOfTheServices) {
  std::set<std::string> known, declared;
  for (const CallAccess& row : kCallAccess) known.emplace(row.method);
  for (const char* name : {"rollcall.v1.AgentLink", "rollcall.v1.Query"}) {
    const auto* service =
        google::protobuf::DescriptorPool::generated_pool()->FindServiceByName(name);
    ASSERT_NE(service, nullptr) << name;
    for (int i = 0; i < service->method_count(); ++i) {
      declared.insert(absl::StrCat("/", name, "/", service->method(i)->name()));
    }
  }
  EXPECT_EQ(known, declared);
}

// The second: after too many wrong tokens of one host.
bool RefusesAStranger(const grpc::Status& status) {
  return status.error_code() == grpc::StatusCode::UNAUTHENTICATED ||
         status.error_code() == grpc::StatusCode::RESOURCE_EXHAUSTED;
}

TEST_F(AccessTest, ACallerWithoutARoleMayCallNothing) {
  for (const CallAccess& row : kCallAccess) {
    const grpc::Status status = Call(std::string(row.method), "");
    EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAUTHENTICATED) << row.method;
    EXPECT_NE(status.error_message().find("--token-file"), std::string::npos);
    EXPECT_TRUE(RefusesAStranger(Call(std::string(row.method), "guess"))) << row.method;
  }
}

// Otherwise anybody could make the daemon hold requests of 64 MiB.
TEST_F(AccessTest, AStrangerIsRefusedBeforeTheDaemonReadsItsRequest) {
  for (const CallAccess& row : kCallAccess) {
    const grpc::Status nobody = CallInSilence(std::string(row.method), "guess");
    EXPECT_TRUE(RefusesAStranger(nobody)) << row.method;
  }
  const grpc::Status viewer = CallInSilence(kTakeStacks, "viewer");
  EXPECT_EQ(viewer.error_code(), grpc::StatusCode::PERMISSION_DENIED);
}

// A known caller must be able to distinguish a call that this release lacks from one that its role
// may not make. A stranger learns of no call whether it exists.
TEST_F(AccessTest, AnswersUnimplementedToAuthenticatedCallers) {
  for (const char* method : {"/rollcall.v1.Query/NoSuchCall", "/other.Service/Call"}) {
    for (const char* token : {"agent", "viewer", "operator"}) {
      const grpc::Status status = Call(method, token);
      EXPECT_EQ(status.error_code(), grpc::StatusCode::UNIMPLEMENTED) << method << " by " << token;
    }
    for (const char* token : {"", "guess"}) {
      const grpc::Status status = Call(method, token);
      EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAUTHENTICATED) << method;
      EXPECT_EQ(status.error_message(), Call(kGetStatus, token).error_message());
    }
  }
}

TEST_F(AccessTest, RefusesUnknownCallsBeforeReadingTheRequest) {
  EXPECT_EQ(CallInSilence("/other.Service/Call", "guess").error_code(),
            grpc::StatusCode::UNAUTHENTICATED);
  EXPECT_EQ(CallInSilence("/other.Service/Call", "viewer").error_code(),
            grpc::StatusCode::UNIMPLEMENTED);
}

TEST_F(AccessTest, WrongTokensCountTogetherByGrpcAndOnThePage) {
  for (int i = 0; i < 10; ++i) {
    EXPECT_EQ(Call(kGetStatus, "guess").error_code(), grpc::StatusCode::UNAUTHENTICATED) << i;
  }
  const grpc::Status slowed = Call(kGetStatus, "guess");
  EXPECT_EQ(slowed.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_NE(slowed.error_message().find("wait a minute"), std::string::npos);
  httplib::Client page("http://" + daemon_->http_address());
  EXPECT_EQ(page.Get("/api/v1/jobs", {{"Authorization", "Bearer guess"}})->status, 429);
  // A client that guesses behind the same address locks out no other.
  EXPECT_EQ(page.Get("/api/v1/jobs", {{"Authorization", "Bearer viewer"}})->status, 200);
  EXPECT_TRUE(Call(kGetStatus, "viewer").ok());
}

TEST_F(AccessTest, WhoPresentsNoTokenGuessesNothing) {
  for (int i = 0; i < 12; ++i) {
    EXPECT_EQ(Call(kGetStatus, "").error_code(), grpc::StatusCode::UNAUTHENTICATED);
  }
}

TEST_F(AccessTest, EveryRoleMayMakeItsOwnCallsOnly) {
  const std::map<Role, std::set<Role>> may = {{Role::kAgent, {Role::kAgent}},
                                              {Role::kViewer, {Role::kViewer}},
                                              {Role::kOperator, {Role::kViewer, Role::kOperator}}};
  for (const auto& [role, allowed] : may) {
    for (const CallAccess& row : kCallAccess) {
      const grpc::Status status = Call(std::string(row.method), std::string(RoleName(role)));
      const bool is_refused = status.error_code() == grpc::StatusCode::PERMISSION_DENIED;
      // The requests are empty: an agent must name a job.
      EXPECT_EQ(is_refused, allowed.count(row.role) == 0)
          << row.method << " by " << RoleName(role) << ": " << status.error_message();
      EXPECT_NE(status.error_code(), grpc::StatusCode::UNAUTHENTICATED);
    }
  }
}

TEST_F(AccessTest, AnAgentReportsForItsOwnHostOnly) {
  EXPECT_TRUE(Greet("agent", "node").ok());
  const grpc::Status refused = Greet("agent", "other");
  EXPECT_EQ(refused.error_code(), grpc::StatusCode::PERMISSION_DENIED);
  EXPECT_NE(refused.error_message().find("may not report for the host \"other\""),
            std::string::npos)
      << refused.error_message();
}

// Without a daemon: what the refusal of a host says.
class HostRefusalTest : public testing::Test {
 protected:
  std::string Refusal(const std::vector<std::string>& hosts, const std::string& host) const {
    Identity agent;
    agent.name = "certificate spiffe://d/rollcall/agent";
    agent.hosts = hosts;
    return std::string(access_.CheckHost(agent, host).message());
  }

  Refusals refusals_;
  FailedLogins failed_logins_;
  const Access access_{nullptr, &refusals_, &failed_logins_};
};

TEST_F(HostRefusalTest, SaysWhatToTypeForALongNameOfTheSameHost) {
  EXPECT_EQ(Refusal({"node-7"}, "node-7.cluster.example"),
            "certificate spiffe://d/rollcall/agent may not report for the host "
            "\"node-7.cluster.example\"; its hosts: node-7"
            "\n  give the agent a name that it has:  rollcall-agent --host=node-7"
            "\n  or a certificate with both names:  rollcall pki issue DIR --role=agent "
            "--host=node-7 --host=node-7.cluster.example");
}

TEST_F(HostRefusalTest, SaysWhatToTypeForAShortNameOfTheSameHost) {
  const std::string text = Refusal({"node-7.cluster.example"}, "node-7");
  EXPECT_NE(text.find("rollcall-agent --host=node-7.cluster.example\n"), std::string::npos) << text;
  EXPECT_NE(text.find("--host=node-7.cluster.example --host=node-7"), std::string::npos) << text;
}

TEST_F(HostRefusalTest, SaysWhatToTypeForAnotherName) {
  const std::string one = Refusal({"node-7"}, "other");
  EXPECT_NE(one.find("rollcall-agent --host=node-7"), std::string::npos) << one;
  EXPECT_EQ(one.find("pki issue"), std::string::npos) << "it is another host: " << one;
  const std::string same = Refusal({"other-1", "node-7.a.example"}, "NODE-7.b.example");
  EXPECT_NE(same.find("rollcall-agent --host=node-7.a.example\n"), std::string::npos) << same;
  for (const auto& hosts : {std::vector<std::string>{}, {"*.nodes.example"}, {"a", "b"}}) {
    EXPECT_NE(Refusal(hosts, "node-7").find("rollcall-agent --host=NAME"), std::string::npos);
  }
}

// Strangers to the shell: a person may paste the line.
TEST_F(HostRefusalTest, RepeatsNoOtherTextAsACommand) {
  const std::string text = Refusal({"node-7"}, "node-7.$(reboot)");
  EXPECT_EQ(text.find("--host=node-7.$("), std::string::npos) << text;
}

// The stream of an agent that has reported a process of each of these jobs, (tenant, name). Ends
// with the object.
class ReportingAgent {
 public:
  ReportingAgent(const std::shared_ptr<grpc::ChannelInterface>& channel,
                 std::unique_ptr<grpc::ClientContext> context,
                 const std::vector<std::pair<std::string, std::string>>& jobs,
                 const std::string& host = "node")
      : stub_(v1::AgentLink::NewStub(channel)),
        context_(std::move(context)),
        stream_(stub_->Connect(context_.get())) {
    v1::AgentMessage message;
    message.mutable_hello()->set_protocol(1);
    message.mutable_hello()->set_host(host);
    stream_->Write(message);
    for (const auto& [tenant, job] : jobs) {
      v1::ProcessUpdate* process = message.mutable_tick()->add_processes();
      process->set_pid(message.tick().processes_size());
      process->set_start_time(1);
      process->mutable_identity()->set_tenant(tenant);
      process->mutable_identity()->set_job(job);
      process->mutable_identity()->set_has_segment(true);
    }
    stream_->Write(message);
  }
  ~ReportingAgent() {
    context_->TryCancel();
    stream_->Finish();
  }

 private:
  const std::unique_ptr<v1::AgentLink::Stub> stub_;
  const std::unique_ptr<grpc::ClientContext> context_;
  const std::unique_ptr<grpc::ClientReaderWriter<v1::AgentMessage, v1::DaemonMessage>> stream_;
};

TEST_F(AccessTest, AnAgentReadsTheJobsOfItsHostsAndTenantsOnly) {
  const ReportingAgent own(channel_, As("agent"), {{"team", "ours"}});
  const ReportingAgent other(daemon_->InProcessChannel(), As(""),
                             {{"team", "elsewhere"}, {"another", "ours too"}}, "other");
  ASSERT_TRUE(Eventually([this] { return JobsAs("viewer", "elsewhere").size() == 1; }));
  ASSERT_TRUE(Eventually([this] { return JobsAs("viewer", "ours").size() == 1; }));
  const std::vector<std::string> ours = {"ours"};
  EXPECT_TRUE(Eventually([&] { return JobsAs("agent", "ours") == ours; }));
  EXPECT_TRUE(JobsAs("agent", "elsewhere").empty());
  EXPECT_TRUE(JobsAs("agent", "ours too").empty());

  const auto queries = v1::Query::NewStub(channel_);
  v1::ProcessesRequest request;
  v1::ProcessesResponse response;
  request.set_job("ours");
  EXPECT_TRUE(queries->ListProcesses(As("agent").get(), request, &response).ok());
  EXPECT_EQ(response.processes_size(), 1);
  request.set_job("elsewhere");
  const grpc::Status unseen = queries->ListProcesses(As("agent").get(), request, &response);
  EXPECT_EQ(unseen.error_code(), grpc::StatusCode::NOT_FOUND);
  EXPECT_EQ(unseen.error_message().find("ours"), std::string::npos) << unseen.error_message();
}

TEST_F(AccessTest, AnAgentWritesIntoTheJobsOfItsOwnTenantsOnly) {
  const ReportingAgent agent(channel_, As("agent"), {{"another", "theirs"}, {"team", "ours"}});
  ASSERT_TRUE(Eventually([this] { return JobsAs("", "ours").size() == 1; }));
  EXPECT_TRUE(JobsAs("", "theirs").empty());
  httplib::Client page("http://" + daemon_->http_address());
  const auto metrics = page.Get("/metrics", {{"Authorization", "Bearer viewer"}});
  EXPECT_NE(metrics->body.find("rollcall_daemon_dropped_total{what=\"tenants\"} 1"),
            std::string::npos);
}

// The daemon's log goes into a text, which is complete once the daemon has ended.
class AccessLogTest : public AccessTest {
 protected:
  void SetUp() override {
    spdlog::set_default_logger(std::make_shared<spdlog::logger>(
        "test", std::make_shared<spdlog::sinks::ostream_sink_mt>(log_)));
    AccessTest::SetUp();
  }
  void TearDown() override {
    daemon_.reset();
    spdlog::set_default_logger(before_);
  }

  std::ostringstream log_;
  const std::shared_ptr<spdlog::logger> before_ = spdlog::default_logger();
};

TEST_F(AccessLogTest, NamesTheJobWhoseStacksAnOperatorTakesAndHoldsNoLongText) {
  auto agent = std::make_unique<ReportingAgent>(
      channel_, As("agent"), std::vector<std::pair<std::string, std::string>>{{"team", "ours"}});
  ASSERT_TRUE(Eventually([this] { return JobsAs("", "ours").size() == 1; }));
  v1::TakeStacksRequest request;
  request.set_job("ours");
  request.add_hosts(std::string(1 << 20, 'x'));
  const auto queries = v1::Query::NewStub(channel_);
  const auto context = As("operator");
  const auto stream = queries->TakeStacks(context.get(), request);
  v1::ProcessStack stack;
  while (stream->Read(&stack)) {
  }
  EXPECT_FALSE(stream->Finish().ok());
  agent = nullptr;
  daemon_.reset();
  EXPECT_NE(log_.str().find("take stacks, job team/ours, all ranks on xxx"), std::string::npos);
  EXPECT_LT(log_.str().size(), 10'000u);
}

// Ends within two checks, which are ten seconds apart.
TEST_F(AccessTest, ARevokedAgentLosesItsStream) {
  const auto stub = v1::AgentLink::NewStub(channel_);
  grpc::ClientContext context;
  context.AddMetadata("authorization", "Bearer agent");
  const auto stream = stub->Connect(&context);
  v1::AgentMessage hello;
  hello.mutable_hello()->set_protocol(1);
  hello.mutable_hello()->set_host("node");
  stream->Write(hello);
  v1::DaemonMessage answer;
  ASSERT_TRUE(stream->Read(&answer));
  authenticator_.revoked = true;
  while (stream->Read(&answer)) {
  }
  EXPECT_EQ(stream->Finish().error_code(), grpc::StatusCode::UNAUTHENTICATED);
}

TEST_F(AccessTest, CallsInsideTheProcessAreTheOwners) {
  const auto stub = v1::Query::NewStub(daemon_->InProcessChannel());
  grpc::ClientContext context;
  v1::StatusResponse response;
  EXPECT_TRUE(stub->GetStatus(&context, {}, &response).ok());
}

}  // namespace
}  // namespace rollcall
