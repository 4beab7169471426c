// SPDX-License-Identifier: Apache-2.0
// The agents' streams at the daemon's end: who is connected, who has gone.
#include "daemon/server/agent_service.h"

#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <thread>

#include "absl/synchronization/mutex.h"
#include "rollcall/v1/agent.grpc.pb.h"

namespace rollcall {
namespace {

// Notes what it is told.
class Sink : public AgentSink {
 public:
  void OnTick(const AgentName& agent, const v1::Tick&) override { Note("tick " + agent.host); }
  void OnStack(const AgentName& agent, const v1::StackReply&) override {
    Note("stack " + agent.host);
  }
  void OnConnected(const AgentName& agent) override {
    {
      const absl::MutexLock lock(&mutex_);
      connected_.push_back(agent);
    }
    Note("connected " + agent.host);
  }
  void OnGone(const AgentName& agent) override { Note("gone " + agent.host); }

  AgentName connected(size_t i) const {
    const absl::MutexLock lock(&mutex_);
    return connected_.at(i);
  }
  std::vector<std::string> notes() const {
    const absl::MutexLock lock(&mutex_);
    return notes_;
  }
  // Waits until so many notes are there.
  void Await(size_t count) const {
    const auto enough = [this, count]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
      return notes_.size() >= count;
    };
    const absl::MutexLock lock(&mutex_);
    mutex_.AwaitWithTimeout(absl::Condition(&enough), absl::Seconds(20));
  }

 private:
  void Note(const std::string& what) {
    const absl::MutexLock lock(&mutex_);
    notes_.push_back(what);
  }

  mutable absl::Mutex mutex_;
  std::vector<std::string> notes_ ABSL_GUARDED_BY(mutex_);
  std::vector<AgentName> connected_ ABSL_GUARDED_BY(mutex_);
};

// An agent's end of a stream, by hand.
class HandMadeAgent {
 public:
  explicit HandMadeAgent(grpc::Server* server) : HandMadeAgent(server->InProcessChannel({})) {}
  explicit HandMadeAgent(const std::shared_ptr<grpc::ChannelInterface>& channel)
      : stub_(v1::AgentLink::NewStub(channel)), stream_(stub_->Connect(&context_)) {}

  void Hello(const std::string& host, uint32_t protocol = 1, const std::string& id = "") {
    v1::AgentMessage message;
    message.mutable_hello()->set_agent_id(id);
    message.mutable_hello()->set_tick_ns(50'000'000);
    message.mutable_hello()->set_protocol(protocol);
    message.mutable_hello()->set_host(host);
    stream_->Write(message);
  }
  void Tick() {
    v1::AgentMessage message;
    message.mutable_tick()->set_now_ns(1);
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
  AgentServiceTest() : service_(&sink_) {
    grpc::ServerBuilder builder;
    builder.RegisterService(service_.service());
    server_ = builder.BuildAndStart();
  }
  ~AgentServiceTest() override {
    service_.CloseAll();
    server_->Shutdown(std::chrono::system_clock::now());
    server_->Wait();
  }

  Sink sink_;
  AgentService service_;
  std::unique_ptr<grpc::Server> server_;
};

using Notes = std::vector<std::string>;

TEST_F(AgentServiceTest, AnAgentIsConnectedHeardAndGone) {
  HandMadeAgent agent(server_.get());
  agent.Hello("node");
  agent.Tick();
  sink_.Await(2);
  EXPECT_EQ(service_.agents(), 1);
  EXPECT_TRUE(agent.Finish().ok());
  sink_.Await(3);
  EXPECT_EQ(sink_.notes(), (Notes{"connected node", "tick node", "gone node"}));
  EXPECT_EQ(service_.agents(), 0);
}

TEST_F(AgentServiceTest, AnAgentThatDoesNotSayWhoItIsIsNotHeard) {
  HandMadeAgent agent(server_.get());
  agent.Tick();
  agent.Tick();
  agent.Hello("node");
  sink_.Await(1);
  EXPECT_EQ(sink_.notes(), Notes{"connected node"});
  agent.Finish();
}

TEST_F(AgentServiceTest, AnotherProtocolIsRefused) {
  HandMadeAgent agent(server_.get());
  agent.Hello("node", 99);
  EXPECT_EQ(agent.Finish().error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_EQ(sink_.notes(), Notes{});
}

// Two `rollcall run --daemon=...` on one machine.
TEST_F(AgentServiceTest, EachAgentOfAHostIsConnectedAskedAndGoneForItself) {
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
  EXPECT_EQ(sink_.notes().back(), "gone node");
  EXPECT_FALSE(service_.Send(sink_.connected(1).id, request));
  older.Tick();
  sink_.Await(4);
  EXPECT_EQ(sink_.notes().back(), "tick node");
  older.Finish();
  sink_.Await(5);
  EXPECT_EQ(sink_.notes().back(), "gone node");
}

TEST_F(AgentServiceTest, AnAgentSaysHowOftenItTicksAndKeepsItsId) {
  HandMadeAgent first(server_.get()), again(server_.get());
  first.Hello("node", 1, "node/17");
  sink_.Await(1);
  again.Hello("node", 1, "node/17");
  sink_.Await(2);
  EXPECT_EQ(sink_.connected(0).tick_ns, 50'000'000);
  EXPECT_EQ(sink_.connected(0).id, sink_.connected(1).id);
  EXPECT_TRUE(sink_.connected(0).is_trusted);  // it runs here
}

TEST_F(AgentServiceTest, NobodyElsewhereCanNameItselfAfterAnAgentThatRunsHere) {
  grpc::ServerBuilder builder;
  int port = 0;
  AgentService service(&sink_);
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
  builder.RegisterService(service.service());
  const std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  HandMadeAgent here(server->InProcessChannel({}));
  here.Hello("node", 1, "node/17");
  sink_.Await(1);
  HandMadeAgent elsewhere(grpc::CreateChannel("127.0.0.1:" + std::to_string(port),
                                              grpc::InsecureChannelCredentials()));
  elsewhere.Hello("node", 1, "node/17");
  sink_.Await(2);
  EXPECT_TRUE(sink_.connected(0).is_trusted);
  EXPECT_FALSE(sink_.connected(1).is_trusted);
  EXPECT_NE(sink_.connected(0).id, sink_.connected(1).id);
  service.CloseAll();
  server->Shutdown(std::chrono::system_clock::now());
  server->Wait();
}

TEST_F(AgentServiceTest, AnAgentThatMustBeginAnewLosesItsStream) {
  HandMadeAgent agent(server_.get());
  agent.Hello("node", 1, "node/17");
  sink_.Await(1);
  service_.Restart(sink_.connected(0).id);
  EXPECT_EQ(agent.Finish().error_code(), grpc::StatusCode::CANCELLED);
  service_.Restart("nobody");
}

TEST_F(AgentServiceTest, WhoSaysTwiceWhoItIsIsRefused) {
  {
    HandMadeAgent agent(server_.get());
    agent.Hello("one");
    sink_.Await(1);
    agent.Hello("two");
    EXPECT_EQ(agent.Finish().error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  }
  sink_.Await(2);
  EXPECT_EQ(sink_.notes(), (Notes{"connected one", "gone one"}));
  EXPECT_FALSE(service_.Send("two", v1::DaemonMessage()));
  EXPECT_FALSE(service_.Send("one", v1::DaemonMessage()));
}

TEST_F(AgentServiceTest, NothingCanBeSentToWhoIsNotThere) {
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
