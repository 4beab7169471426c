// SPDX-License-Identifier: Apache-2.0
#include "daemon/server/agent_service.h"

#include <grpc/grpc_security_constants.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <atomic>
#include <deque>

#include "absl/strings/str_cat.h"
#include "daemon/server/clean_message.h"
#include "daemon/server/grpc_callback.h"
#include "rollcall/v1/agent.grpc.pb.h"

namespace rollcall {
namespace {

constexpr uint32_t kProtocol = 1;

}  // namespace

class AgentService::Impl : public grpc_callback::ServiceOf<v1::AgentLink> {
 public:
  explicit Impl(AgentSink* sink) : sink_(sink) {}

  grpc_callback::ServerBidiReactor<v1::AgentMessage, v1::DaemonMessage>* Connect(
      grpc_callback::CallbackServerContext* context) override;

  AgentSink* sink() { return sink_; }

  void Add(const std::string& id, Stream* stream) {
    const absl::MutexLock lock(&mutex_);
    streams_[id].push_back(stream);
  }

  void Remove(const std::string& id, Stream* stream) {
    const absl::MutexLock lock(&mutex_);
    const auto at = streams_.find(id);
    if (at == streams_.end()) return;
    at->second.erase(std::remove(at->second.begin(), at->second.end(), stream), at->second.end());
    if (at->second.empty()) streams_.erase(at);
  }

  bool Send(const std::string& id, const v1::DaemonMessage& message);
  void Restart(const std::string& id);
  void CloseAll();
  uint64_t NextStream() { return ++last_stream_; }

  int agents() const {
    const absl::MutexLock lock(&mutex_);
    size_t agents = 0;
    for (const auto& [id, streams] : streams_) agents += streams.size();
    return static_cast<int>(agents);
  }

 private:
  AgentSink* const sink_;
  mutable absl::Mutex mutex_;  // taken before a stream's own
  std::atomic<uint64_t> last_stream_{0};
  // By agent, the newest last: one that has come back may not be known to be gone yet.
  std::map<std::string, std::vector<Stream*>> streams_ ABSL_GUARDED_BY(mutex_);
};

// One agent's stream. Deletes itself when gRPC is done with it.
class AgentService::Stream
    : public grpc_callback::ServerBidiReactor<v1::AgentMessage, v1::DaemonMessage> {
 public:
  Stream(Impl* impl, grpc_callback::CallbackServerContext* context)
      : impl_(impl), context_(context) {
    StartRead(&in_);
  }

  void OnReadDone(bool ok) override {
    if (!ok) {
      End(grpc::Status::OK);
      return;
    }
    CleanStrings(&in_);
    switch (in_.body_case()) {
      case v1::AgentMessage::kHello:
        if (!Greet(in_.hello())) return;
        break;
      case v1::AgentMessage::kTick:
        if (has_greeted()) impl_->sink()->OnTick(name_, in_.tick());
        break;
      case v1::AgentMessage::kStacks:
        if (has_greeted()) impl_->sink()->OnStack(name_, in_.stacks());
        break;
      case v1::AgentMessage::BODY_NOT_SET:
        break;
    }
    StartRead(&in_);
  }

  void OnWriteDone(bool ok) override {
    const absl::MutexLock lock(&mutex_);
    out_.pop_front();
    if (ok && !out_.empty() && !ended_) StartWrite(&out_.front());
  }

  void OnCancel() override { End(grpc::Status(grpc::StatusCode::CANCELLED, "cancelled")); }

  void OnDone() override {
    if (has_greeted()) {
      impl_->Remove(name_.id, this);
      impl_->sink()->OnGone(name_);
    }
    delete this;
  }

  // False: the stream has ended.
  bool Queue(const v1::DaemonMessage& message) {
    const absl::MutexLock lock(&mutex_);
    if (ended_) return false;
    out_.push_back(message);
    if (out_.size() == 1) StartWrite(&out_.front());
    return true;
  }

  void Cancel() { context_->TryCancel(); }

 private:
  bool has_greeted() const { return !name_.host.empty(); }

  // Another process can name itself after an agent that runs here. It gets another id for that.
  AgentName NameIn(const v1::Hello& hello) const {
    AgentName name;
    name.host = hello.host();
    name.tick_ns = hello.tick_ns();
    // Whatever comes over a socket has a kind of transport, if only an insecure one.
    name.is_trusted =
        context_->auth_context()->FindPropertyValues(GRPC_TRANSPORT_SECURITY_TYPE_PROPERTY_NAME)
            .empty();
    name.id = absl::StrCat(name.is_trusted ? "here " : "from ",
                           hello.agent_id().empty() ? absl::StrCat("stream ", impl_->NextStream())
                                                    : hello.agent_id());
    return name;
  }

  bool Greet(const v1::Hello& hello) {
    if (hello.protocol() != kProtocol || hello.host().empty()) {
      spdlog::warn("refused the agent of {}: it speaks protocol {}, this daemon {}", hello.host(),
                   hello.protocol(), kProtocol);
      End(grpc::Status(grpc::StatusCode::FAILED_PRECONDITION,
                       "this daemon speaks another protocol: run the same release everywhere"));
      return false;
    }
    if (has_greeted()) {
      End(grpc::Status(grpc::StatusCode::FAILED_PRECONDITION, "this agent has said who it is"));
      return false;
    }
    name_ = NameIn(hello);
    impl_->Add(name_.id, this);
    impl_->sink()->OnConnected(name_);
    v1::DaemonMessage welcome;
    welcome.mutable_welcome()->set_rollcall_version(ROLLCALL_VERSION);
    Queue(welcome);
    return true;
  }

  void End(const grpc::Status& status) {
    {
      const absl::MutexLock lock(&mutex_);
      if (ended_) return;
      ended_ = true;
    }
    Finish(status);
  }

  Impl* const impl_;
  grpc_callback::CallbackServerContext* const context_;
  v1::AgentMessage in_;
  AgentName name_;  // without a host: it has not said who it is
  absl::Mutex mutex_;
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
  std::deque<v1::DaemonMessage> out_ ABSL_GUARDED_BY(mutex_);  // the first is being written
};

grpc_callback::ServerBidiReactor<v1::AgentMessage, v1::DaemonMessage>* AgentService::Impl::Connect(
    grpc_callback::CallbackServerContext* context) {
  return new Stream(this, context);
}

bool AgentService::Impl::Send(const std::string& id, const v1::DaemonMessage& message) {
  const absl::MutexLock lock(&mutex_);
  const auto at = streams_.find(id);
  if (at == streams_.end()) return false;
  return std::any_of(at->second.rbegin(), at->second.rend(),
                     [&message](Stream* stream) { return stream->Queue(message); });
}

void AgentService::Impl::Restart(const std::string& id) {
  const absl::MutexLock lock(&mutex_);
  const auto at = streams_.find(id);
  if (at == streams_.end()) return;
  for (Stream* stream : at->second) stream->Cancel();
}

void AgentService::Impl::CloseAll() {
  const absl::MutexLock lock(&mutex_);
  for (const auto& [id, streams] : streams_) {
    for (Stream* stream : streams) stream->Cancel();
  }
}

AgentService::AgentService(AgentSink* sink) : impl_(std::make_unique<Impl>(sink)) {}
AgentService::~AgentService() = default;
grpc::Service* AgentService::service() { return impl_.get(); }
bool AgentService::Send(const std::string& id, const v1::DaemonMessage& message) {
  return impl_->Send(id, message);
}
void AgentService::Restart(const std::string& id) { impl_->Restart(id); }
int AgentService::agents() const { return impl_->agents(); }
void AgentService::CloseAll() { impl_->CloseAll(); }

}  // namespace rollcall
