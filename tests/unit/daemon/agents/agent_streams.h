// SPDX-License-Identifier: Apache-2.0
// Both ends of an agent's stream, for the tests of AgentService: agents made by hand, and a
// receiver that records.
#pragma once

#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "daemon/agents/agent_service.h"
#include "rollcall/v1/agent.grpc.pb.h"

namespace rollcall {

// Records the calls of the service.
class RecordingSink : public AgentSink {
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
  void OnRanks(const AgentName&, const v1::LookAtRanksReply&) override {}
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

  RecordingSink sink_;
  DaemonCounters counters_;
  AgentService service_;
  std::unique_ptr<grpc::Server> server_;
};

using Events = std::vector<std::string>;

}  // namespace rollcall
