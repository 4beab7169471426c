#include "agent/agent.h"

#include <grpcpp/grpcpp.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "agent/monotonic_clock.h"
#include "agent/proc_evidence.h"
#include "agent/stacks.h"
#include "agent/stacks_proto.h"
#include "rollcall/v1/agent.grpc.pb.h"

namespace rollcall {
namespace {

constexpr uint32_t kProtocol = 1;
constexpr int64_t kFirstPause = 200'000'000;
constexpr int64_t kLongestPause = 5'000'000'000;
// A whole tick of a large host goes in pieces, well below gRPC's message limit.
constexpr size_t kMessageBytes = 1 << 20;

}  // namespace

// One stream to the daemon. Read by its own thread, written by two.
class Agent::Link {
 public:
  Link(Agent* agent, v1::AgentLink::Stub* stub) : agent_(agent), stream_(stub->Connect(&context_)) {
    reader_ = std::thread([this] { Read(); });
  }
  ~Link() {
    context_.TryCancel();
    reader_.join();
    stream_->Finish();
  }

  bool Send(const v1::AgentMessage& message) {
    const absl::MutexLock lock(&write_mutex_);
    return !broken_ && stream_->Write(message);
  }

  // Ends our side in good order: what was written is delivered first.
  void Close() {
    const absl::MutexLock lock(&write_mutex_);
    if (!broken_) stream_->WritesDone();
    for (int i = 0; i < 100 && !broken_; ++i) usleep(5000);
  }

  bool broken() const { return broken_; }
  bool welcomed() const { return welcomed_; }

 private:
  void Read() {
    v1::DaemonMessage message;
    while (stream_->Read(&message)) {
      if (message.has_welcome()) welcomed_ = true;
      if (!message.has_take_stacks()) continue;
      StackRequest request;
      request.request = message.take_stacks().request();
      for (const v1::ProcessRef& process : message.take_stacks().processes()) {
        request.processes.emplace_back(process.pid(), process.start_time());
      }
      const absl::MutexLock lock(&agent_->mutex_);
      agent_->stack_requests_.push_back(std::move(request));
    }
    broken_ = true;
  }

  Agent* const agent_;
  grpc::ClientContext context_;
  absl::Mutex write_mutex_;
  std::unique_ptr<grpc::ClientReaderWriter<v1::AgentMessage, v1::DaemonMessage>> stream_;
  std::atomic<bool> broken_{false}, welcomed_{false};
  std::thread reader_;
};

Agent::Agent(AgentOptions options, std::shared_ptr<grpc::ChannelInterface> channel)
    : options_(std::move(options)),
      channel_(std::move(channel)),
      collector_(options_.collector),
      quit_answers_(options_.collector.directory, options_.collector.proc_root) {}

Agent::~Agent() { Stop(); }

void Agent::Start() {
  uplink_ = std::thread([this] { RunUplink(); });
  stacks_ = std::thread([this] { RunStacks(); });
  const absl::Status listening = quit_answers_.Start();
  if (!listening.ok()) {
    spdlog::warn("SIGQUIT of training processes is not answered: {}",
                 std::string(listening.message()));
  }
}

void Agent::Stop() {
  {
    const absl::MutexLock lock(&mutex_);
    stopping_ = true;
  }
  if (uplink_.joinable()) uplink_.join();
  if (stacks_.joinable()) stacks_.join();
  quit_answers_.Stop();
}

void Agent::Sleep(int64_t ns) {
  const absl::MutexLock lock(&mutex_);
  mutex_.AwaitWithTimeout(absl::Condition(&stopping_), absl::Nanoseconds(ns));
}

void Agent::RunUplink() {
  const auto stub = v1::AgentLink::NewStub(channel_);
  v1::AgentMessage hello;
  hello.mutable_hello()->set_protocol(kProtocol);
  hello.mutable_hello()->set_host(options_.host.empty() ? HostName() : options_.host);
  hello.mutable_hello()->set_agent_id(
      absl::StrCat(hello.hello().host(), "/", getpid(), "/", UnixNs()));
  hello.mutable_hello()->set_rollcall_version(ROLLCALL_VERSION);
  int64_t pause = kFirstPause;
  bool said = false;
  while (true) {
    {
      Link link(this, stub.get());
      if (link.Send(hello)) TickUntilBroken(&link);
      if (link.welcomed()) {
        pause = kFirstPause;
        said = false;
      }
    }
    {
      const absl::MutexLock lock(&mutex_);
      if (stopping_) return;
    }
    if (!said) spdlog::warn("the daemon cannot be reached; trying again for as long as it takes");
    said = true;
    ++dropped_ticks_;
    // So that a thousand agents do not come back in the same instant.
    Sleep(pause + UnixNs() % (pause / 2));
    pause = std::min(2 * pause, kLongestPause);
  }
}

void Agent::TickUntilBroken(Link* link) {
  {
    const absl::MutexLock lock(&mutex_);
    link_ = link;
  }
  bool whole = true;
  bool stopping = false;
  while (!link->broken() && !stopping) {
    const int64_t begun = MonotonicNs();
    CollectAndSend(whole, link);
    whole = false;
    Sleep(std::max<int64_t>(options_.tick_ns - (MonotonicNs() - begun), 0));
    const absl::MutexLock lock(&mutex_);
    stopping = stopping_;
  }
  if (stopping) {
    CollectAndSend(false, link);  // how the last processes ended
    link->Close();
  }
  const absl::MutexLock lock(&mutex_);
  link_ = nullptr;
}

void Agent::CollectAndSend(bool whole, Link* link) {
  v1::Tick tick = collector_.Collect(UnixNs(), whole);
  for (const std::string& note : collector_.TakeNotes()) spdlog::warn("{}", note);
  v1::AgentMessage message;
  v1::Tick* piece = message.mutable_tick();
  size_t bytes = 0;
  for (v1::ProcessUpdate& process : *tick.mutable_processes()) {
    bytes += process.ByteSizeLong();
    piece->add_processes()->Swap(&process);
    if (bytes < kMessageBytes) continue;
    piece->set_now_ns(tick.now_ns());
    if (!link->Send(message)) return;
    piece->Clear();
    bytes = 0;
  }
  piece->set_now_ns(tick.now_ns());
  piece->set_whole(whole);
  piece->set_dropped_ticks(dropped_ticks_);
  link->Send(message);
}

void Agent::RunStacks() {
  while (true) {
    StackRequest request;
    {
      const absl::MutexLock lock(&mutex_);
      const auto wanted = [this]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
        return stopping_ || !stack_requests_.empty();
      };
      mutex_.Await(absl::Condition(&wanted));
      if (stopping_) return;
      request = std::move(stack_requests_.front());
      stack_requests_.pop_front();
    }
    Answer(request);
  }
}

void Agent::Answer(const StackRequest& request) {
  // The thread's own: files and names are kept from one request to the next.
  static thread_local StackReader reader(options_.collector.proc_root);
  static thread_local AnyWayStackTaker taker(options_.collector.proc_root);
  for (const auto& [pid, start_time] : request.processes) {
    v1::AgentMessage message;
    v1::StackReply* reply = message.mutable_stacks();
    reply->set_request(request.request);
    reply->set_start_time(start_time);
    reply->set_last(pid == request.processes.back().first);
    const auto stat = ReadProcStat(options_.collector.proc_root, pid);
    if (stat.ok() && stat->start_ticks == start_time) {
      *reply->mutable_stack() = ToProto(reader.TakeAndUnwind(&taker, pid, TakeLimits()));
    } else {
      reply->mutable_stack()->set_pid(pid);
      reply->mutable_stack()->set_error("the process has ended");
    }
    const absl::MutexLock lock(&mutex_);
    if (link_ != nullptr) link_->Send(message);
  }
}

std::string HostName() {
  char name[256] = "";
  gethostname(name, sizeof(name) - 1);
  return name;
}

}  // namespace rollcall
