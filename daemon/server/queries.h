// SPDX-License-Identifier: Apache-2.0
// The daemon's answers to people and scripts, from what the job store, the incident book and the
// stack desk know.
//
// Any thread may ask. Owns nothing and has no lock of its own: it takes those of its parts one
// after another, never two at once, so an answer may join what was true at two moments.
#pragma once

#include <string>

#include "daemon/server/agent_service.h"
#include "daemon/server/call_rate.h"
#include "daemon/server/daemon_counters.h"
#include "daemon/server/incident_book.h"
#include "daemon/server/job_store.h"
#include "daemon/server/query_source.h"
#include "daemon/server/stack_desk.h"
#include "daemon/server/timeline.h"

namespace rollcall {

class Queries : public QuerySource {
 public:
  // All outlive this object.
  struct Parts {
    const JobStore* store;
    const IncidentBook* incidents;
    StackDesk* stacks;
    const AgentService* agents;
    const CallRates* rates;
    const DaemonCounters* counters;
    Timeline* timeline;
  };

  explicit Queries(Parts parts) : parts_(parts) {}

  v1::StatusResponse GetStatus(const std::string& job, bool with_communicators) const override;
  absl::StatusOr<v1::JobView> GetJob(const std::string& job) const override;
  absl::StatusOr<v1::CallsResponse> GetCalls(const v1::CallsRequest& request) const override;
  absl::StatusOr<v1::ProcessesResponse> ListProcesses(
      const v1::ProcessesRequest& request) const override;
  absl::StatusOr<v1::ListIncidentsResponse> ListIncidents(
      const v1::ListIncidentsRequest& request) const override;
  absl::StatusOr<v1::Incident> GetIncident(const std::string& id) const override;
  absl::Status StreamStacks(const v1::TakeStacksRequest& request,
                            const std::function<bool(const v1::ProcessStack&)>& on_stack) override;
  absl::StatusOr<v1::StacksResponse> GetStacks(const v1::TakeStacksRequest& request) override;
  uint64_t Version(const std::string& job) const override;
  std::string GetMetrics(bool open_metrics, const HttpFront::Counts& http) const override;

 private:
  void AddJobStatus(const std::string& name, int64_t now_ns, bool with_communicators,
                    v1::JobStatus* status) const;
  void AddWhatIncidentsTell(v1::JobStatus* status) const;
  absl::Status NoSuchJob(const std::string& job) const;

  const Parts parts_;
};

}  // namespace rollcall
