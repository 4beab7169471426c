// SPDX-License-Identifier: Apache-2.0
#include "daemon/server/query_service.h"

#include <grpcpp/grpcpp.h>

#include <string>

#include "daemon/server/clean_message.h"
#include "daemon/server/query_source.h"
#include "rollcall/v1/query.grpc.pb.h"

namespace rollcall {

class QueryService::Impl : public v1::Query::Service {
 public:
  explicit Impl(QuerySource* queries) : queries_(queries) {}

  grpc::Status GetStatus(grpc::ServerContext*, const v1::StatusRequest* request,
                         v1::StatusResponse* response) override {
    *response = queries_->GetStatus(Cleaned(*request).job(), !request->without_communicators());
    return grpc::Status::OK;
  }

  grpc::Status ListIncidents(grpc::ServerContext*, const v1::ListIncidentsRequest* request,
                             v1::ListIncidentsResponse* response) override {
    return Answer(queries_->ListIncidents(Cleaned(*request)), response);
  }

  grpc::Status GetIncident(grpc::ServerContext*, const v1::IncidentRequest* request,
                           v1::Incident* response) override {
    return Answer(queries_->GetIncident(Cleaned(*request).id()), response);
  }

  grpc::Status GetJob(grpc::ServerContext*, const v1::JobRequest* request,
                      v1::JobView* response) override {
    return Answer(queries_->GetJob(Cleaned(*request).job()), response);
  }

  grpc::Status GetCalls(grpc::ServerContext*, const v1::CallsRequest* request,
                        v1::CallsResponse* response) override {
    return Answer(queries_->GetCalls(Cleaned(*request)), response);
  }

  grpc::Status ListProcesses(grpc::ServerContext*, const v1::ProcessesRequest* request,
                             v1::ProcessesResponse* response) override {
    return Answer(queries_->ListProcesses(Cleaned(*request)), response);
  }

  grpc::Status TakeStacks(grpc::ServerContext* context, const v1::TakeStacksRequest* request,
                          grpc::ServerWriter<v1::ProcessStack>* writer) override {
    const absl::Status status =
        queries_->StreamStacks(Cleaned(*request), [&](const v1::ProcessStack& stack) {
          return !context->IsCancelled() && writer->Write(stack);
        });
    if (status.ok()) return grpc::Status::OK;
    return {grpc::StatusCode::NOT_FOUND, std::string(status.message())};
  }

 private:
  // Names are kept clean, so whoever asks for one as the job has it must find it.
  template <typename Request>
  static Request Cleaned(Request request) {
    CleanStrings(&request);
    return request;
  }

  template <typename Message>
  static grpc::Status Answer(absl::StatusOr<Message> answer, Message* response) {
    if (!answer.ok()) {
      return {static_cast<grpc::StatusCode>(answer.status().code()),
              std::string(answer.status().message())};
    }
    response->Swap(&*answer);
    return grpc::Status::OK;
  }

  QuerySource* const queries_;
};

QueryService::QueryService(QuerySource* queries) : impl_(std::make_unique<Impl>(queries)) {}
QueryService::~QueryService() = default;
grpc::Service* QueryService::service() { return impl_.get(); }

}  // namespace rollcall
