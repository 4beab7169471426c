// SPDX-License-Identifier: Apache-2.0
// A source of made-up answers.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "daemon/incidents/incident_actions.h"
#include "daemon/queries/query_source.h"

namespace rollcall {

// Gives an empty answer to each query.
class EmptyQueries : public QuerySource {
 public:
#define QUESTION(name, Request, Response, ...) \
  absl::StatusOr<v1::Response> name(const v1::Request&) const override { return v1::Response(); }
#define ACT(name, Request, Response, ...)                                              \
  absl::StatusOr<v1::Response> name(const v1::Request&, const std::string&) override { \
    return v1::Response();                                                             \
  }
#include "daemon/access/questions.def"
};

class FakeQueries : public EmptyQueries {
 public:
  // `owner` counts; nullptr if this object does.
  explicit FakeQueries(const FakeQueries* owner = nullptr) : owner_(owner) {}
  std::unique_ptr<QuerySource> SeenBy(Tenants) const override {
    return std::make_unique<FakeQueries>(this);
  }
  std::unique_ptr<QuerySource> SeenByAgent(const Identity&) const override {
    return std::make_unique<FakeQueries>(this);
  }
  // Every job is the tenant team's, in its attempt 2.
  absl::StatusOr<v1::StatusResponse> GetStatus(const v1::StatusRequest& request) const override {
    v1::StatusResponse response;
    if (request.job().empty()) return response;
    response.add_jobs()->set_tenant("team");
    response.mutable_jobs(0)->set_attempt(2);
    return response;
  }
  // A call, or a trace of none would be an error.
  absl::StatusOr<v1::CallsResponse> GetCalls(const v1::CallsRequest&) const override {
    v1::CallsResponse response;
    response.add_ranks()->add_communicators()->add_calls()->set_entered_seconds(1);
    return response;
  }
  absl::StatusOr<v1::Incident> ActOnIncident(const v1::IncidentActionRequest& request,
                                             const std::string& who) override {
    v1::Incident incident;
    incident.set_id(request.id());
    const absl::Status status = AddNote(who, request.text(), 1, &incident);
    if (!status.ok()) return status;
    return incident;
  }
  absl::StatusOr<v1::Silence> AddSilence(const v1::AddSilenceRequest& request,
                                         const std::string& who) override {
    v1::Silence silence = request.silence();
    silence.set_who(who);
    return silence;
  }
  absl::StatusOr<v1::Silence> EndSilence(const v1::EndSilenceRequest& request,
                                         const std::string&) override {
    v1::Silence silence;
    silence.set_id(request.id());
    return silence;
  }
  absl::Status StreamStacks(const v1::TakeStacksRequest&,
                            const std::function<bool(const v1::ProcessStack&)>&) override {
    return absl::OkStatus();
  }
  absl::StatusOr<v1::StacksResponse> GetStacks(const v1::TakeStacksRequest&) override {
    ++(owner_ == nullptr ? this : owner_)->stacks_taken;
    return v1::StacksResponse();
  }
  absl::StatusOr<std::vector<v1::HostLook>> LookAtJob(const v1::LookRequest&,
                                                      const std::function<bool()>&) override {
    ++(owner_ == nullptr ? this : owner_)->looks_taken;
    return std::vector<v1::HostLook>();
  }
  uint64_t Version(const std::string&) const override {
    return (owner_ == nullptr ? this : owner_)->version;
  }
  std::string GetMetrics(bool, const HttpFront::Counts&) const override { return "metrics\n"; }

  std::atomic<uint64_t> version{1};
  mutable std::atomic<int> stacks_taken{0}, looks_taken{0};

 private:
  const FakeQueries* const owner_;
};

}  // namespace rollcall
