// SPDX-License-Identifier: Apache-2.0
#include "daemon/queries/query_service.h"

#include <grpcpp/grpcpp.h>

#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "daemon/access/access.h"
#include "daemon/access/clean_message.h"
#include "daemon/queries/audit_words.h"
#include "daemon/queries/query_source.h"
#include "daemon/queries/question_threads.h"
#include "daemon/queries/waiting_call.h"
#include "net/grpc_status.h"
#include "rollcall/v1/query.grpc.pb.h"  // and how gRPC reads and writes its messages

namespace rollcall {
namespace {

// Calls that are answered at a time. Most take milliseconds; those that take stacks or look at a
// job take seconds.
constexpr size_t kMostAtOnce = 64;

const std::set<std::string> kIncidentActions = {"note", "acknowledge", "take back"};

grpc::Status NoRequest() {
  return {grpc::StatusCode::INVALID_ARGUMENT, "this call has no request that the daemon can read"};
}

template <typename Request>
auto NamesJob(const Request& request, int /*preferred*/) -> decltype(request.job().empty()) {
  return !request.job().empty();
}
template <typename Request>
bool NamesJob(const Request& /*request*/, int64_t /*without a job*/) {
  return false;
}

template <typename Request>
absl::Status Check(const Request& /*request*/) {
  return absl::OkStatus();
}
absl::Status Check(const v1::IncidentActionRequest& request) {
  if (kIncidentActions.count(request.action()) > 0) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("an action is note, acknowledge or take back; not \"", request.action(), "\""));
}

// Names the caller for the audit.
std::string WhoAsks(const Identity& caller) {
  const std::string peer = PeerOf(caller);
  return peer.empty() ? caller.name : absl::StrCat(caller.name, ", through the daemon ", peer);
}

// Ends the call at once.
class EndingCall : public grpc::ServerGenericBidiReactor {
 public:
  explicit EndingCall(const grpc::Status& status) { Finish(status); }
  void OnDone() override { delete this; }
};

}  // namespace

// Its calls are what gRPC calls generic, although each has one request: otherwise gRPC reads the
// request, of up to kMaxMessageBytes, before anybody can refuse the caller. And gRPC makes a thread
// for each call of other services, also of a stranger.
class QueryService::Impl : public grpc::CallbackGenericService {
 public:
  Impl(QuerySource* queries, const Access* access, AuditSink audit, AuditSink refused)
      : queries_(queries), access_(access), audit_(std::move(audit)), refused_(std::move(refused)) {
#define QUESTION(name, Request, Response, ...)                            \
  answers_[k##name] = [this](const Identity& caller, WaitingCall* call) { \
    return Answer<v1::Request>(caller, call, &QuerySource::name);         \
  };
#define ACT(name, Request, Response, ...)                                 \
  answers_[k##name] = [this](const Identity& caller, WaitingCall* call) { \
    return Act<v1::Request>(caller, call, &QuerySource::name);            \
  };
#define ACT_IN_PARTS(name, ...)                                           \
  answers_[k##name] = [this](const Identity& caller, WaitingCall* call) { \
    return name(caller, call);                                            \
  };
#include "daemon/access/questions.def"
  }

  grpc::ServerGenericBidiReactor* CreateReactor(
      grpc::GenericCallbackServerContext* context) override {
    absl::StatusOr<Identity> caller = access_->Admit(context->method(), *context);
    if (!caller.ok()) return new EndingCall(ToGrpc(caller.status()));
    const auto answer = answers_.find(context->method());
    if (answer == answers_.end()) return new EndingCall({grpc::StatusCode::UNIMPLEMENTED, ""});
    auto* const call = new WaitingCall(context);
    // Another daemon's question waits for none of this one: each would wait for the other.
    const std::string owner = WhoAsks(*caller);
    QuestionThreads& threads = PeerOf(*caller).empty() ? threads_ : threads_of_daemons_;
    const bool is_posted =
        threads.Post(owner, [call, answer = &answer->second, caller = *std::move(caller)] {
          call->Finish((*answer)(caller, call));
        });
    if (!is_posted) call->Finish({grpc::StatusCode::RESOURCE_EXHAUSTED, "no thread is free"});
    return call;
  }

 private:
  using AnswerTo = std::function<grpc::Status(const Identity& caller, WaitingCall* call)>;

  grpc::Status TakeStacks(const Identity& caller, WaitingCall* call) const {
    v1::TakeStacksRequest request;
    if (!ReadRequest(call, &request)) return NoRequest();
    const std::unique_ptr<QuerySource> queries = SeenBy(caller);
    const std::string who = WhoAsks(caller);
    const auto [action, object] = InWords(*queries, request);
    audit_({who, action, object, call->peer()});
    const absl::Status status = queries->StreamStacks(request, [&](const v1::ProcessStack& stack) {
      return !call->IsCancelled() && call->Write(stack);
    });
    if (!status.ok()) refused_({who, action, std::string(status.message()), call->peer()});
    return ToGrpc(status);
  }

  grpc::Status LookAtJob(const Identity& caller, WaitingCall* call) const {
    v1::LookRequest request;
    if (!ReadRequest(call, &request)) return NoRequest();
    const std::unique_ptr<QuerySource> queries = SeenBy(caller);
    const std::string who = WhoAsks(caller);
    const auto [action, object] = InWords(*queries, request);
    audit_({who, action, object, call->peer()});
    const auto looks = queries->LookAtJob(request, [call] { return !call->IsCancelled(); });
    if (!looks.ok()) {
      refused_({who, action, std::string(looks.status().message()), call->peer()});
      return ToGrpc(looks.status());
    }
    for (const v1::HostLook& look : *looks) {
      if (!call->Write(look)) break;
    }
    return grpc::Status::OK;
  }

  // Another daemon asks the rest of them itself: otherwise two daemons would ask each other
  // forever.
  std::unique_ptr<QuerySource> SeenBy(const Identity& caller) const {
    const QuerySource* queries = PeerOf(caller).empty() ? queries_ : queries_->own();
    return queries->SeenByCaller(caller);
  }

  // The daemon stores cleaned names, so it must clean the name in a request to find them.
  template <typename Request>
  static bool ReadRequest(WaitingCall* call, Request* request) {
    if (!call->Read(request)) return false;
    CleanStrings(request);
    return true;
  }

  template <typename Response>
  static grpc::Status Reply(const absl::StatusOr<Response>& response, WaitingCall* call) {
    if (!response.ok()) return ToGrpc(response.status());
    call->Write(*response);
    return grpc::Status::OK;
  }

  template <typename Request, typename Response>
  grpc::Status Answer(const Identity& caller, WaitingCall* call,
                      absl::StatusOr<Response> (QuerySource::*question)(const Request&)
                          const) const {
    Request request;
    if (!ReadRequest(call, &request)) return NoRequest();
    if (!caller.Has(Role::kViewer) && !NamesJob(request, 0)) {
      return ToGrpc(access_->RefuseRole(caller, "a list of all jobs", Role::kViewer, call->peer()));
    }
    return Reply<Response>((SeenBy(caller).get()->*question)(request), call);
  }

  // Handles a call that changes something. The audit records it, also if it fails.
  template <typename Request, typename Response>
  grpc::Status Act(const Identity& caller, WaitingCall* call,
                   absl::StatusOr<Response> (QuerySource::*act)(const Request&,
                                                                const std::string&)) const {
    Request request;
    if (!ReadRequest(call, &request)) return NoRequest();
    const std::unique_ptr<QuerySource> queries = SeenBy(caller);
    const auto [action, object] = InWords(*queries, request);
    const std::string who = WhoAsks(caller);
    audit_({who, action, object, call->peer()});
    const absl::Status valid = Check(request);
    const absl::StatusOr<Response> response =
        valid.ok() ? (queries.get()->*act)(request, caller.name) : absl::StatusOr<Response>(valid);
    if (!response.ok()) {
      refused_({who, action, std::string(response.status().message()), call->peer()});
    }
    return Reply<Response>(response, call);
  }

  QuerySource* const queries_;
  const Access* const access_;
  const AuditSink audit_;
  const AuditSink refused_;
  std::map<std::string_view, AnswerTo> answers_;  // by method
  QuestionThreads threads_{kMostAtOnce};
  QuestionThreads threads_of_daemons_{kMostAtOnce};
};

QueryService::QueryService(QuerySource* queries, const Access* access, AuditSink audit,
                           AuditSink refused)
    : impl_(std::make_unique<Impl>(queries, access, std::move(audit), std::move(refused))) {}
QueryService::~QueryService() = default;
grpc::CallbackGenericService* QueryService::service() { return impl_.get(); }

}  // namespace rollcall
