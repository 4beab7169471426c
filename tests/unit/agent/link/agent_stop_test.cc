// SPDX-License-Identifier: Apache-2.0
// What an agent still reports when it stops.
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <memory>

#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "agent/link/agent.h"
#include "collector_fixture.h"
#include "rollcall/v1/agent.grpc.pb.h"

namespace rollcall {
namespace {

// A daemon that counts the calls in the agent's ticks.
class Counter : public v1::AgentLink::Service {
 public:
  using Stream = grpc::ServerReaderWriter<v1::DaemonMessage, v1::AgentMessage>;

  grpc::Status Connect(grpc::ServerContext* /*context*/, Stream* stream) override {
    v1::AgentMessage message;
    stream->Read(&message);  // the hello
    v1::DaemonMessage welcome;
    welcome.mutable_welcome();
    stream->Write(welcome);
    while (stream->Read(&message)) {
      if (!ticked.HasBeenNotified()) ticked.Notify();
      const absl::MutexLock lock(&mutex_);
      for (const v1::ProcessUpdate& process : message.tick().processes()) {
        for (const v1::CommUpdate& comm : process.communicators()) calls_ += comm.entered();
      }
    }
    return grpc::Status::OK;
  }

  absl::Notification ticked;

  uint64_t calls() const {
    const absl::MutexLock lock(&mutex_);
    return calls_;
  }

 private:
  mutable absl::Mutex mutex_;
  uint64_t calls_ ABSL_GUARDED_BY(mutex_) = 0;
};

class AgentStopTest : public CollectorTest {};

// A job may begin and end between two ticks.
TEST_F(AgentStopTest, ReportsTheCallsOfARankThatEndedBeforeATickFoundItsOwner) {
  Counter daemon;
  grpc::ServerBuilder builder;
  builder.RegisterService(&daemon);
  const std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  AgentOptions options;
  options.collector = Options();
  options.collector.scan_wait_ns = 0;  // only a later tick knows the owner
  options.tick_ns = int64_t{3600} * 1'000'000'000;
  Agent agent(options, server->InProcessChannel({}));
  agent.Start();
  daemon.ticked.WaitForNotification();
  {
    Child child;
    segment_.AddAllReduce(segment_.AddComm(5, 0, 2), 5000);
    segment_.header()->life_lock = 1;
    WriteSegment(child, &segment_);
  }
  while (waitpid(-1, nullptr, WNOHANG) > 0) {  // as a launcher does
  }
  agent.Stop();
  server->Shutdown();
  EXPECT_EQ(daemon.calls(), 1u);
}

}  // namespace
}  // namespace rollcall
