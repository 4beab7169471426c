// SPDX-License-Identifier: Apache-2.0
// The agent's end of its stream: what it does while the daemon answers, and how it ends when the
// daemon does not.
#include "agent/agent.h"

#include <arpa/inet.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <future>
#include <memory>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "agent/processes/unique_fd.h"
#include "rollcall/v1/agent.grpc.pb.h"
#include "temporary_tree.h"

namespace rollcall {
namespace {

constexpr int32_t kAsked = 20'000;  // processes; their answers exceed what gRPC buffers

// A daemon that asks for stacks at once, and then reads all answers, or the first one alone.
class Asker : public v1::AgentLink::Service {
 public:
  explicit Asker(bool reads) : reads_(reads) {}

  using Stream = grpc::ServerReaderWriter<v1::DaemonMessage, v1::AgentMessage>;

  grpc::Status Connect(grpc::ServerContext* /*context*/, Stream* stream) override {
    v1::AgentMessage message;
    stream->Read(&message);  // its hello
    v1::DaemonMessage ask;
    for (int32_t pid = 1; pid <= kAsked; ++pid) {
      // No pid is as large: nobody serves them.
      ask.mutable_take_stacks()->add_processes()->set_pid(1'000'000'000 + pid);
    }
    stream->Write(ask);
    do {
      stream->Read(&message);
      Note(message);
    } while (!message.has_stacks());
    begun_.Notify();
    while (reads_ && stream->Read(&message)) Note(message);
    if (!reads_) released_.WaitForNotification();
    return grpc::Status::OK;
  }

  void AwaitFirstAnswer() const { begun_.WaitForNotification(); }
  void Release() { released_.Notify(); }
  std::vector<int32_t> AwaitAnswers() const {
    const auto complete = [this]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) { return complete_; };
    const absl::MutexLock lock(&mutex_);
    mutex_.AwaitWithTimeout(absl::Condition(&complete), absl::Seconds(60));
    return answered_;
  }

 private:
  void Note(const v1::AgentMessage& message) {
    if (!message.has_stacks()) return;
    const absl::MutexLock lock(&mutex_);
    answered_.push_back(message.stacks().stack().pid());
    complete_ = answered_.size() == size_t{kAsked};
  }

  const bool reads_;
  absl::Notification begun_, released_;
  mutable absl::Mutex mutex_;
  std::vector<int32_t> answered_ ABSL_GUARDED_BY(mutex_);
  bool complete_ ABSL_GUARDED_BY(mutex_) = false;
};

class AgentTest : public testing::Test {
 protected:
  AgentOptions Options() const {
    AgentOptions options;
    options.collector.directory = folder_.root();
    options.collector.discover_directory = folder_.root();
    return options;
  }

  // Whether Stop() returns within ten seconds. It goes on if not.
  bool Stops(Agent* agent) {
    stopped_ = std::async(std::launch::async, [agent] { agent->Stop(); });
    return stopped_.wait_for(std::chrono::seconds(10)) == std::future_status::ready;
  }

  const TemporaryTree folder_;
  std::future<void> stopped_;
};

TEST_F(AgentTest, AnswersForAllProcessesThatItIsAskedFor) {
  Asker daemon(/*reads=*/true);
  grpc::ServerBuilder builder;
  builder.RegisterService(&daemon);
  const std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  Agent agent(Options(), server->InProcessChannel({}));
  agent.Start();
  const std::vector<int32_t> answered = daemon.AwaitAnswers();
  ASSERT_EQ(answered.size(), size_t{kAsked});
  EXPECT_EQ(answered.front(), 1'000'000'001);
  EXPECT_EQ(answered.back(), 1'000'000'000 + kAsked);
}

TEST_F(AgentTest, StopsWhileADaemonDoesNotReadTheAnswersThatItAskedFor) {
  Asker daemon(/*reads=*/false);
  int port = 0;
  grpc::ServerBuilder builder;
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_BDP_PROBE, 0);  // no more is buffered than the usual
  builder.RegisterService(&daemon);
  const std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  Agent agent(Options(), grpc::CreateChannel(absl::StrCat("127.0.0.1:", port),
                                             grpc::InsecureChannelCredentials()));
  agent.Start();
  daemon.AwaitFirstAnswer();
  // Until what gRPC buffers is full, which nobody outside it can see.
  std::this_thread::sleep_for(std::chrono::seconds(2));
  EXPECT_TRUE(Stops(&agent));
  daemon.Release();
  server->Shutdown();
  server->Wait();
}

// As a host that takes connections, and whose daemon is stopped.
TEST_F(AgentTest, StopsWhileADaemonDoesNotAnswerAtAll) {
  const UniqueFd silent(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof(address);
  ASSERT_EQ(bind(silent.get(), reinterpret_cast<sockaddr*>(&address), length), 0);
  ASSERT_EQ(listen(silent.get(), 10), 0);
  ASSERT_EQ(getsockname(silent.get(), reinterpret_cast<sockaddr*>(&address), &length), 0);
  Agent agent(Options(), grpc::CreateChannel(absl::StrCat("127.0.0.1:", ntohs(address.sin_port)),
                                             grpc::InsecureChannelCredentials()));
  agent.Start();
  EXPECT_TRUE(Stops(&agent));
}

}  // namespace
}  // namespace rollcall
