// SPDX-License-Identifier: Apache-2.0
#include "agent/link/agent.h"

#include <google/protobuf/arena.h>
#include <grpcpp/grpcpp.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>

#include "absl/strings/str_cat.h"
#include "agent/link/daemon_stream.h"
#include "agent/link/short_columns.h"
#include "agent/link/tick_pieces.h"
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

AgentOptions WithNamer(AgentOptions options) {
  if (options.stack_namer == nullptr) {
    options.stack_namer = std::make_shared<StackNamer>(options.collector.proc_root);
  }
  return options;
}

StackServiceOptions StacksFrom(const AgentOptions& options) {
  StackServiceOptions service;
  service.proc_root = options.collector.proc_root;
  service.max_per_minute = options.max_stacks_per_minute;
  service.stacks_on = options.stacks_on;
  service.redactor = options.collector.redactor;
  service.allowance = options.stack_allowance;
  service.namer = options.stack_namer;
  service.effects = options.sample_effects;
  return service;
}

HostFactsOptions HostFactsFrom(const AgentOptions& options) {
  HostFactsOptions facts = options.host_facts;
  facts.redactor = options.collector.redactor;
  facts.proc_root = options.collector.proc_root;
  return facts;
}

LookServiceOptions LooksFrom(const AgentOptions& options) {
  LookServiceOptions looks;
  looks.proc_root = options.collector.proc_root;
  looks.is_on = options.stacks_on;
  looks.logs_on = options.host_facts.is_on;
  looks.redactor = options.collector.redactor;
  looks.allowance = options.look_allowance;
  return looks;
}

// No later try helps, unless somebody changes a certificate, a token or a grant.
bool IsRefusal(const grpc::Status& failure) {
  return failure.error_code() == grpc::StatusCode::UNAUTHENTICATED ||
         failure.error_code() == grpc::StatusCode::PERMISSION_DENIED;
}

}  // namespace

Agent::Agent(AgentOptions options, std::shared_ptr<grpc::ChannelInterface> channel)
    : Agent(std::move(options), [channel = std::move(channel)] { return channel; }) {}

Agent::Agent(AgentOptions options, ChannelSource channels)
    : options_(WithNamer(std::move(options))),
      channels_(std::move(channels)),
      collector_(options_.collector),
      host_hangs_(options_.host_hangs, &collector_.served()),
      stacks_(StacksFrom(options_), &collector_.served(), &unrecorded_, &inbox_),
      host_facts_(HostFactsFrom(options_), LooksFrom(options_), &collector_.served(), &unrecorded_,
                  &inbox_),
      quit_answers_(options_.collector.directory, options_.collector.proc_root,
                    options_.stack_namer),
      pauses_(options_.tick_ns) {}

Agent::~Agent() { Stop(); }

void Agent::Start() {
  cutter_.SetUplinkRuns(true);
  uplink_ = std::thread([this] { RunUplink(); });
  stacks_.Start();
  if (options_.stacks_on && options_.answers_quit) StartQuitAnswers(&quit_answers_);
}

void StartQuitAnswers(QuitAnswers* answers) {
  const absl::Status listening = answers->Start();
  if (listening.ok()) return;
  spdlog::warn("cannot answer SIGQUIT of training processes: {}", std::string(listening.message()));
}

void Agent::Stop() {
  inbox_.Stop();
  stacks_.Cancel();
  host_facts_.Cancel();
  cutter_.AwaitEnd(kStopTimeout);
  if (uplink_.joinable()) uplink_.join();
  stacks_.Stop();
  host_facts_.Stop();
  quit_answers_.Stop();
}

bool Agent::IsAlive() const {
  const int64_t since_ns = collects_since_ns_;
  return since_ns == 0 || MonotonicNs() - since_ns < kDeadAfterNs;
}

v1::AgentMessage Agent::MakeHello() const {
  v1::AgentMessage hello;
  hello.mutable_hello()->set_protocol(kProtocol);
  hello.mutable_hello()->set_host(options_.host.empty() ? HostName() : options_.host);
  hello.mutable_hello()->set_agent_id(
      absl::StrCat(hello.hello().host(), "/", getpid(), "/", UnixNs()));
  hello.mutable_hello()->set_rollcall_version(ROLLCALL_VERSION);
  hello.mutable_hello()->set_tick_ns(options_.tick_ns);
  hello.mutable_hello()->set_follows_owners(options_.watcher != nullptr);
  hello.mutable_hello()->set_wants_host_hangs(options_.host_hangs != nullptr);
  return hello;
}

void Agent::RunUplink() {
  const v1::AgentMessage hello = MakeHello();
  const DaemonStream::Receivers receivers = {&inbox_, &stacks_, &host_facts_, &host_hangs_,
                                             options_.watcher.get()};
  int failures = 0;                                                     // in a row
  enum class Said { kNothing, kAway, kRefused } said = Said::kNothing;  // in the last warning
  while (true) {
    grpc::Status failure;
    bool must_connect_anew = false, has_worked = false, trusts = true;
    const int64_t begun_ns = MonotonicNs();
    {
      const auto stub = v1::AgentLink::NewStub(channels_());
      DaemonStream stream(receivers, stub.get(), cutter_.NewContext());
      // A daemon to which a whole fleet connects at once welcomes some agents at a time.
      if (stream.Send(hello)) {
        inbox_.WaitFor([&stream] { return stream.welcomed() || stream.broken(); });
        if (!stream.broken()) trusts = TickUntilBroken(&stream);
      }
      must_connect_anew = stream.must_connect_anew();
      if (stream.welcomed()) {
        failures = 0;
        said = Said::kNothing;
        has_worked = MonotonicNs() - begun_ns >= kHasWorkedNs;
      }
      // Explaining it connects once more, and sees why.
      if (!trusts) failure = {grpc::StatusCode::UNAVAILABLE, kDistrusted};
      if (trusts && !must_connect_anew && !inbox_.stopping()) failure = stream.Finish();
    }
    ForgetStream();
    if (inbox_.stopping()) break;
    if (must_connect_anew) continue;
    if (options_.watcher != nullptr) options_.watcher->Broken();
    // A daemon ends the stream when a job goes to another daemon. If it is away, the next try
    // reports it.
    const Said now = IsRefusal(failure) ? Said::kRefused
                     : has_worked       ? Said::kNothing
                                        : Said::kAway;
    if (now != Said::kNothing && now != said) WarnOfFailure(failure);
    said = now;
    ++dropped_ticks_;
    const auto chance = static_cast<double>(MonotonicNs() % kSecond) / kSecond;
    inbox_.SleepUnlessStopping(kRetry.PauseNs(++failures, chance));
  }
  cutter_.SetUplinkRuns(false);
}

void Agent::WarnOfFailure(const grpc::Status& failure) const {
  const std::string reason = options_.explain ? options_.explain(failure) : failure.error_message();
  spdlog::warn("{}{}{}",
               IsRefusal(failure) ? "the daemon refuses this agent; retrying until it admits it"
                                  : "cannot reach the daemon; retrying until it answers",
               reason.empty() ? "" : ": ", CleanText(reason));
}

// False if the stream is whole, and its daemon is no longer to be trusted.
bool Agent::TickUntilBroken(DaemonStream* stream) {
  collector_.SetWholeRecords(stream->whole_records());
  is_connected_ = true;
  bool whole = true;
  int64_t trusted_ns = MonotonicNs();
  while (!stream->broken() && !stream->must_connect_anew() && !inbox_.stopping()) {
    if (options_.still_trusts && MonotonicNs() - trusted_ns >= kTrustChecksApart) {
      if (!options_.still_trusts(stream->context())) return false;
      trusted_ns = MonotonicNs();
    }
    const int64_t next_ns = MonotonicNs() + TickNs(*stream);
    const bool is_wanted = options_.watcher != nullptr && options_.watcher->WantsWhole();
    CollectAndSend(stream->TakeWishForWhole() || is_wanted || whole, stream);
    whole = false;
    SendUnrecorded(stream);
    host_hangs_.PassOn();
    SendAnswersUntil(next_ns, stream);
  }
  if (inbox_.stopping()) {
    SendLastTicks(whole, stream);
    stream->Close();
  }
  return true;
}

// Reports how the last processes ended. A stream without a tick so far gets a whole tick. The last
// calls of a short job may be in files that no tick has read so far.
void Agent::SendLastTicks(bool whole, DaemonStream* stream) {
  const int64_t until_ns = MonotonicNs() + kCatchUpWithin;
  CollectAndSend(whole, stream);
  while (collector_.IsBehind() && MonotonicNs() < until_ns) {
    std::this_thread::sleep_for(kCatchUpPause);
    CollectAndSend(false, stream);
  }
}

// As the daemon requests, once it has done so.
int64_t Agent::TickNs(const DaemonStream& stream) const {
  return std::clamp(stream.wanted_tick_ns(), options_.tick_ns,
                    std::max(options_.tick_ns, kLongestTick));
}

// Drops what the broken stream has asked and not been sent. The next stream may lead to another
// daemon, which may ask only for what this agent reports to it.
void Agent::ForgetStream() {
  is_connected_ = false;
  host_hangs_.Drop();
  collector_.served().Clear();
  unrecorded_.Clear();
  stacks_.DropWaiting();
  host_facts_.DropWaiting();
  inbox_.DropAnswer();
}

// Sends answers until the next tick is due or the stream is broken. Sends at least one answer if
// one is ready.
void Agent::SendAnswersUntil(int64_t until_ns, DaemonStream* stream) {
  do {
    const auto deadline =
        std::chrono::steady_clock::now() + std::chrono::nanoseconds(until_ns - MonotonicNs());
    const auto answer = inbox_.Take(deadline, [stream] { return stream->broken(); });
    if (!answer.has_value()) return;
    stream->Send(*answer);
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

void Agent::CollectAndSend(bool whole, DaemonStream* stream) {
  google::protobuf::Arena arena;  // a tick has thousands of small parts
  auto* message = google::protobuf::Arena::CreateMessage<v1::AgentMessage>(&arena);
  v1::Tick* tick = message->mutable_tick();
  collects_since_ns_ = MonotonicNs();
  Collect(whole, tick);
  collects_since_ns_ = 0;
  for (const std::string& warning : collector_.TakeWarnings()) spdlog::warn("{}", warning);
  tick->set_dropped_ticks(dropped_ticks_);
  if (stream->reads_short_columns()) ShortenColumns(tick);
  if (IsOnePiece(*tick, kMessageBytes)) {
    stream->Send(*message);
    return;
  }
  for (v1::Tick& piece : SplitTick(std::move(*tick), kMessageBytes)) {
    v1::AgentMessage part;
    part.mutable_tick()->Swap(&piece);
    if (!stream->Send(part)) return;
  }
}

// When the list has changed. Costs no read: the ticks have found the processes.
void Agent::SendUnrecorded(DaemonStream* stream) {
  const int64_t now_ns = MonotonicNs();
  if (!options_.collector.find_unrecorded || !unrecorded_.IsDue(now_ns)) return;
  const auto message = unrecorded_.Update(now_ns, collector_.ListUnrecorded());
  if (message.has_value()) stream->Send(*message);
}

}  // namespace rollcall
