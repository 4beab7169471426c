// SPDX-License-Identifier: Apache-2.0
// The agent's side of its stream: its answers to the daemon's requests, and its stop while the
// daemon does not answer.
#include "agent/link/agent.h"

#include <arpa/inet.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/inotify.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <future>
#include <memory>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "base/unique_fd.h"
#include "eventually.h"
#include "rollcall/v1/agent.grpc.pb.h"
#include "temporary_tree.h"

namespace rollcall {
namespace {

constexpr int kTickMs = 100;
constexpr int32_t kAFew = 500;     // processes
constexpr int32_t kMany = 20'000;  // processes; their answers exceed the buffers of gRPC

// A daemon that requests stacks of so many processes together with its welcome, and then reads all
// answers, or only the first one.
class Asker : public v1::AgentLink::Service {
 public:
  Asker(int32_t asked, bool reads) : asked_(asked), reads_(reads) {}

  using Stream = grpc::ServerReaderWriter<v1::DaemonMessage, v1::AgentMessage>;

  grpc::Status Connect(grpc::ServerContext* /*context*/, Stream* stream) override {
    v1::AgentMessage message;
    stream->Read(&message);  // the hello
    v1::DaemonMessage welcome;
    welcome.mutable_welcome();
    stream->Write(welcome);
    v1::DaemonMessage ask;
    for (int32_t pid = 1; pid <= asked_; ++pid) {
      // Larger than any pid, so the agent serves none of them.
      ask.mutable_take_stacks()->add_processes()->set_pid(1'000'000'000 + pid);
    }
    stream->Write(ask);
    do {
      stream->Read(&message);
      RecordAnswer(message);
    } while (!message.has_stacks());
    begun_.Notify();
    while (reads_ && stream->Read(&message)) RecordAnswer(message);
    if (!reads_) released_.WaitForNotification();
    return grpc::Status::OK;
  }

  void AwaitFirstAnswer() const { begun_.WaitForNotification(); }
  void Release() { released_.Notify(); }
  std::vector<int32_t> AwaitAnswers() const {
    const auto complete = [this]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) { return complete_; };
    const absl::MutexLock lock(&mutex_);
    mutex_.AwaitWithTimeout(absl::Condition(&complete), absl::FromChrono(kPatience));
    return answered_;
  }
  std::string newest_error() const {
    const absl::MutexLock lock(&mutex_);
    return newest_error_;
  }

 private:
  void RecordAnswer(const v1::AgentMessage& message) {
    if (!message.has_stacks()) return;
    const absl::MutexLock lock(&mutex_);
    answered_.push_back(message.stacks().stack().pid());
    newest_error_ = message.stacks().stack().error();
    complete_ = answered_.size() == static_cast<size_t>(asked_);
  }

  const int32_t asked_;
  const bool reads_;
  absl::Notification begun_, released_;
  mutable absl::Mutex mutex_;
  std::vector<int32_t> answered_ ABSL_GUARDED_BY(mutex_);
  std::string newest_error_ ABSL_GUARDED_BY(mutex_);
  bool complete_ ABSL_GUARDED_BY(mutex_) = false;
};

// A daemon that lets the agent wait for its welcome.
class Doorman : public v1::AgentLink::Service {
 public:
  using Stream = grpc::ServerReaderWriter<v1::DaemonMessage, v1::AgentMessage>;

  grpc::Status Connect(grpc::ServerContext* /*context*/, Stream* stream) override {
    v1::AgentMessage message;
    stream->Read(&message);                                  // the hello
    if (greeted.HasBeenNotified()) return grpc::Status::OK;  // the agent is back after the test
    greeted.Notify();
    opens.WaitForNotification();
    v1::DaemonMessage welcome;
    welcome.mutable_welcome();
    stream->Write(welcome);
    stream->Read(&message);
    if (message.tick().whole()) ticked.Notify();
    return grpc::Status::OK;
  }

  absl::Notification greeted, opens, ticked;
};

class AgentTest : public testing::Test {
 protected:
  AgentOptions Options() const {
    AgentOptions options;
    options.collector.directory = folder_.root();
    options.collector.discover_directory = folder_.root();
    options.tick_ns = kTickMs * int64_t{1'000'000};
    return options;
  }

  // Waits until the agent has not collected for ten ticks: a write to the daemon blocks its uplink.
  // Each collection opens the folder. False if the agent still collects after a minute.
  bool AwaitBlockedUplink() const {
    const UniqueFd watch(inotify_init1(IN_NONBLOCK | IN_CLOEXEC));
    EXPECT_GE(inotify_add_watch(watch.get(), folder_.root().c_str(), IN_OPEN), 0);
    const auto deadline = std::chrono::steady_clock::now() + kPatience;
    while (std::chrono::steady_clock::now() < deadline) {
      pollfd opened = {watch.get(), POLLIN, 0};
      if (poll(&opened, 1, 10 * kTickMs) == 0) return true;
      char events[4096];
      EXPECT_GT(read(watch.get(), events, sizeof(events)), 0);
    }
    return false;
  }

  // Whether Stop() returns in time. If not, it keeps running.
  bool Stops(Agent* agent) {
    stopped_ = std::async(std::launch::async, [agent] { agent->Stop(); });
    return stopped_.wait_for(kPatience) == std::future_status::ready;
  }

  const TemporaryTree folder_;
  std::future<void> stopped_;
};

TEST_F(AgentTest, AnswersForAllRequestedProcesses) {
  Asker daemon(kAFew, /*reads=*/true);
  grpc::ServerBuilder builder;
  builder.RegisterService(&daemon);
  const std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  Agent agent(Options(), server->InProcessChannel({}));
  agent.Start();
  const std::vector<int32_t> answered = daemon.AwaitAnswers();
  ASSERT_EQ(answered.size(), size_t{kAFew});
  EXPECT_EQ(answered.front(), 1'000'000'001);
  EXPECT_EQ(answered.back(), 1'000'000'000 + kAFew);
}

TEST_F(AgentTest, RefusesARequestWithoutRoomForEachOfItsProcesses) {
  constexpr auto kTooMany = static_cast<int32_t>(StackQueue::kMostProcesses) + 1;
  Asker daemon(kTooMany, /*reads=*/true);
  grpc::ServerBuilder builder;
  builder.RegisterService(&daemon);
  const std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  Agent agent(Options(), server->InProcessChannel({}));
  agent.Start();
  EXPECT_EQ(daemon.AwaitAnswers().size(), static_cast<size_t>(kTooMany));
  EXPECT_EQ(daemon.newest_error(),
            "the agent of this host has too many requests for stacks: ask again later");
}

TEST_F(AgentTest, CollectsNothingBeforeItsWelcome) {
  Doorman daemon;
  grpc::ServerBuilder builder;
  builder.RegisterService(&daemon);
  const std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  Agent agent(Options(), server->InProcessChannel({}));
  agent.Start();
  daemon.greeted.WaitForNotification();
  EXPECT_TRUE(AwaitBlockedUplink());
  daemon.opens.Notify();
  EXPECT_TRUE(daemon.ticked.WaitForNotificationWithTimeout(absl::FromChrono(kPatience)));
}

TEST_F(AgentTest, StopsWhileTheDaemonDoesNotReadTheAnswers) {
  Asker daemon(kMany, /*reads=*/false);
  int port = 0;
  grpc::ServerBuilder builder;
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_BDP_PROBE, 0);  // keeps the default window
  builder.RegisterService(&daemon);
  const std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  Agent agent(Options(), grpc::CreateChannel(absl::StrCat("127.0.0.1:", port),
                                             grpc::InsecureChannelCredentials()));
  agent.Start();
  daemon.AwaitFirstAnswer();
  EXPECT_TRUE(AwaitBlockedUplink());
  EXPECT_TRUE(Stops(&agent));
  daemon.Release();
  server->Shutdown();
  server->Wait();
}

// The host accepts connections, and its daemon is stopped.
TEST_F(AgentTest, StopsWhileTheDaemonDoesNotAnswer) {
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
