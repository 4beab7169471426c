// The agents' streams at the daemon's end: who is connected, who has gone.
#include "daemon/agent_service.h"

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
  void OnTick(const std::string& host, const v1::Tick&) override { Note("tick " + host); }
  void OnStack(const std::string& host, const v1::StackReply&) override { Note("stack " + host); }
  void OnConnected(const std::string& host) override { Note("connected " + host); }
  void OnGone(const std::string& host) override { Note("gone " + host); }

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
};

// An agent's end of a stream, by hand.
class HandMadeAgent {
 public:
  explicit HandMadeAgent(grpc::Server* server)
      : stub_(v1::AgentLink::NewStub(server->InProcessChannel({}))),
        stream_(stub_->Connect(&context_)) {}

  void Hello(const std::string& host, uint32_t protocol = 1) {
    v1::AgentMessage message;
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
TEST_F(AgentServiceTest, AHostIsGoneWithTheLastOfItsAgents) {
  HandMadeAgent older(server_.get()), newer(server_.get());
  older.Hello("node");
  sink_.Await(1);
  newer.Hello("node");
  sink_.Await(2);
  EXPECT_EQ(service_.agents(), 2);
  newer.Finish();
  older.Tick();
  sink_.Await(3);
  EXPECT_EQ(sink_.notes().back(), "tick node");
  v1::DaemonMessage request, received;
  request.mutable_take_stacks()->set_request(7);
  EXPECT_TRUE(service_.Send("node", request));
  while (older.Read(&received) && !received.has_take_stacks()) {
  }
  EXPECT_EQ(received.take_stacks().request(), 7u);
  older.Finish();
  sink_.Await(4);
  EXPECT_EQ(sink_.notes().back(), "gone node");
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
