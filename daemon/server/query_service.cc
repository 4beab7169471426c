// SPDX-License-Identifier: Apache-2.0
#include "daemon/server/query_service.h"

#include <grpcpp/grpcpp.h>

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "daemon/server/access.h"
#include "daemon/server/clean_message.h"
#include "daemon/server/grpc_status.h"
#include "daemon/server/query_source.h"
#include "daemon/words/rank_ranges.h"
#include "proto/steady_clock.h"
#include "rollcall/v1/query.grpc.pb.h"

namespace rollcall {
namespace {

template <typename Message>
grpc::Status Answer(absl::StatusOr<Message> answer, Message* response) {
  if (!answer.ok()) return ToGrpc(answer.status());
  response->Swap(&*answer);
  return grpc::Status::OK;
}

std::string ObjectInWords(const v1::TakeStacksRequest& request) {
  const std::vector<int32_t> ranks(request.ranks().begin(), request.ranks().end());
  const std::string of_ranks =
      ranks.empty() ? ", all ranks" : absl::StrCat(", ranks ", RankRanges(ranks).List());
  const std::string on_hosts =
      request.hosts().empty() ? "" : absl::StrCat(" on ", absl::StrJoin(request.hosts(), ", "));
  return absl::StrCat("job ", request.job(), of_ranks, on_hosts);
}

// The daemon stores cleaned names, so it must clean the name in a request to find them.
template <typename Request>
Request Cleaned(Request request) {
  CleanStrings(&request);
  return request;
}

}  // namespace

class QueryService::Impl : public v1::Query::Service {
 public:
  Impl(QuerySource* queries, const Access* access, AuditSink audit)
      : queries_(queries), access_(access), audit_(std::move(audit)) {}

  grpc::Status GetStatus(grpc::ServerContext* context, const v1::StatusRequest* request,
                         v1::StatusResponse* response) override {
    const absl::StatusOr<Call> call = Begin(kGetStatus, *context);
    if (!call.ok()) return ToGrpc(call.status());
    JobSelector selector = SelectorIn(Cleaned(*request));
    if (request->offset() > 0) selector.offset = static_cast<size_t>(request->offset());
    if (request->limit() > 0) selector.most = static_cast<size_t>(request->limit());
    *response = call->queries->GetStatus(selector, !request->without_communicators());
    return grpc::Status::OK;
  }

  grpc::Status ListIncidents(grpc::ServerContext* context, const v1::ListIncidentsRequest* request,
                             v1::ListIncidentsResponse* response) override {
    const absl::StatusOr<Call> call = Begin(kListIncidents, *context);
    if (!call.ok()) return ToGrpc(call.status());
    return Answer(call->queries->ListIncidents(Cleaned(*request)), response);
  }

  grpc::Status GetIncident(grpc::ServerContext* context, const v1::IncidentRequest* request,
                           v1::Incident* response) override {
    const absl::StatusOr<Call> call = Begin(kGetIncident, *context);
    if (!call.ok()) return ToGrpc(call.status());
    return Answer(call->queries->GetIncident(Cleaned(*request).id()), response);
  }

  grpc::Status GetJob(grpc::ServerContext* context, const v1::JobRequest* request,
                      v1::JobView* response) override {
    const absl::StatusOr<Call> call = Begin(kGetJob, *context);
    if (!call.ok()) return ToGrpc(call.status());
    return Answer(call->queries->GetJob(SelectorIn(Cleaned(*request))), response);
  }

  grpc::Status GetCalls(grpc::ServerContext* context, const v1::CallsRequest* request,
                        v1::CallsResponse* response) override {
    const absl::StatusOr<Call> call = Begin(kGetCalls, *context);
    if (!call.ok()) return ToGrpc(call.status());
    return Answer(call->queries->GetCalls(Cleaned(*request)), response);
  }

  grpc::Status ListProcesses(grpc::ServerContext* context, const v1::ProcessesRequest* request,
                             v1::ProcessesResponse* response) override {
    const absl::StatusOr<Call> call = Begin(kListProcesses, *context);
    if (!call.ok()) return ToGrpc(call.status());
    return Answer(call->queries->ListProcesses(Cleaned(*request)), response);
  }

  grpc::Status TakeStacks(grpc::ServerContext* context, const v1::TakeStacksRequest* request,
                          grpc::ServerWriter<v1::ProcessStack>* writer) override {
    const absl::StatusOr<Call> call = Begin(kTakeStacks, *context);
    if (!call.ok()) return ToGrpc(call.status());
    const v1::TakeStacksRequest cleaned = Cleaned(*request);
    audit_({call->caller.name, "take stacks", ObjectInWords(cleaned), context->peer(), SteadyNs()});
    return ToGrpc(call->queries->StreamStacks(cleaned, [&](const v1::ProcessStack& stack) {
      return !context->IsCancelled() && writer->Write(stack);
    }));
  }

 private:
  struct Call {
    Identity caller;
    std::unique_ptr<QuerySource> queries;  // as the caller may see them
  };

  absl::StatusOr<Call> Begin(std::string_view method, const grpc::ServerContext& context) const {
    absl::StatusOr<Identity> caller = access_->Admit(method, context);
    if (!caller.ok()) return caller.status();
    std::unique_ptr<QuerySource> queries = queries_->SeenBy(TenantsFor(*caller));
    return Call{*std::move(caller), std::move(queries)};
  }

  QuerySource* const queries_;
  const Access* const access_;
  const AuditSink audit_;
};

QueryService::QueryService(QuerySource* queries, const Access* access, AuditSink audit)
    : impl_(std::make_unique<Impl>(queries, access, std::move(audit))) {}
QueryService::~QueryService() = default;
grpc::Service* QueryService::service() { return impl_.get(); }

}  // namespace rollcall
