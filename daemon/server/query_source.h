// SPDX-License-Identifier: Apache-2.0
// What people and scripts can ask the daemon, whatever way they come: the HTTP server, its JSON API
// and the gRPC service take their answers from here. Thread-safe.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "daemon/server/http_front.h"
#include "rollcall/v1/incident.pb.h"
#include "rollcall/v1/query.pb.h"

namespace rollcall {

class QuerySource {
 public:
  virtual ~QuerySource() = default;

  // Of the job, or all jobs for "".
  virtual v1::StatusResponse GetStatus(const std::string& job, bool with_communicators) const = 0;

  // kNotFound where there is no such job or incident; says what there is.
  virtual absl::StatusOr<v1::JobView> GetJob(const std::string& job) const = 0;
  virtual absl::StatusOr<v1::CallsResponse> GetCalls(const v1::CallsRequest& request) const = 0;
  virtual absl::StatusOr<v1::ProcessesResponse> ListProcesses(
      const v1::ProcessesRequest& request) const = 0;
  virtual absl::StatusOr<v1::ListIncidentsResponse> ListIncidents(
      const v1::ListIncidentsRequest& request) const = 0;
  virtual absl::StatusOr<v1::Incident> GetIncident(const std::string& id) const = 0;

  // Has the stacks of these processes taken, now. `on_stack` is called with each as it comes, and
  // ends it by returning false. kNotFound as above. Takes seconds.
  virtual absl::Status StreamStacks(
      const v1::TakeStacksRequest& request,
      const std::function<bool(const v1::ProcessStack&)>& on_stack) = 0;
  // All of them, and merged.
  virtual absl::StatusOr<v1::StacksResponse> GetStacks(const v1::TakeStacksRequest& request) = 0;

  // Changes when what the others return does, times apart. "": of all jobs.
  virtual uint64_t Version(const std::string& job) const = 0;

  // In the text format of Prometheus, or OpenMetrics. `http`: of the server that asks.
  virtual std::string GetMetrics(bool open_metrics, const HttpFront::Counts& http) const = 0;
};

}  // namespace rollcall
