// SPDX-License-Identifier: Apache-2.0
#include "agent/agent.h"

#include <grpcpp/grpcpp.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>

#include "absl/strings/str_cat.h"
#include "agent/processes/monotonic_clock.h"
#include "agent/processes/proc_files.h"
#include "agent/processes/proc_stat.h"
#include "agent/processes/this_host.h"
#include "agent/stacks_proto.h"
#include "proto/steady_clock.h"
#include "rollcall/v1/agent.grpc.pb.h"

namespace rollcall {
namespace {

constexpr uint32_t kProtocol = 1;
constexpr int64_t kFirstPause = 200'000'000;
constexpr int64_t kLongestPause = 5'000'000'000;
// A whole tick of a large host goes in pieces, well below gRPC's message limit.
constexpr size_t kMessageBytes = 1 << 20;
constexpr int64_t kReadTimeout = 1'000'000'000;    // for /proc to answer about a process
constexpr int64_t kStackTimeout = 60'000'000'000;  // for its stacks: reading symbols takes long
constexpr size_t kMaxMapsBytes = 64 << 20;
constexpr std::chrono::seconds kLastWords{3};  // for the daemon to take them when the agent stops

// Reads what stack taking cannot do without.
bool IsThere(const std::string& proc_root, ProcessId process) {
  const auto stat = ReadProcStat(proc_root, process.pid);
  static_cast<void>(ReadProcFile(ProcPath(proc_root, process.pid, "maps"), kMaxMapsBytes));
  return stat.ok() && stat->start_time == process.start_time;
}

}  // namespace

// One stream to the daemon. Read by a thread of its own, written by the uplink thread alone. All of
// it waits for the daemon, unless its context is cancelled.
class Agent::Link {
 public:
  Link(Agent* agent, v1::AgentLink::Stub* stub)
      : agent_(agent), context_(agent->NewContext()), stream_(stub->Connect(context_.get())) {
    reader_ = std::thread([this] { Read(); });
  }
  ~Link() {
    context_->TryCancel();
    reader_.join();
    stream_->Finish();
  }

  bool Send(const v1::AgentMessage& message) { return !broken_ && stream_->Write(message); }

  // Ends our side in good order: what was written is delivered first.
  void Close() {
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
        request.processes.push_back({process.pid(), process.start_time()});
      }
      const std::lock_guard<std::mutex> lock(agent_->mutex_);
      agent_->stack_requests_.push_back(std::move(request));
      agent_->changed_.notify_all();
    }
    broken_ = true;
  }

  Agent* const agent_;
  const std::shared_ptr<grpc::ClientContext> context_;
  const std::unique_ptr<grpc::ClientReaderWriter<v1::AgentMessage, v1::DaemonMessage>> stream_;
  std::atomic<bool> broken_{false}, welcomed_{false};
  std::thread reader_;
};

Agent::Agent(AgentOptions options, std::shared_ptr<grpc::ChannelInterface> channel)
    : options_(std::move(options)),
      channel_(std::move(channel)),
      collector_(options_.collector),
      pauses_(options_.tick_ns),
      quit_answers_(options_.collector.directory, options_.collector.proc_root) {}

Agent::~Agent() { Stop(); }

void Agent::Start() {
  uplink_runs_ = true;
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
    const std::lock_guard<std::mutex> lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  stack_threads_.Cancel();
  CutOffWhenLate();
  if (uplink_.joinable()) uplink_.join();
  if (stacks_.joinable()) stacks_.join();
  quit_answers_.Stop();
}

void Agent::CutOffWhenLate() {
  std::unique_lock<std::mutex> lock(mutex_);
  if (changed_.wait_for(lock, kLastWords, [this] { return !uplink_runs_; })) return;
  cut_off_ = true;
  if (context_ != nullptr) context_->TryCancel();
  spdlog::warn("the daemon does not answer: it may not know what this host saw last");
}

// Cancelled already, if nothing may wait any longer.
std::shared_ptr<grpc::ClientContext> Agent::NewContext() {
  auto context = std::make_shared<grpc::ClientContext>();
  const std::lock_guard<std::mutex> lock(mutex_);
  if (cut_off_) context->TryCancel();
  context_ = context;
  return context;
}

bool Agent::stopping() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return stopping_;
}

void Agent::Sleep(int64_t ns) {
  std::unique_lock<std::mutex> lock(mutex_);
  changed_.wait_for(lock, std::chrono::nanoseconds(ns), [this] { return stopping_; });
}

void Agent::RunUplink() {
  const auto stub = v1::AgentLink::NewStub(channel_);
  v1::AgentMessage hello;
  hello.mutable_hello()->set_protocol(kProtocol);
  hello.mutable_hello()->set_host(options_.host.empty() ? HostName() : options_.host);
  hello.mutable_hello()->set_agent_id(
      absl::StrCat(hello.hello().host(), "/", getpid(), "/", UnixNs()));
  hello.mutable_hello()->set_rollcall_version(ROLLCALL_VERSION);
  hello.mutable_hello()->set_tick_ns(options_.tick_ns);
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
    if (stopping()) break;
    if (!said) spdlog::warn("the daemon cannot be reached; trying again for as long as it takes");
    said = true;
    ++dropped_ticks_;
    // So that a thousand agents do not come back in the same instant.
    Sleep(pause + MonotonicNs() % (pause / 2));
    pause = std::min(2 * pause, kLongestPause);
  }
  const std::lock_guard<std::mutex> lock(mutex_);
  uplink_runs_ = false;
  changed_.notify_all();
}

void Agent::TickUntilBroken(Link* link) {
  SetLinked(true);
  bool whole = true;
  while (!link->broken() && !stopping()) {
    const int64_t next_ns = MonotonicNs() + options_.tick_ns;
    CollectAndSend(whole, link);
    whole = false;
    SendAnswersUntil(next_ns, link);
  }
  if (stopping()) {
    // How the last processes ended; all that is known, where this stream has sent nothing yet.
    CollectAndSend(whole, link);
    link->Close();
  }
  SetLinked(false);
}

// An answer that waits when the stream breaks is dropped.
void Agent::SetLinked(bool linked) {
  const std::lock_guard<std::mutex> lock(mutex_);
  linked_ = linked;
  answer_.reset();
  changed_.notify_all();
}

// Sends the answers that come until the next tick is due: one at least, if it waits by then.
void Agent::SendAnswersUntil(int64_t until_ns, Link* link) {
  do {
    std::optional<v1::AgentMessage> answer;
    {
      std::unique_lock<std::mutex> lock(mutex_);
      changed_.wait_for(lock, std::chrono::nanoseconds(until_ns - MonotonicNs()),
                        [this] { return stopping_ || answer_.has_value(); });
      answer.swap(answer_);
      changed_.notify_all();
    }
    if (!answer.has_value()) return;
    link->Send(*answer);
  } while (MonotonicNs() < until_ns);
}

// Once more after a pause meanwhile: what was read before it is not how things stand now.
v1::Tick Agent::Collect(bool whole) {
  while (true) {
    const int64_t waits_from_ns = pauses_.WaitsFrom();
    collector_.BeginWaitsAt(waits_from_ns);
    v1::Tick tick = collector_.Collect(SteadyNs(), whole);
    if (pauses_.WaitsFrom() == waits_from_ns) return tick;
    whole = true;
  }
}

void Agent::CollectAndSend(bool whole, Link* link) {
  v1::Tick tick = Collect(whole);
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
  piece->set_whole(tick.whole());
  piece->set_dropped_ticks(dropped_ticks_);
  link->Send(message);
}

void Agent::RunStacks() {
  while (true) {
    StackRequest request;
    {
      std::unique_lock<std::mutex> lock(mutex_);
      changed_.wait(lock, [this] { return stopping_ || !stack_requests_.empty(); });
      if (stopping_) return;
      request = std::move(stack_requests_.front());
      stack_requests_.pop_front();
    }
    Answer(request);
  }
}

// Only of processes that the agent has reported.
v1::ProcessStack Agent::TakeStack(ProcessId process) {
  v1::ProcessStack none;
  none.set_pid(process.pid);
  const std::string& proc_root = options_.collector.proc_root;
  if (!collector_.Serves(process)) {
    none.set_error("this host's agent cannot see the process, or it is none of a training job");
    return none;
  }
  const std::string key = absl::StrCat(process.pid);
  const auto is_there = stack_threads_.Get<bool>(
      key, [proc_root, process] { return IsThere(proc_root, process); }, kReadTimeout);
  if (!is_there.value_or(false)) {
    none.set_error(is_there.has_value()
                       ? "the process has ended"
                       : "the kernel lets nobody look into it now: no stacks can be taken");
    return none;
  }
  if (stack_tools_ == nullptr) stack_tools_ = std::make_shared<StackTools>(proc_root);
  auto stack = std::make_shared<v1::ProcessStack>();
  const auto take = [tools = stack_tools_, pid = process.pid, stack] {
    *stack = ToProto(tools->reader.TakeAndUnwind(&tools->taker, pid, TakeLimits()));
  };
  if (stack_threads_.Run(key, take, kStackTimeout)) return *stack;
  stack_tools_ = nullptr;  // the other thread's now
  none.set_error("taking its stacks does not come to an end");
  return none;
}

void Agent::Answer(const StackRequest& request) {
  for (const ProcessId process : request.processes) {
    v1::AgentMessage message;
    v1::StackReply* reply = message.mutable_stacks();
    reply->set_request(request.request);
    reply->set_start_time(process.start_time);
    *reply->mutable_stack() = TakeStack(process);
    if (!HandOver(std::move(message))) return;
  }
}

// Waits until the uplink thread has taken the answer before: a daemon that does not read costs no
// memory. Without a stream the answer is dropped. False: the agent stops.
bool Agent::HandOver(v1::AgentMessage answer) {
  std::unique_lock<std::mutex> lock(mutex_);
  changed_.wait(lock, [this] { return stopping_ || !linked_ || !answer_.has_value(); });
  if (stopping_) return false;
  if (!linked_) return true;
  answer_ = std::move(answer);
  changed_.notify_all();
  return true;
}

}  // namespace rollcall
