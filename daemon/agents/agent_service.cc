// SPDX-License-Identifier: Apache-2.0
#include "daemon/agents/agent_service.h"

#include <google/protobuf/arena.h>
#include <grpc/grpc_security_constants.h>
#include <grpcpp/support/proto_buffer_reader.h>
#include <spdlog/spdlog.h>
#include <time.h>

#include <algorithm>
#include <atomic>
#include <deque>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/types/span.h"
#include "base/clean_text.h"
#include "base/cut_text.h"
#include "base/fair_bytes.h"
#include "base/mutex.h"
#include "base/steady_clock.h"
#include "daemon/access/access.h"
#include "daemon/access/clean_message.h"
#include "daemon/agents/parse_budget.h"
#include "daemon/agents/parsed_size.h"
#include "daemon/jobs/tick_facts.h"
#include "daemon/model/client_limits.h"
#include "net/grpc_callback.h"
#include "net/grpc_status.h"
#include "rollcall/v1/agent.grpc.pb.h"

namespace rollcall {
namespace {

constexpr uint32_t kProtocol = 1;
// Messages that wait for an agent that does not read. An agent needs a few: a request for stacks,
// one for facts about its host, and a new pace.
constexpr size_t kMostUnread = 256;
// A hello has a handful of short texts. Nothing else is read before it.
constexpr size_t kMostHelloBytes = 4 << 10;
// The whole state of an agent with eight ranks, each with 1,024 communicators of whole histories,
// takes 430 MiB. What becomes larger is not a message of an agent.
constexpr uint64_t kMostParsedBytes = uint64_t{768} << 20;
// A tick that its jobs have applied within this time: they are not late.
constexpr int64_t kPromptNs = 100'000'000;
// Names in a line of the log. One change of a file may end thousands of streams.
constexpr size_t kMostNames = 3;

// A parsed message. A tick is thousands of small objects that all end at once, so they share blocks
// of memory.
class ParsedMessage {
 public:
  // `bytes`: at least what it takes (parsed_size.h).
  explicit ParsedMessage(size_t bytes)
      : arena_(OptionsFor(bytes)),
        message_(google::protobuf::Arena::CreateMessage<v1::AgentMessage>(&arena_)) {}

  v1::AgentMessage* message() { return message_; }

 private:
  static constexpr size_t kLeastBlock = 1 << 10, kMostBlock = 64 << 10;

  static google::protobuf::ArenaOptions OptionsFor(size_t bytes) {
    google::protobuf::ArenaOptions options;
    options.start_block_size = std::clamp(bytes, kLeastBlock, kMostBlock);
    options.max_block_size = kMostBlock;
    return options;
  }

  google::protobuf::Arena arena_;
  v1::AgentMessage* const message_;  // in the arena
};

// Whether `host` is the other name without its domain.
bool IsShortFor(absl::string_view host, absl::string_view whole) {
  return absl::EqualsIgnoreCase(host, whole.substr(0, whole.find('.')));
}

grpc::Status NoLongerValid() {
  return {
      grpc::StatusCode::UNAUTHENTICATED,
      "the certificate or token of this agent has expired or was revoked, or rollcalld no longer "
      "trusts the authority that signed it (--tls-client-ca): renew it (`rollcall pki renew`), or "
      "ask the operator of rollcalld for a new one (`rollcall pki issue`, `rollcall token new`)"};
}

void LogEnded(const std::vector<std::string>& callers) {
  if (callers.empty()) return;
  const size_t named = std::min(callers.size(), kMostNames);
  const std::string more =
      named < callers.size() ? absl::StrCat(" and ", callers.size() - named, " more") : "";
  const std::string streams =
      callers.size() == 1 ? "a stream" : absl::StrCat(callers.size(), " streams");
  spdlog::warn(
      "ended {} of agents with an expired or revoked certificate or token, or with an authority "
      "that is no longer in --tls-client-ca: {}{}",
      streams, absl::StrJoin(absl::MakeConstSpan(callers).first(named), ", "), more);
}

}  // namespace

// Messages come as bytes: see parse_budget.h.
using Reactor = grpc_callback::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>;

class AgentService::Impl : public grpc_callback::RawConnect<v1::AgentLink> {
 public:
  Impl(AgentSink* sink, DaemonCounters* counters, const Access* access, StreamLimits limits)
      : sink_(sink),
        counters_(counters),
        access_(access),
        limits_(limits),
        unparsed_(limits.unparsed_bytes),
        open_(limits) {}

  Reactor* Connect(grpc_callback::CallbackServerContext* context) override;

  AgentSink* sink() { return sink_; }
  ParseBudget* budget() { return &budget_; }
  FairBytes<std::string>* unparsed() { return &unparsed_; }
  const ParsedSize& parsed_size() const { return parsed_size_; }
  const Access* access() const { return access_; }

  // Counts a stream that begins. An error: it is one too many.
  grpc::Status Open(const std::string& peer_address, Stream* stream);
  void Close(const std::string& peer_address, Stream* stream) {
    const MutexLock lock(mutex_);
    open_.Remove(peer_address);
    all_.erase(stream);
  }

  void Add(const std::string& id, Stream* stream) {
    const MutexLock lock(mutex_);
    streams_[id].push_back(stream);
  }

  void Remove(const std::string& id, Stream* stream) {
    const MutexLock lock(mutex_);
    const auto at = streams_.find(id);
    if (at == streams_.end()) return;
    at->second.erase(std::remove(at->second.begin(), at->second.end(), stream), at->second.end());
    if (at->second.empty()) streams_.erase(at);
  }

  bool Send(const std::string& id, const v1::DaemonMessage& message);
  void Restart(const std::string& id);
  void EndInvalid(int64_t now_s);
  void CloseAll();
  uint64_t NextStream() { return ++last_stream_; }

  // A stream ends because its agent does not read.
  void CountUnread() {
    if (counters_ != nullptr) counters_->CountDropped(Dropped::kStreams, 1);
  }

  // The beginning of a text that is longer than `most` bytes; counts the cut.
  std::string LimitText(const std::string& text, size_t most) {
    if (text.size() > most && counters_ != nullptr) counters_->CountDropped(Dropped::kTexts, 1);
    return CutText(text, most);
  }

  int agents() const {
    const MutexLock lock(mutex_);
    size_t agents = 0;
    for (const auto& [id, streams] : streams_) agents += streams.size();
    return static_cast<int>(agents);
  }

  size_t streams() const {
    const MutexLock lock(mutex_);
    return open_.all();
  }

 private:
  AgentSink* const sink_;
  ParseBudget budget_;
  const ParsedSize parsed_size_{v1::AgentMessage::descriptor()};
  DaemonCounters* const counters_;
  const Access* const access_;
  const StreamLimits limits_;
  FairBytes<std::string> unparsed_;  // that wait for the budget, by peer
  mutable Mutex mutex_;              // taken before a stream's own
  OpenStreams open_ ABSL_GUARDED_BY(mutex_);
  std::set<Stream*> all_ ABSL_GUARDED_BY(mutex_);  // that count as open
  std::atomic<uint64_t> last_stream_{0};
  // Keyed by agent id, with the newest stream last. An agent can reconnect before its old stream
  // has ended.
  std::map<std::string, std::vector<Stream*>> streams_ ABSL_GUARDED_BY(mutex_);
};

// One agent's stream. Lives until gRPC has finished with it and its last tick is applied.
class AgentService::Stream : public Reactor, public std::enable_shared_from_this<Stream> {
 public:
  Stream(Impl* impl, grpc_callback::CallbackServerContext* context, Identity caller)
      : impl_(impl),
        context_(context),
        caller_(std::move(caller)),
        peer_address_(PeerHost(context->peer())) {}

  void Start() {
    self_ = shared_from_this();
    const grpc::Status opened = impl_->Open(peer_address_, this);
    is_counted_ = opened.ok();
    if (!is_counted_) {
      End(opened);
      return;
    }
    const MutexLock lock(mutex_);
    if (!ended_) StartRead(&in_);  // EndInvalid() may have ended it
  }

  // Instead of Start().
  void Refuse(const absl::Status& status) {
    self_ = shared_from_this();
    End(ToGrpc(status));
  }

  void OnReadDone(bool ok) override {
    if (!ok) {
      End(grpc::Status::OK);
      return;
    }
    grpc::ProtoBufferReader input(&in_);
    const std::optional<uint64_t> size = impl_->parsed_size().Of(&input);
    grpc::Status status = Judge(size);
    if (status.ok() && !CountUnparsed()) status = TooMuchWaits();
    if (!status.ok()) {
      in_.Clear();
      End(status);
      return;
    }
    impl_->budget()->Take(*size, is_prompt_,
                          [stream = shared_from_this(), bytes = *size] { stream->Handle(bytes); });
  }

  void OnWriteDone(bool ok) override {
    const MutexLock lock(mutex_);
    out_.pop_front();
    if (ok && !out_.empty() && !ended_) StartWrite(&out_.front());
  }

  void OnCancel() override { End(grpc::Status(grpc::StatusCode::CANCELLED, "cancelled")); }

  void OnDone() override {
    if (has_greeted()) {
      impl_->Remove(name_.id, this);
      impl_->sink()->OnDisconnected(name_);
    }
    if (is_counted_) impl_->Close(peer_address_, this);
    self_.reset();
  }

  // False if the stream has ended, or must end, as its agent does not read. An agent that reads
  // again reconnects and sends its whole state; if the daemon dropped messages, each of them would
  // need a second attempt.
  bool Queue(const v1::DaemonMessage& message) {
    if (AddToOut(message)) return true;
    if (EndsUnread()) {
      impl_->CountUnread();
      Cancel();
    }
    return false;
  }

  bool AddToOut(const v1::DaemonMessage& message) {
    const MutexLock lock(mutex_);
    if (ended_ || out_.size() >= kMostUnread) return false;
    bool owns_buffer = false;
    grpc::SerializationTraits<v1::DaemonMessage>::Serialize(message, &out_.emplace_back(),
                                                            &owns_buffer);
    if (out_.size() == 1) StartWrite(&out_.front());
    return true;
  }

  // True once: too many messages wait.
  bool EndsUnread() {
    const MutexLock lock(mutex_);
    if (ended_ || is_unread_ || out_.size() < kMostUnread) return false;
    is_unread_ = true;
    return true;
  }

  void Cancel() { context_->TryCancel(); }

  // True if this call has ended the stream.
  bool EndIfInvalid(int64_t now_s) {
    return !impl_->access()->IsStillValid(caller_, now_s) && End(NoLongerValid());
  }

  const std::string& caller() const { return caller_.name; }

 private:
  // Whether a message that becomes so large may be parsed. A hello that waited for room would come
  // on another thread than the end of the stream, so it must be small.
  grpc::Status Judge(std::optional<uint64_t> size) const {
    if (!size.has_value()) return NoMessage();
    if (!has_greeted() && (in_.Length() > kMostHelloBytes || *size > ParseBudget::kSmallBytes)) {
      return {grpc::StatusCode::INVALID_ARGUMENT,
              "the hello of this agent is longer than 4 KiB: give it a shorter --host"};
    }
    if (*size <= kMostParsedBytes) return grpc::Status::OK;
    spdlog::warn(
        "{}: ended the stream of an agent: its message of {} MiB would take {} MiB of memory",
        CleanText(name_.host), in_.Length() >> 20, *size >> 20);
    return {grpc::StatusCode::RESOURCE_EXHAUSTED,
            absl::StrCat("this message would take ", *size >> 20,
                         " MiB of the daemon's memory, at most ", kMostParsedBytes >> 20,
                         " are allowed: run fewer ranks on this host")};
  }

  // False if the messages of this peer that wait take too much.
  bool CountUnparsed() {
    const size_t bytes = in_.Length() > limits::kManyUnparsedBytes ? in_.Length() : 0;
    if (bytes > 0 && !impl_->unparsed()->Add(Peer(), bytes)) return false;
    unparsed_ = bytes;
    return true;
  }
  std::string Peer() const { return absl::StrCat(caller_.name, " ", peer_address_); }

  grpc::Status TooMuchWaits() const {
    spdlog::warn("{}: ended the stream of an agent: its messages that wait take too much memory",
                 CleanText(name_.host));
    return {grpc::StatusCode::RESOURCE_EXHAUSTED,
            "the messages of this agent that wait take too much of the daemon's memory"};
  }

  static grpc::Status NoMessage() {
    return {grpc::StatusCode::INVALID_ARGUMENT, "this is not a message of an agent"};
  }

  // Handles the message that was read, and reads the next one when it is applied. The stream may
  // have ended while the message waited.
  void Handle(size_t bytes) {
    if (unparsed_ > 0) impl_->unparsed()->Remove(Peer(), std::exchange(unparsed_, 0));
    if (HasEnded()) return impl_->budget()->GiveBack(bytes);
    const auto parsed = std::make_shared<ParsedMessage>(bytes);
    v1::AgentMessage& message = *parsed->message();
    const grpc::Status status =
        grpc::SerializationTraits<v1::AgentMessage>::Deserialize(&in_, &message);
    in_.Clear();
    if (!status.ok()) {
      End(NoMessage());
      return impl_->budget()->GiveBack(bytes);
    }
    CleanStrings(&message);
    if (message.has_tick() && has_greeted()) {
      const std::shared_ptr<v1::Tick> tick(parsed, message.mutable_tick());
      ClampTimes(tick.get());
      KeepOwnHosts(tick.get());
      return impl_->sink()->OnTick(name_, tick,
                                   [stream = shared_from_this(), bytes, posted_ns = SteadyNs()] {
                                     stream->is_prompt_ = SteadyNs() - posted_ns < kPromptNs;
                                     stream->Next(bytes);
                                   });
    }
    if (message.has_hello()) Greet(message.hello());
    if (message.has_stacks() && has_greeted()) {
      impl_->sink()->OnStackReply(name_, message.stacks());
    }
    if (message.has_host_facts() && has_greeted()) {
      impl_->sink()->OnHostFacts(name_, message.host_facts());
    }
    if (message.has_ranks() && has_greeted()) impl_->sink()->OnRanks(name_, message.ranks());
    if (message.has_unrecorded() && has_greeted()) {
      impl_->sink()->OnUnrecorded(name_, message.unrecorded());
    }
    Next(bytes);
  }

  // A process of a host for which the agent may not speak counts as one of the agent's own: else an
  // agent could have another host blamed. A caller that names the agent's own host with or without
  // its domain does not try to.
  void KeepOwnHosts(v1::Tick* tick) const {
    if (impl_->access() == nullptr) return;
    for (v1::ProcessUpdate& process : *tick->mutable_processes()) {
      const std::string& host = process.identity().host();
      if (host.empty() || host == name_.host) continue;
      if (IsShortFor(host, name_.host) || IsShortFor(name_.host, host)) {
        process.mutable_identity()->clear_host();
        continue;
      }
      if (!impl_->access()->CheckHost(caller_, host).ok()) process.mutable_identity()->clear_host();
    }
  }

  // The message of this size is applied.
  void Next(size_t bytes) {
    {
      const MutexLock lock(mutex_);
      if (!ended_) StartRead(&in_);
    }
    impl_->budget()->GiveBack(bytes);
  }

  bool has_greeted() const { return !name_.host.empty(); }

  // The id has a prefix, so that another process cannot use the id of an agent inside this one.
  AgentName NameIn(const v1::Hello& hello) const {
    AgentName name;
    name.host = impl_->LimitText(hello.host(), limits::kName);
    name.release = impl_->LimitText(hello.rollcall_version(), limits::kName);
    name.tick_ns = hello.tick_ns();
    name.follows_owners = hello.follows_owners();
    name.wants_host_hangs = hello.wants_host_hangs();
    name.tenants = caller_.tenants;
    // Every connection over a socket has a transport type, even an insecure one.
    name.is_trusted = context_->auth_context()
                          ->FindPropertyValues(GRPC_TRANSPORT_SECURITY_TYPE_PROPERTY_NAME)
                          .empty();
    // With the host, so that no agent can use the id of an agent of another host.
    name.id = absl::StrCat(name.is_trusted ? "here " : "from ", name.host, " ",
                           hello.agent_id().empty()
                               ? absl::StrCat("stream ", impl_->NextStream())
                               : impl_->LimitText(hello.agent_id(), limits::kAgentId));
    return name;
  }

  void Greet(const v1::Hello& hello) {
    if (hello.protocol() != kProtocol || hello.host().empty()) {
      spdlog::warn(
          "refused the agent of {}: it uses protocol {}, this daemon {}; run the same "
          "release everywhere",
          CutText(hello.host(), limits::kName), hello.protocol(), kProtocol);
      End(grpc::Status(grpc::StatusCode::FAILED_PRECONDITION,
                       "this daemon uses another protocol: run the same release everywhere"));
      return;
    }
    if (has_greeted()) {
      End(grpc::Status(grpc::StatusCode::FAILED_PRECONDITION,
                       "this agent has already sent its hello"));
      return;
    }
    if (impl_->access() != nullptr) {
      if (EndIfInvalid(time(nullptr))) return;
      const absl::Status own = impl_->access()->CheckHost(caller_, hello.host());
      if (!own.ok()) {
        End(ToGrpc(own));
        return;
      }
    }
    name_ = NameIn(hello);
    impl_->Add(name_.id, this);
    impl_->sink()->OnConnected(name_);
  }

  bool HasEnded() {
    const MutexLock lock(mutex_);
    return ended_;
  }

  // False if it has ended before.
  bool End(const grpc::Status& status) {
    {
      const MutexLock lock(mutex_);
      if (ended_) return false;
      ended_ = true;
    }
    Finish(status);
    return true;
  }

  Impl* const impl_;
  grpc_callback::CallbackServerContext* const context_;
  const Identity caller_;
  const std::string peer_address_;
  bool is_counted_ = false;
  std::shared_ptr<Stream> self_;  // until gRPC has finished with it
  grpc::ByteBuffer in_;
  size_t unparsed_ = 0;                 // of in_, that count
  std::atomic<bool> is_prompt_{false};  // its last tick was applied at once
  AgentName name_;                      // no host: the agent has not sent its hello
  Mutex mutex_;
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
  bool is_unread_ ABSL_GUARDED_BY(mutex_) = false;            // its end has begun
  std::deque<grpc::ByteBuffer> out_ ABSL_GUARDED_BY(mutex_);  // the first one is being written
};

Reactor* AgentService::Impl::Connect(grpc_callback::CallbackServerContext* context) {
  absl::StatusOr<Identity> caller =
      access_ == nullptr ? OwnerIdentity("this process") : access_->Admit(kConnect, *context);
  const auto stream = std::make_shared<Stream>(this, context, caller.ok() ? *caller : Identity());
  if (caller.ok()) {
    stream->Start();
  } else {
    stream->Refuse(caller.status());
  }
  return stream.get();
}

grpc::Status AgentService::Impl::Open(const std::string& peer_address, Stream* stream) {
  StreamRefusal refusal = StreamRefusal::kNone;
  {
    const MutexLock lock(mutex_);
    refusal = open_.Add(peer_address);
    if (refusal == StreamRefusal::kNone) all_.insert(stream);
  }
  if (refusal == StreamRefusal::kNone) return grpc::Status::OK;
  if (counters_ != nullptr) counters_->CountDropped(Dropped::kStreams, 1);
  if (refusal == StreamRefusal::kTooMany) {
    return {grpc::StatusCode::RESOURCE_EXHAUSTED,
            absl::StrCat("this daemon serves ", limits_.streams,
                         " agents already: raise rollcalld --max-streams")};
  }
  return {grpc::StatusCode::RESOURCE_EXHAUSTED,
          absl::StrCat("this daemon serves ", limits_.per_peer,
                       " agents of this address already: raise rollcalld --max-streams-per-peer")};
}

bool AgentService::Impl::Send(const std::string& id, const v1::DaemonMessage& message) {
  const MutexLock lock(mutex_);
  const auto at = streams_.find(id);
  if (at == streams_.end()) return false;
  return std::any_of(at->second.rbegin(), at->second.rend(),
                     [&message](Stream* stream) { return stream->Queue(message); });
}

void AgentService::Impl::Restart(const std::string& id) {
  const MutexLock lock(mutex_);
  const auto at = streams_.find(id);
  if (at == streams_.end()) return;
  for (Stream* stream : at->second) stream->Cancel();
}

void AgentService::Impl::EndInvalid(int64_t now_s) {
  if (access_ == nullptr) return;
  std::vector<std::shared_ptr<Stream>> all;
  {
    const MutexLock lock(mutex_);
    for (Stream* stream : all_) all.push_back(stream->shared_from_this());
  }
  std::vector<std::string> ended;
  for (const std::shared_ptr<Stream>& stream : all) {
    if (stream->EndIfInvalid(now_s)) ended.push_back(CleanText(stream->caller()));
  }
  LogEnded(ended);
}

void AgentService::Impl::CloseAll() {
  const MutexLock lock(mutex_);
  for (const auto& [id, streams] : streams_) {
    for (Stream* stream : streams) stream->Cancel();
  }
}

AgentService::AgentService(AgentSink* sink, DaemonCounters* counters, const Access* access,
                           StreamLimits limits)
    : impl_(std::make_unique<Impl>(sink, counters, access, limits)) {}
AgentService::~AgentService() = default;
grpc::Service* AgentService::service() { return impl_.get(); }
bool AgentService::Send(const std::string& id, const v1::DaemonMessage& message) {
  return impl_->Send(id, message);
}
void AgentService::Restart(const std::string& id) { impl_->Restart(id); }
int AgentService::agents() const { return impl_->agents(); }
size_t AgentService::streams() const { return impl_->streams(); }
void AgentService::EndInvalid(int64_t now_s) { impl_->EndInvalid(now_s); }
void AgentService::CloseAll() { impl_->CloseAll(); }

}  // namespace rollcall
