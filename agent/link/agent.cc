// SPDX-License-Identifier: Apache-2.0
#include <google/protobuf/arena.h>
#include <grpcpp/grpcpp.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>

#include "absl/strings/str_cat.h"
#include "agent/link/agent.h"
#include "agent/link/network_samples.h"
#include "agent/link/short_columns.h"
#include "agent/link/tick_pieces.h"
#include "agent/processes/payer.h"
#include "agent/processes/this_host.h"
#include "base/backoff.h"
#include "base/clean_text.h"
#include "base/durations.h"
#include "base/monotonic_clock.h"
#include "base/steady_clock.h"
#include "rollcall/v1/agent.grpc.pb.h"

namespace rollcall {
namespace {

constexpr uint32_t kProtocol = 1;
// At most three seconds: an agent is back within five seconds after its daemon. Chance spreads the
// reconnections of a thousand agents.
constexpr Backoff kRetry = {kSecond / 5, 2 * kSecond, 1, 1.5};
constexpr int64_t kHasWorkedNs = 5'000'000'000;   // a stream that lasted so long
constexpr int64_t kLongestTick = 60'000'000'000;  // that a daemon may ask for
constexpr char kDistrusted[] = "the daemon's certificate has been revoked";
constexpr int64_t kTrustChecksApart = 10'000'000'000;
constexpr size_t kMessageBytes = 1 << 20;
// A tick takes milliseconds; on a host that swaps, seconds.
constexpr int64_t kDeadAfterNs = 30'000'000'000;
constexpr std::chrono::seconds kStopTimeout{3};      // for the last ticks
constexpr int64_t kCatchUpWithin = 3 * kSecond / 2;  // in the last ticks
constexpr std::chrono::milliseconds kCatchUpPause{5};
constexpr size_t kMostHostFactsRequests = 4;  // that wait
constexpr int64_t kListUnrecordedEvery = 10 * kSecond;

AgentOptions WithNamer(AgentOptions options) {
  if (options.stack_namer == nullptr) {
    options.stack_namer = std::make_shared<StackNamer>(options.collector.proc_root);
  }
  return options;
}

StackServiceOptions ServiceOptionsFrom(const AgentOptions& options, const ServedSegments* served,
                                       std::function<std::vector<pid_t>()> neighbours) {
  StackServiceOptions service;
  service.neighbours = std::move(neighbours);
  service.proc_root = options.collector.proc_root;
  service.max_per_minute = options.max_stacks_per_minute;
  service.stacks_on = options.stacks_on;
  service.redactor = options.collector.redactor;
  service.allowance = options.stack_allowance;
  service.namer = options.stack_namer;
  service.effects = options.sample_effects;
  service.segment_of = [served](ProcessId process) { return served->Of(process); };
  return service;
}

HostFactsOptions HostFactsFrom(const AgentOptions& options) {
  HostFactsOptions facts = options.host_facts;
  facts.redactor = options.collector.redactor;
  facts.proc_root = options.collector.proc_root;
  return facts;
}

PendingRequest ToPending(uint64_t stream, uint64_t number,
                         const google::protobuf::RepeatedPtrField<v1::ProcessRef>& processes) {
  PendingRequest request;
  request.stream = stream;
  request.request = number;
  // One more than the queue holds, so that it refuses the request. The rest has no answer: a daemon
  // could ask for millions.
  const int most = std::min<int>(processes.size(), StackQueue::kMostProcesses + 1);
  for (int i = 0; i < most; ++i) {
    const v1::ProcessRef& process = processes[i];
    request.processes.push_back({process.pid(), process.start_time()});
  }
  return request;
}

std::vector<uint64_t> NetworkOf(const v1::TakeStacks& take) {
  const int most = std::min(take.network_of_size(), static_cast<int>(kMostNetworkComms));
  return {take.network_of().begin(), take.network_of().begin() + most};
}

// No later try helps, unless somebody changes a certificate, a token or a grant.
bool IsRefusal(const grpc::Status& failure) {
  return failure.error_code() == grpc::StatusCode::UNAUTHENTICATED ||
         failure.error_code() == grpc::StatusCode::PERMISSION_DENIED;
}

}  // namespace

// One stream to the daemon. A reader thread reads it; only the uplink thread writes it. Every call
// may block until the daemon answers or the context is cancelled.
class Agent::Link {
 public:
  Link(Agent* agent, v1::AgentLink::Stub* stub)
      : agent_(agent),
        number_(agent->StreamNumber()),
        context_(agent->NewContext()),
        stream_(stub->Connect(context_.get())) {
    reader_ = std::thread([this] { Read(); });
  }
  ~Link() {
    context_->TryCancel();
    {
      const MutexLock lock(agent_->mutex_);
      ++agent_->stream_;  // before the join: the reader may wait in HandOver()
      agent_->changed_.NotifyAll();
    }
    static_cast<void>(Finish());
  }

  // How the stream has ended. Waits for that.
  const grpc::Status& Finish() {
    if (!reader_.joinable()) return status_;
    reader_.join();
    status_ = stream_->Finish();
    return status_;
  }

  bool Send(const v1::AgentMessage& message) { return !broken_ && stream_->Write(message); }

  // Half-closes the stream, then waits up to half a second for the daemon to end it, so that the
  // daemon receives every message written before.
  void Close() {
    if (!broken_) stream_->WritesDone();
    for (int i = 0; i < 100 && !broken_; ++i) usleep(5000);
  }

  const grpc::ClientContext& context() const { return *context_; }
  bool broken() const { return broken_; }
  bool welcomed() const { return welcomed_; }
  // The records that a whole tick needs of each communicator; 0: all.
  uint32_t whole_records() const { return whole_records_; }
  bool reads_short_columns() const { return reads_short_columns_; }
  bool must_connect_anew() const { return must_connect_anew_; }
  // Whether the daemon has asked for a whole tick since the last call.
  bool TakeWishForWhole() { return wants_whole_.exchange(false); }

 private:
  void Read() {
    v1::DaemonMessage message;
    while (stream_->Read(&message)) {
      if (message.has_welcome()) SetWelcomed(message.welcome());
      if (message.has_pace()) agent_->SetPace(message.pace().tick_ns());
      if (message.has_owners()) FollowOwners(message.owners());
      if (message.has_host_hangs() && agent_->options_.host_hangs != nullptr) {
        agent_->TakeInHostHangs(message.host_hangs());
      }
      if (message.has_take_stacks()) {
        const v1::TakeStacks& take = message.take_stacks();
        PendingRequest request = ToPending(number_, take.request(), take.processes());
        request.children = take.children();
        request.network_of = NetworkOf(take);
        agent_->TakeIn(std::move(request));
      }
      if (message.has_gather_host_facts()) {
        const v1::GatherHostFacts& gather = message.gather_host_facts();
        agent_->TakeInHostFacts(ToPending(number_, gather.request(), gather.processes()));
      }
    }
    const MutexLock lock(agent_->mutex_);
    broken_ = true;
    agent_->changed_.NotifyAll();
  }

  void FollowOwners(const v1::Owners& owners) {
    StreamWatcher* const watcher = agent_->options_.watcher.get();
    if (watcher == nullptr) return;
    watcher->Told(owners);
    if (!owners.send_whole()) return;
    wants_whole_ = true;
    agent_->TickSoon();
  }

  void SetWelcomed(const v1::Welcome& welcome) {
    StreamWatcher* const watcher = agent_->options_.watcher.get();
    must_connect_anew_ = watcher != nullptr && !watcher->Welcomed(welcome);
    const MutexLock lock(agent_->mutex_);
    whole_records_ = welcome.whole_records();
    reads_short_columns_ = welcome.reads_short_columns();
    welcomed_ = true;
    agent_->changed_.NotifyAll();
  }

  Agent* const agent_;
  const uint64_t number_;
  const std::shared_ptr<grpc::ClientContext> context_;
  const std::unique_ptr<grpc::ClientReaderWriter<v1::AgentMessage, v1::DaemonMessage>> stream_;
  std::atomic<bool> broken_{false}, welcomed_{false}, reads_short_columns_{false};
  std::atomic<bool> must_connect_anew_{false}, wants_whole_{false};
  std::atomic<uint32_t> whole_records_{0};
  std::thread reader_;
  grpc::Status status_;
};

Agent::Agent(AgentOptions options, std::shared_ptr<grpc::ChannelInterface> channel)
    : Agent(std::move(options), [channel = std::move(channel)] { return channel; }) {}

Agent::Agent(AgentOptions options, ChannelSource channels)
    : options_(WithNamer(std::move(options))),
      channels_(std::move(channels)),
      collector_(options_.collector),
      pauses_(options_.tick_ns),
      stack_service_(
          ServiceOptionsFrom(options_, &collector_.served(), [this] { return Neighbours(); }),
          [this](ProcessId process) {
            return collector_.served().Has(process) || IsListed(process);
          }),
      host_facts_service_(HostFactsFrom(options_),
                          [this](ProcessId process) { return collector_.served().Has(process); }),
      quit_answers_(options_.collector.directory, options_.collector.proc_root,
                    options_.stack_namer),
      host_facts_(kMostHostFactsRequests) {}

Agent::~Agent() { Stop(); }

void Agent::Start() {
  {
    const MutexLock lock(mutex_);
    uplink_runs_ = true;
  }
  uplink_ = std::thread([this] { RunUplink(); });
  stacks_ = std::thread([this] { RunStacks(); });
  if (options_.stacks_on && options_.answers_quit) StartQuitAnswers(&quit_answers_);
}

void StartQuitAnswers(QuitAnswers* answers) {
  const absl::Status listening = answers->Start();
  if (listening.ok()) return;
  spdlog::warn("cannot answer SIGQUIT of training processes: {}", std::string(listening.message()));
}

void Agent::Stop() {
  {
    const MutexLock lock(mutex_);
    stopping_ = true;
  }
  changed_.NotifyAll();
  stack_service_.Cancel();
  host_facts_service_.Cancel();
  CutOffWhenLate();
  if (uplink_.joinable()) uplink_.join();
  if (stacks_.joinable()) stacks_.join();
  host_facts_.Finish(SteadyTime::max(), Worker::Waiting::kDrop);
  quit_answers_.Stop();
}

void Agent::TickSoon() {
  const MutexLock lock(mutex_);
  tick_soon_ = true;
  changed_.NotifyAll();
}

bool Agent::IsAlive() const {
  const int64_t since_ns = collects_since_ns_;
  return since_ns == 0 || MonotonicNs() - since_ns < kDeadAfterNs;
}

void Agent::CutOffWhenLate() {
  const auto deadline = std::chrono::steady_clock::now() + kStopTimeout;
  const MutexLock lock(mutex_);
  while (uplink_runs_ && changed_.WaitUntil(mutex_, deadline)) {
  }
  if (!uplink_runs_) return;
  cut_off_ = true;
  if (context_ != nullptr) context_->TryCancel();
  spdlog::warn("the daemon does not answer: it may not have the last state of this host");
}

// Returns a cancelled context after Stop() has cut the streams off.
std::shared_ptr<grpc::ClientContext> Agent::NewContext() {
  auto context = std::make_shared<grpc::ClientContext>();
  const MutexLock lock(mutex_);
  if (cut_off_) context->TryCancel();
  context_ = context;
  return context;
}

uint64_t Agent::StreamNumber() {
  const MutexLock lock(mutex_);
  return stream_;
}

bool Agent::stopping() {
  const MutexLock lock(mutex_);
  return stopping_;
}

void Agent::Sleep(int64_t ns) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::nanoseconds(ns);
  const MutexLock lock(mutex_);
  while (!stopping_ && changed_.WaitUntil(mutex_, deadline)) {
  }
}

void Agent::RunUplink() {
  v1::AgentMessage hello;
  hello.mutable_hello()->set_protocol(kProtocol);
  hello.mutable_hello()->set_host(options_.host.empty() ? HostName() : options_.host);
  hello.mutable_hello()->set_agent_id(
      absl::StrCat(hello.hello().host(), "/", getpid(), "/", UnixNs()));
  hello.mutable_hello()->set_rollcall_version(ROLLCALL_VERSION);
  hello.mutable_hello()->set_tick_ns(options_.tick_ns);
  hello.mutable_hello()->set_follows_owners(options_.watcher != nullptr);
  hello.mutable_hello()->set_wants_host_hangs(options_.host_hangs != nullptr);
  int failures = 0;                                                     // in a row
  enum class Said { kNothing, kAway, kRefused } said = Said::kNothing;  // in the last warning
  while (true) {
    grpc::Status failure;
    bool must_connect_anew = false, has_worked = false, trusts = true;
    const int64_t begun_ns = MonotonicNs();
    {
      const auto stub = v1::AgentLink::NewStub(channels_());
      Link link(this, stub.get());
      if (link.Send(hello) && AwaitWelcome(link)) trusts = TickUntilBroken(&link);
      must_connect_anew = link.must_connect_anew();
      if (link.welcomed()) {
        failures = 0;
        said = Said::kNothing;
        has_worked = MonotonicNs() - begun_ns >= kHasWorkedNs;
      }
      // Explaining it connects once more, and sees why.
      if (!trusts) failure = {grpc::StatusCode::UNAVAILABLE, kDistrusted};
      if (trusts && !must_connect_anew && !stopping()) failure = link.Finish();
    }
    CloseLink();
    if (stopping()) break;
    if (must_connect_anew) continue;
    if (options_.watcher != nullptr) options_.watcher->Broken();
    // A daemon ends the stream when a job goes to another daemon. If it is away, the next try says
    // so.
    const Said now = IsRefusal(failure) ? Said::kRefused
                     : has_worked       ? Said::kNothing
                                        : Said::kAway;
    if (now != Said::kNothing && now != said) WarnOfFailure(failure);
    said = now;
    ++dropped_ticks_;
    const auto chance = static_cast<double>(MonotonicNs() % kSecond) / kSecond;
    Sleep(kRetry.PauseNs(++failures, chance));
  }
  const MutexLock lock(mutex_);
  uplink_runs_ = false;
  changed_.NotifyAll();
}

void Agent::WarnOfFailure(const grpc::Status& failure) const {
  const std::string reason = options_.explain ? options_.explain(failure) : failure.error_message();
  spdlog::warn("{}{}{}",
               IsRefusal(failure) ? "the daemon refuses this agent; retrying until it admits it"
                                  : "cannot reach the daemon; retrying until it answers",
               reason.empty() ? "" : ": ", CleanText(reason));
}

// A daemon to which a whole fleet connects at once welcomes some agents at a time. False: the
// stream is broken.
bool Agent::AwaitWelcome(const Link& link) {
  const MutexLock lock(mutex_);
  while (!link.welcomed() && !link.broken() && !stopping_) changed_.Wait(mutex_);
  return !link.broken();
}

// False: the stream is whole, and its daemon is no longer to be trusted.
bool Agent::TickUntilBroken(Link* link) {
  collector_.SetWholeRecords(link->whole_records());
  tick_ns_ = options_.tick_ns;  // until the daemon asks for another pace
  is_connected_ = true;
  bool whole = true;
  int64_t trusted_ns = MonotonicNs();
  while (!link->broken() && !link->must_connect_anew() && !stopping()) {
    if (options_.still_trusts && MonotonicNs() - trusted_ns >= kTrustChecksApart) {
      if (!options_.still_trusts(link->context())) return false;
      trusted_ns = MonotonicNs();
    }
    const int64_t next_ns = MonotonicNs() + tick_ns_;
    const bool is_wanted = options_.watcher != nullptr && options_.watcher->WantsWhole();
    CollectAndSend(link->TakeWishForWhole() || is_wanted || whole, link);
    whole = false;
    SendUnrecorded(link);
    PassOnHostHangs();
    SendAnswersUntil(next_ns, link);
  }
  if (stopping()) {
    SendLastTicks(whole, link);
    link->Close();
  }
  return true;
}

// Reports how the last processes ended. A stream without a tick so far gets a whole tick. The last
// calls of a short job may be in files that no tick has read so far.
void Agent::SendLastTicks(bool whole, Link* link) {
  const int64_t until_ns = MonotonicNs() + kCatchUpWithin;
  CollectAndSend(whole, link);
  while (collector_.IsBehind() && MonotonicNs() < until_ns) {
    std::this_thread::sleep_for(kCatchUpPause);
    CollectAndSend(false, link);
  }
}

void Agent::SetPace(int64_t tick_ns) {
  tick_ns_ = std::clamp(tick_ns, options_.tick_ns, std::max(options_.tick_ns, kLongestTick));
}

// Drops what the broken stream has asked and not been sent. The next stream may lead to another
// daemon, which may ask only for what this agent reports to it.
void Agent::CloseLink() {
  is_connected_ = false;
  if (options_.host_hangs != nullptr) options_.host_hangs->Drop(this);
  collector_.served().Clear();
  listed_ns_ = 0;
  listed_text_.clear();
  const MutexLock lock(mutex_);
  listed_.clear();
  answer_.reset();
  stack_requests_.Clear();
  host_facts_.DropWaiting();
  host_hangs_.reset();
  changed_.NotifyAll();
}

// Sends answers until the next tick is due or the stream is broken. Sends at least one answer if
// one is ready.
void Agent::SendAnswersUntil(int64_t until_ns, Link* link) {
  do {
    std::optional<v1::AgentMessage> answer;
    {
      const auto deadline =
          std::chrono::steady_clock::now() + std::chrono::nanoseconds(until_ns - MonotonicNs());
      const MutexLock lock(mutex_);
      while (!stopping_ && !tick_soon_ && !link->broken() && !answer_.has_value() &&
             changed_.WaitUntil(mutex_, deadline)) {
      }
      tick_soon_ = false;
      if (!answer_.has_value()) return;
      answer.swap(answer_);
      changed_.NotifyAll();
    }
    link->Send(*answer);
  } while (MonotonicNs() < until_ns);
}

// Collects again if the agent was paused during the collection: the values read before the pause
// are out of date.
void Agent::Collect(bool whole, v1::Tick* tick) {
  while (true) {
    const int64_t wait_floor_ns = pauses_.WaitFloorNs();
    collector_.SetWaitFloor(wait_floor_ns);
    collector_.Collect(SteadyNs(), whole, tick);
    if (pauses_.WaitFloorNs() == wait_floor_ns) return;
    tick->Clear();
    whole = true;
  }
}

void Agent::CollectAndSend(bool whole, Link* link) {
  google::protobuf::Arena arena;  // a tick has thousands of small parts
  auto* message = google::protobuf::Arena::CreateMessage<v1::AgentMessage>(&arena);
  v1::Tick* tick = message->mutable_tick();
  collects_since_ns_ = MonotonicNs();
  Collect(whole, tick);
  collects_since_ns_ = 0;
  for (const std::string& warning : collector_.TakeWarnings()) spdlog::warn("{}", warning);
  tick->set_dropped_ticks(dropped_ticks_);
  if (link->reads_short_columns()) ShortenColumns(tick);
  if (IsOnePiece(*tick, kMessageBytes)) {
    link->Send(*message);
    return;
  }
  for (v1::Tick& piece : SplitTick(std::move(*tick), kMessageBytes)) {
    v1::AgentMessage part;
    part.mutable_tick()->Swap(&piece);
    if (!link->Send(part)) return;
  }
}

// When the list has changed. Costs no read: the ticks have found the processes.
void Agent::SendUnrecorded(Link* link) {
  const int64_t now_ns = MonotonicNs();
  if (!options_.collector.find_unrecorded) return;
  if (listed_ns_ != 0 && now_ns - listed_ns_ < kListUnrecordedEvery) return;
  listed_ns_ = now_ns;
  v1::AgentMessage message;
  v1::UnrecordedProcesses* list = message.mutable_unrecorded();
  *list = collector_.ListUnrecorded();
  std::string text = list->SerializeAsString();
  if (text == listed_text_) return;
  std::set<ProcessId> listed;
  for (const v1::UnrecordedProcess& process : list->processes()) {
    listed.insert({process.pid(), process.start_time()});
  }
  {
    const MutexLock lock(mutex_);
    listed_ = std::move(listed);
  }
  listed_text_ = std::move(text);
  link->Send(message);
}

bool Agent::IsListed(ProcessId process) {
  const MutexLock lock(mutex_);
  return listed_.count(process) != 0;
}

// Ranks without the library are read only for one of them: a look at a recorded job has its own.
std::vector<pid_t> Agent::Neighbours() {
  std::vector<pid_t> pids = collector_.served().Pids();
  if (!IsListed(sampled_)) return pids;
  const MutexLock lock(mutex_);
  for (const ProcessId process : listed_) pids.push_back(process.pid);
  return pids;
}

void Agent::RunStacks() {
  while (true) {
    PendingRequest request;
    {
      const MutexLock lock(mutex_);
      while (!stopping_ && stack_requests_.empty()) changed_.Wait(mutex_);
      if (stopping_) return;
      request = stack_requests_.Pop();
    }
    Answer(request);
  }
}

void Agent::Answer(const PendingRequest& request) {
  for (const ProcessId process : request.processes) {
    sampled_ = process;
    v1::ProcessStack stack = stack_service_.Take(process, request.children, request.network_of);
    std::optional<v1::Evidence> evidence;
    if (IsListed(process)) evidence = stack_service_.EvidenceOf(process);
    if (!HandOver(request, process, std::move(stack), evidence)) return;
  }
}

// For the reader of the stream. A request without room is refused here: the reader then reads no
// faster than the daemon reads the refusals.
void Agent::TakeIn(PendingRequest request) {
  if (!request.processes.empty()) {
    request.owner = PayerOfReads(options_.collector.proc_root, request.processes.front().pid);
  }
  {
    const MutexLock lock(mutex_);
    if (stack_requests_.Push(&request)) {
      changed_.NotifyAll();
      return;
    }
  }
  for (const ProcessId process : request.processes) {
    v1::ProcessStack none = stack_service_.Refuse(
        process, "the agent of this host has too many requests for stacks: ask again later");
    if (!HandOver(request, process, std::move(none))) return;
  }
}

// For the reader of the stream. A daemon asks once for each incident, so it misses nothing by an
// answer without facts.
void Agent::TakeInHostFacts(const PendingRequest& request) {
  if (host_facts_.Post([this, request] { AnswerWithHostFacts(request); })) return;
  v1::AgentMessage answer;
  answer.mutable_host_facts()->set_request(request.request);
  *answer.mutable_host_facts()->mutable_facts() =
      host_facts_service_.Refuse("the agent of this host has too many requests for facts");
  HandOver(request.stream, std::move(answer));
}

void Agent::TakeInHostHangs(const v1::HostHangs& hangs) {
  const MutexLock lock(mutex_);
  host_hangs_ = hangs;
}

// A hang counts only while this agent reports one of its culprits itself: else an agent that may
// speak for every host could have this one marked.
void Agent::PassOnHostHangs() {
  if (options_.host_hangs == nullptr || MonotonicNs() - passed_on_ns_ < kSecond) return;
  passed_on_ns_ = MonotonicNs();
  std::optional<v1::HostHangs> told;
  {
    const MutexLock lock(mutex_);
    told = host_hangs_;
  }
  if (!told.has_value()) return;
  v1::HostHangs own;
  for (const v1::HostHangs::Hang& hang : told->hangs()) {
    const bool is_own = std::any_of(hang.pids().begin(), hang.pids().end(), [this](int32_t pid) {
      return collector_.served().HasPid(pid);
    });
    if (is_own) *own.add_hangs() = hang;
  }
  options_.host_hangs->Set(this, own);
}

void Agent::AnswerWithHostFacts(const PendingRequest& request) {
  v1::AgentMessage answer;
  answer.mutable_host_facts()->set_request(request.request);
  *answer.mutable_host_facts()->mutable_facts() = host_facts_service_.Take(request.processes);
  HandOver(request.stream, std::move(answer));
}

bool Agent::HandOver(const PendingRequest& request, ProcessId process, v1::ProcessStack stack,
                     const std::optional<v1::Evidence>& evidence) {
  v1::AgentMessage answer;
  v1::StackReply* reply = answer.mutable_stacks();
  reply->set_request(request.request);
  reply->set_start_time(process.start_time);
  *reply->mutable_stack() = std::move(stack);
  if (evidence.has_value()) *reply->mutable_evidence() = *evidence;
  return HandOver(request.stream, std::move(answer));
}

// Waits until the uplink thread has taken the previous answer, so that a daemon that does not read
// costs no memory. False: the agent stops, or the stream that asked has ended.
bool Agent::HandOver(uint64_t stream, v1::AgentMessage answer) {
  const MutexLock lock(mutex_);
  while (answer_.has_value() && !stopping_ && stream == stream_) changed_.Wait(mutex_);
  if (stopping_ || stream != stream_) return false;
  answer_ = std::move(answer);
  changed_.NotifyAll();
  return true;
}

}  // namespace rollcall
