// SPDX-License-Identifier: Apache-2.0
#include "daemon/fleet/peers.h"

#include <grpcpp/grpcpp.h>
#include <spdlog/spdlog.h>
#include <time.h>

#include <chrono>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/clean_text.h"
#include "base/mutex.h"
#include "base/steady_clock.h"
#include "daemon/access/access.h"
#include "proto/message_limit.h"
#include "rollcall/v1/query.grpc.pb.h"
#include "security/certificates/system_authorities.h"
#include "security/certificates/tls_files.h"
#include "security/grpc/credentials.h"

namespace rollcall {
namespace {

using Stub = v1::Query::Stub;
using StubPtr = std::shared_ptr<Stub>;

constexpr int kFirstBackoffMs = 100;
constexpr int kLongestBackoffMs = 1'000;
constexpr int kConnectTimeoutMs = 2'000;
// A daemon whose error took no longer may be asked again at once.
constexpr int64_t kSoonNs = 300'000'000;
// Whether somebody still waits for a look.
constexpr std::chrono::milliseconds kAskAgain{100};

grpc::ChannelArguments Arguments() {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(kMaxMessageBytes);
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, kFirstBackoffMs);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, kLongestBackoffMs);
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, kConnectTimeoutMs);
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  return arguments;
}

// Whether the daemon itself has answered. Without one, the answer is for a stranger or an older
// release.
bool IsAnswer(const grpc::Status& status) {
  switch (status.error_code()) {
    case grpc::StatusCode::UNAVAILABLE:
    case grpc::StatusCode::DEADLINE_EXCEEDED:
    case grpc::StatusCode::CANCELLED:
    case grpc::StatusCode::UNAUTHENTICATED:
    case grpc::StatusCode::UNIMPLEMENTED:
    case grpc::StatusCode::RESOURCE_EXHAUSTED:
    case grpc::StatusCode::INTERNAL:
    case grpc::StatusCode::UNKNOWN:
      return false;
    default:
      return true;
  }
}

absl::Status FromGrpc(const grpc::Status& status) {
  return {static_cast<absl::StatusCode>(status.error_code()), status.error_message()};
}

absl::Status DoesNotAnswer(const DaemonRow& peer, const std::string& why) {
  return absl::UnavailableError(absl::StrCat("the daemon ", CleanText(peer.name), " (",
                                             CleanText(peer.address), ") does not answer",
                                             why.empty() ? "" : ": ", CleanText(why)));
}

void Prepare(const PeerAsk& ask, grpc::ClientContext* context) {
  context->AddMetadata("authorization", absl::StrCat("Bearer ", ask.peer.secret));
  context->AddMetadata(kPeerCallerKey, ask.caller.SerializeAsString());
  context->set_deadline(std::chrono::system_clock::now() +
                        (ask.until - std::chrono::steady_clock::now()));
}

}  // namespace

class Peers::Impl {
 public:
  Impl(const FleetView* fleet, PeerOptions options)
      : fleet_(fleet), options_(std::move(options)), tls_(Authorities(options_.tls)) {}

  void Close() {
    const MutexLock lock(mutex_);
    is_closed_ = true;
    for (grpc::ClientContext* call : calls_) call->TryCancel();
  }

  const FleetView& fleet() const { return *fleet_; }
  const PeerOptions& options() const { return options_; }

  bool IsSilent(const DaemonRow& peer) const {
    const MutexLock lock(mutex_);
    const auto known = links_.find(peer.name);
    return known != links_.end() && known->second.is_silent;
  }

  bool IsPaused(const DaemonRow& peer) const {
    const MutexLock lock(mutex_);
    const auto known = links_.find(peer.name);
    return known != links_.end() && IsOf(known->second, peer) &&
           SteadyNs() < known->second.paused_until_ns;
  }

  template <typename Response, typename Request>
  absl::StatusOr<Response> Ask(const PeerAsk& ask, const Request& request,
                               grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&,
                                                            Response*)) {
    Response response;
    const absl::Status status = Try(ask, [&](Stub* stub, grpc::ClientContext* context) {
      response.Clear();
      return (stub->*method)(context, request, &response);
    });
    if (!status.ok()) return status;
    return response;
  }

  // A broken connection is made anew once, if the daemon has answered on it before.
  absl::Status Try(const PeerAsk& ask,
                   const std::function<grpc::Status(Stub*, grpc::ClientContext*)>& call) {
    absl::Status status = absl::OkStatus();
    for (bool again = true; again;) {
      bool had_answered = false;
      const int64_t begun_ns = SteadyNs();
      const absl::StatusOr<StubPtr> stub = StubFor(ask.peer, &had_answered);
      if (!stub.ok()) return Judge(ask.peer, nullptr, begun_ns, ToGrpcStatus(stub.status()));
      grpc::ClientContext context;
      Prepare(ask, &context);
      if (!Begin(&context)) return absl::UnavailableError("the daemon stops");
      const grpc::Status result = call(stub->get(), &context);
      End(&context);
      status = Judge(ask.peer, *stub, begun_ns, result);
      again =
          result.error_code() == grpc::StatusCode::UNAVAILABLE && had_answered && !ask.is_action;
    }
    return status;
  }

 private:
  struct Link {
    std::string address, incarnation;
    StubPtr stub;  // nullptr if none works
    bool has_answered = false;
    bool is_silent = false;
    int64_t paused_until_ns = 0;
  };

  bool Begin(grpc::ClientContext* call) {
    const MutexLock lock(mutex_);
    if (!is_closed_) calls_.insert(call);
    return !is_closed_;
  }

  void End(grpc::ClientContext* call) {
    const MutexLock lock(mutex_);
    calls_.erase(call);
  }

  static grpc::Status ToGrpcStatus(const absl::Status& status) {
    return {grpc::StatusCode::UNAVAILABLE, std::string(status.message())};
  }

  static bool IsOf(const Link& link, const DaemonRow& peer) {
    return link.address == peer.address && link.incarnation == peer.incarnation;
  }

  // A daemon without --tls-client-ca believes what the system believes.
  static absl::StatusOr<std::shared_ptr<const TlsFiles>> Authorities(
      const std::shared_ptr<const TlsFiles>& own) {
    if (own == nullptr || !own->paths().authorities.empty()) return own;
    const absl::StatusOr<std::string> file = FindSystemAuthorities();
    if (!file.ok()) return file.status();
    TlsPaths paths;
    paths.authorities = *file;
    const auto system = std::make_shared<TlsFiles>(paths, CertificateUse::kClient);
    const absl::Status status = system->Poll(time(nullptr));
    if (!status.ok()) return status;
    return std::shared_ptr<const TlsFiles>(system);
  }

  absl::StatusOr<StubPtr> StubFor(const DaemonRow& peer, bool* has_answered) {
    {
      const MutexLock lock(mutex_);
      const Link& link = Find(peer);
      *has_answered = link.has_answered;
      if (link.stub != nullptr) return link.stub;
    }
    // May wait for a daemon on this host; others ask meanwhile.
    absl::StatusOr<StubPtr> stub = Connect(peer);
    if (!stub.ok()) return stub;
    const MutexLock lock(mutex_);
    Link& link = Find(peer);
    link.stub = *stub;
    link.has_answered = false;
    return stub;
  }

  absl::StatusOr<StubPtr> Connect(const DaemonRow& peer) const {
    if (!tls_.ok()) return tls_.status();
    ChannelSecurity security;
    security.tls = *tls_;
    security.shows_certificate = false;
    security.sends_secret = true;
    auto channel = MakeChannel(peer.address, Arguments(), security);
    if (!channel.ok()) return channel.status();
    return StubPtr(v1::Query::NewStub(*channel));
  }

  Link& Find(const DaemonRow& peer) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    Link& link = links_[peer.name];
    if (!IsOf(link, peer)) {
      link = Link();
      link.address = peer.address;
      link.incarnation = peer.incarnation;
    }
    return link;
  }

  // Remembers whether the daemon answers. `stub`: by which it was asked.
  absl::Status Judge(const DaemonRow& peer, const StubPtr& stub, int64_t begun_ns,
                     const grpc::Status& result) {
    const bool is_answer = IsAnswer(result);
    const int64_t now_ns = SteadyNs();
    bool is_news = false;
    {
      const MutexLock lock(mutex_);
      Link& link = Find(peer);
      is_news = link.is_silent == is_answer;
      link.is_silent = !is_answer;
      const bool is_slow = !is_answer && now_ns - begun_ns > kSoonNs;
      link.paused_until_ns = is_slow ? now_ns + options_.pause_ns : 0;
      if (link.stub == stub && stub != nullptr) {
        link.has_answered = link.has_answered || is_answer;
        // A channel that broke may never work again, and one to a host that was away for long tries
        // again late.
        if (!is_answer) link.stub = nullptr;
      }
    }
    if (is_answer) {
      if (is_news) spdlog::info("the daemon {} answers again", CleanText(peer.name));
      return FromGrpc(result);
    }
    const std::string why = result.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED
                                ? "not in time"
                                : result.error_message();
    absl::Status silent = DoesNotAnswer(peer, why);
    if (is_news)
      spdlog::warn("{}; its jobs are missing here until it does", std::string(silent.message()));
    return silent;
  }

  const FleetView* const fleet_;
  const PeerOptions options_;
  const absl::StatusOr<std::shared_ptr<const TlsFiles>> tls_;  // holds nullptr without TLS
  mutable Mutex mutex_;
  std::map<std::string, Link> links_ ABSL_GUARDED_BY(mutex_);  // by name
  std::set<grpc::ClientContext*> calls_ ABSL_GUARDED_BY(mutex_);
  bool is_closed_ ABSL_GUARDED_BY(mutex_) = false;
};

Peers::Peers(const FleetView* fleet, PeerOptions options)
    : impl_(std::make_unique<Impl>(fleet, std::move(options))) {}
Peers::~Peers() = default;

void Peers::Close() { impl_->Close(); }
const PeerOptions& Peers::options() const { return impl_->options(); }

std::vector<DaemonRow> Peers::Others() const {
  std::vector<DaemonRow> others;
  const std::string self = impl_->fleet().self();
  for (DaemonRow& daemon : impl_->fleet().Daemons()) {
    if (daemon.name != self) others.push_back(std::move(daemon));
  }
  return others;
}

bool Peers::IsSilent(const DaemonRow& peer) const { return impl_->IsSilent(peer); }
bool Peers::IsPaused(const DaemonRow& peer) const { return impl_->IsPaused(peer); }
absl::Status Peers::Silence(const DaemonRow& peer) const { return DoesNotAnswer(peer, ""); }

#define QUESTION(name, Request, Response, ...)                                              \
  absl::StatusOr<v1::Response> Peers::Ask(const PeerAsk& ask, const v1::Request& request) { \
    return impl_->Ask<v1::Response>(ask, request, &Stub::name);                             \
  }
#define ACT(name, Request, Response, ...) QUESTION(name, Request, Response, )
#include "daemon/access/questions.def"

absl::Status Peers::TakeStacks(const PeerAsk& ask, const v1::TakeStacksRequest& request,
                               const std::function<bool(const v1::ProcessStack&)>& on_stack) {
  bool has_ended_early = false;
  absl::Status status = impl_->Try(ask, [&](Stub* stub, grpc::ClientContext* context) {
    const auto stream = stub->TakeStacks(context, request);
    v1::ProcessStack stack;
    while (!has_ended_early && stream->Read(&stack)) has_ended_early = !on_stack(stack);
    if (has_ended_early) context->TryCancel();
    const grpc::Status result = stream->Finish();
    return has_ended_early ? grpc::Status::OK : result;
  });
  return status;
}

// Waits for what a call does next, and ends the call once no thread waits for it any longer.
class PatientCall {
 public:
  PatientCall(grpc::ClientContext* context, const std::function<bool()>& goes_on)
      : context_(context), goes_on_(goes_on) {}
  ~PatientCall() {
    queue_.Shutdown();
    void* tag = nullptr;
    bool has_succeeded = false;
    while (queue_.Next(&tag, &has_succeeded)) {
    }
  }

  grpc::CompletionQueue* queue() { return &queue_; }
  void* tag() { return this; }
  // Whether the step that was begun with tag() has succeeded.
  bool Await() {
    void* tag = nullptr;
    bool has_succeeded = false;
    while (queue_.AsyncNext(&tag, &has_succeeded, std::chrono::system_clock::now() + kAskAgain) ==
           grpc::CompletionQueue::TIMEOUT) {
      if (is_cancelled_ || goes_on_()) continue;
      is_cancelled_ = true;
      context_->TryCancel();
    }
    return has_succeeded;
  }
  bool is_cancelled() const { return is_cancelled_; }

 private:
  grpc::ClientContext* const context_;
  const std::function<bool()>& goes_on_;
  grpc::CompletionQueue queue_;
  bool is_cancelled_ = false;
};

// Texts of another daemon are clean.
absl::StatusOr<std::vector<v1::HostLook>> Peers::LookAtJob(const PeerAsk& ask,
                                                           const v1::LookRequest& request,
                                                           const std::function<bool()>& goes_on) {
  std::vector<v1::HostLook> looks;
  bool is_cancelled = false;
  const absl::Status status = impl_->Try(ask, [&](Stub* stub, grpc::ClientContext* context) {
    looks.clear();
    PatientCall call(context, goes_on);
    const auto stream = stub->AsyncLookAtJob(context, request, call.queue(), call.tag());
    bool has_more = call.Await();
    while (has_more) {
      v1::HostLook look;
      stream->Read(&look, call.tag());
      has_more = call.Await();
      if (has_more) looks.push_back(std::move(look));
    }
    grpc::Status result;
    stream->Finish(&result, call.tag());
    call.Await();
    is_cancelled = call.is_cancelled();
    return is_cancelled ? grpc::Status::OK : result;  // the other daemon has done nothing wrong
  });
  if (!status.ok()) return status;
  if (is_cancelled) return absl::CancelledError("the caller no longer waits for the look");
  return looks;
}

}  // namespace rollcall
