// SPDX-License-Identifier: Apache-2.0
#include "daemon/queries/query_service.h"

#include <grpcpp/grpcpp.h>

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "daemon/access/access.h"
#include "daemon/access/clean_message.h"
#include "daemon/queries/audit_words.h"
#include "daemon/queries/query_source.h"
#include "net/grpc_status.h"
#include "rollcall/v1/query.grpc.pb.h"

namespace rollcall {
namespace {

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

template <typename Request, typename Response>
using UnaryStream = grpc::ServerUnaryStreamer<Request, Response>;

}  // namespace

// Its calls are what gRPC calls streamed, although each has one request: otherwise gRPC reads the
// request, of up to kMaxMessageBytes, before anybody can refuse the caller.
class QueryService::Impl : public v1::Query::StreamedService {
 public:
  Impl(QuerySource* queries, const Access* access, AuditSink audit, AuditSink refused)
      : queries_(queries),
        access_(access),
        audit_(std::move(audit)),
        refused_(std::move(refused)) {}

#define QUESTION(name, Request, Response, ...)                                           \
  grpc::Status Streamed##name(grpc::ServerContext* context,                              \
                              UnaryStream<v1::Request, v1::Response>* stream) override { \
    return Answer(k##name, *context, stream, &QuerySource::name);                        \
  }
#define ACT(name, Request, Response, ...)                                                \
  grpc::Status Streamed##name(grpc::ServerContext* context,                              \
                              UnaryStream<v1::Request, v1::Response>* stream) override { \
    return Act(k##name, *context, stream, &QuerySource::name);                           \
  }
#include "daemon/access/questions.def"

  grpc::Status StreamedTakeStacks(
      grpc::ServerContext* context,
      grpc::ServerSplitStreamer<v1::TakeStacksRequest, v1::ProcessStack>* stream) override {
    const absl::StatusOr<Call> call = Begin(kTakeStacks, *context);
    if (!call.ok()) return ToGrpc(call.status());
    v1::TakeStacksRequest request;
    if (!ReadRequest(stream, &request)) return NoRequest();
    const std::string who = WhoAsks(call->caller);
    const auto [action, object] = InWords(*call->queries, request);
    audit_({who, action, object, context->peer()});
    const absl::Status status =
        call->queries->StreamStacks(request, [&](const v1::ProcessStack& stack) {
          return !context->IsCancelled() && stream->Write(stack);
        });
    if (!status.ok()) {
      refused_({who, action, std::string(status.message()), context->peer()});
    }
    return ToGrpc(status);
  }

  grpc::Status StreamedLookAtJob(
      grpc::ServerContext* context,
      grpc::ServerSplitStreamer<v1::LookRequest, v1::HostLook>* stream) override {
    const absl::StatusOr<Call> call = Begin(kLookAtJob, *context);
    if (!call.ok()) return ToGrpc(call.status());
    v1::LookRequest request;
    if (!ReadRequest(stream, &request)) return NoRequest();
    const std::string who = WhoAsks(call->caller);
    const auto [action, object] = InWords(*call->queries, request);
    audit_({who, action, object, context->peer()});
    const auto looks =
        call->queries->LookAtJob(request, [context] { return !context->IsCancelled(); });
    if (!looks.ok()) {
      refused_({who, action, std::string(looks.status().message()), context->peer()});
      return ToGrpc(looks.status());
    }
    for (const v1::HostLook& look : *looks) {
      if (!stream->Write(look)) break;
    }
    return grpc::Status::OK;
  }

 private:
  struct Call {
    Identity caller;
    std::unique_ptr<QuerySource> queries;  // as the caller may see them
  };

  absl::StatusOr<Call> Begin(std::string_view method, const grpc::ServerContext& context) const {
    absl::StatusOr<Identity> caller = access_->Admit(method, context);
    if (!caller.ok()) return caller.status();
    // Another daemon asks the rest of them itself: otherwise two daemons would ask each other
    // forever.
    const QuerySource* queries = PeerOf(*caller).empty() ? queries_ : queries_->own();
    std::unique_ptr<QuerySource> seen = queries->SeenByCaller(*caller);
    return Call{*std::move(caller), std::move(seen)};
  }

  // The daemon stores cleaned names, so it must clean the name in a request to find them.
  template <typename Stream, typename Request>
  static bool ReadRequest(Stream* stream, Request* request) {
    if (!stream->Read(request)) return false;
    CleanStrings(request);
    return true;
  }

  template <typename Response, typename Stream>
  static grpc::Status Reply(const absl::StatusOr<Response>& response, Stream* stream) {
    if (!response.ok()) return ToGrpc(response.status());
    stream->Write(*response);
    return grpc::Status::OK;
  }

  template <typename Request, typename Response>
  grpc::Status Answer(std::string_view method, const grpc::ServerContext& context,
                      UnaryStream<Request, Response>* stream,
                      absl::StatusOr<Response> (QuerySource::*question)(const Request&)
                          const) const {
    const absl::StatusOr<Call> call = Begin(method, context);
    if (!call.ok()) return ToGrpc(call.status());
    Request request;
    if (!ReadRequest(stream, &request)) return NoRequest();
    if (!call->caller.Has(Role::kViewer) && !NamesJob(request, 0)) {
      return ToGrpc(
          access_->RefuseRole(call->caller, "a list of all jobs", Role::kViewer, context.peer()));
    }
    return Reply<Response>((call->queries.get()->*question)(request), stream);
  }

  // Handles a call that changes something. The audit records it, also if it fails.
  template <typename Request, typename Response>
  grpc::Status Act(std::string_view method, const grpc::ServerContext& context,
                   UnaryStream<Request, Response>* stream,
                   absl::StatusOr<Response> (QuerySource::*act)(const Request&,
                                                                const std::string&)) const {
    const absl::StatusOr<Call> call = Begin(method, context);
    if (!call.ok()) return ToGrpc(call.status());
    Request request;
    if (!ReadRequest(stream, &request)) return NoRequest();
    const auto [action, object] = InWords(*call->queries, request);
    const std::string who = WhoAsks(call->caller);
    audit_({who, action, object, context.peer()});
    const absl::Status valid = Check(request);
    const absl::StatusOr<Response> response =
        valid.ok() ? (call->queries.get()->*act)(request, call->caller.name)
                   : absl::StatusOr<Response>(valid);
    if (!response.ok()) {
      refused_({who, action, std::string(response.status().message()), context.peer()});
    }
    return Reply<Response>(response, stream);
  }

  QuerySource* const queries_;
  const Access* const access_;
  const AuditSink audit_;
  const AuditSink refused_;
};

QueryService::QueryService(QuerySource* queries, const Access* access, AuditSink audit,
                           AuditSink refused)
    : impl_(std::make_unique<Impl>(queries, access, std::move(audit), std::move(refused))) {}
QueryService::~QueryService() = default;
grpc::Service* QueryService::service() { return impl_.get(); }

}  // namespace rollcall
