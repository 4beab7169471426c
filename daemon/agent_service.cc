#include "daemon/agent_service.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <deque>

#include "daemon/clean_message.h"
#include "daemon/grpc_callback.h"
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

  void Add(const std::string& host, Stream* stream) {
    const absl::MutexLock lock(&mutex_);
    streams_[host].push_back(stream);
  }

  // True when it was the host's last stream.
  bool Remove(const std::string& host, Stream* stream) {
    const absl::MutexLock lock(&mutex_);
    const auto at = streams_.find(host);
    if (at == streams_.end()) return false;
    at->second.erase(std::remove(at->second.begin(), at->second.end(), stream), at->second.end());
    if (!at->second.empty()) return false;
    streams_.erase(at);
    return true;
  }

  bool Send(const std::string& host, const v1::DaemonMessage& message);
  void CloseAll();

  int agents() const {
    const absl::MutexLock lock(&mutex_);
    size_t agents = 0;
    for (const auto& [host, streams] : streams_) agents += streams.size();
    return static_cast<int>(agents);
  }

 private:
  AgentSink* const sink_;
  mutable absl::Mutex mutex_;  // taken before a stream's own
  // By host, the newest last: two runs on one machine each bring an agent.
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
        if (!host_.empty()) impl_->sink()->OnTick(host_, in_.tick());
        break;
      case v1::AgentMessage::kStacks:
        if (!host_.empty()) impl_->sink()->OnStack(host_, in_.stacks());
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
    if (!host_.empty() && impl_->Remove(host_, this)) impl_->sink()->OnGone(host_);
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
  bool Greet(const v1::Hello& hello) {
    if (hello.protocol() != kProtocol || hello.host().empty()) {
      spdlog::warn("refused the agent of {}: it speaks protocol {}, this daemon {}", hello.host(),
                   hello.protocol(), kProtocol);
      End(grpc::Status(grpc::StatusCode::FAILED_PRECONDITION,
                       "this daemon speaks another protocol: run the same release everywhere"));
      return false;
    }
    if (!host_.empty()) {
      End(grpc::Status(grpc::StatusCode::FAILED_PRECONDITION, "this agent has said who it is"));
      return false;
    }
    host_ = hello.host();
    impl_->Add(host_, this);
    impl_->sink()->OnConnected(host_);
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
  std::string host_;
  absl::Mutex mutex_;
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
  std::deque<v1::DaemonMessage> out_ ABSL_GUARDED_BY(mutex_);  // the first is being written
};

grpc_callback::ServerBidiReactor<v1::AgentMessage, v1::DaemonMessage>* AgentService::Impl::Connect(
    grpc_callback::CallbackServerContext* context) {
  return new Stream(this, context);
}

bool AgentService::Impl::Send(const std::string& host, const v1::DaemonMessage& message) {
  const absl::MutexLock lock(&mutex_);
  const auto at = streams_.find(host);
  if (at == streams_.end()) return false;
  return std::any_of(at->second.rbegin(), at->second.rend(),
                     [&message](Stream* stream) { return stream->Queue(message); });
}

void AgentService::Impl::CloseAll() {
  const absl::MutexLock lock(&mutex_);
  for (const auto& [host, streams] : streams_) {
    for (Stream* stream : streams) stream->Cancel();
  }
}

AgentService::AgentService(AgentSink* sink) : impl_(std::make_unique<Impl>(sink)) {}
AgentService::~AgentService() = default;
grpc::Service* AgentService::service() { return impl_.get(); }
bool AgentService::Send(const std::string& host, const v1::DaemonMessage& message) {
  return impl_->Send(host, message);
}
int AgentService::agents() const { return impl_->agents(); }
void AgentService::CloseAll() { impl_->CloseAll(); }

}  // namespace rollcall
