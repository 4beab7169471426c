// SPDX-License-Identifier: Apache-2.0
// Answers the queries of people and scripts, from the job store, the incident book and the stack
// desk.
//
// Any thread may call it. Owns nothing and has no mutex. It takes the mutexes of its parts one
// after another, so an answer may combine the states of two moments.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "daemon/agents/agent_service.h"
#include "daemon/incidents/incident_book.h"
#include "daemon/jobs/call_rate.h"
#include "daemon/jobs/daemon_counters.h"
#include "daemon/jobs/job_store.h"
#include "daemon/jobs/timeline.h"
#include "daemon/looks/look_desk.h"
#include "daemon/looks/unrecorded_book.h"
#include "daemon/loop/job_pairs.h"
#include "daemon/loop/stack_desk.h"
#include "daemon/queries/past_views.h"
#include "daemon/queries/query_source.h"

namespace rollcall {

class DaemonSecurity;
class Refusals;

class Queries : public QuerySource {
 public:
  // All must outlive this object.
  struct Parts {
    const JobStore* store;
    IncidentBook* incidents;
    StackDesk* stacks;
    const AgentService* agents;
    const CallRates* rates;
    const PastViews* past;
    const DaemonCounters* counters;
    Timeline* timeline;
    const Refusals* refusals;
    const DaemonSecurity* security;  // nullptr if there is none
    const UnrecordedBook* unrecorded;
    LookDesk* looks;
    const JobPairs* pairs = nullptr;  // nullptr means no two jobs are joined
  };

  // `agent`: as in QuerySource::SeenByAgent(). `who`: the caller's name; empty means this daemon.
  explicit Queries(Parts parts, Tenants tenants = Tenants::All(),
                   std::optional<Identity> agent = std::nullopt, std::string who = "")
      : parts_(parts),
        tenants_(std::move(tenants)),
        agent_(std::move(agent)),
        who_(std::move(who)) {}

  std::unique_ptr<QuerySource> SeenBy(Tenants tenants) const override;
  std::unique_ptr<QuerySource> SeenByAgent(const Identity& agent) const override;
  std::unique_ptr<QuerySource> SeenByCaller(const Identity& caller) const override;
  std::unique_ptr<QuerySource> WithNewer(std::vector<v1::Incident> newer) const override;

#define QUESTION(name, Request, Response, ...) \
  absl::StatusOr<v1::Response> name(const v1::Request& request) const override;
#define ACT(name, Request, Response, ...) \
  absl::StatusOr<v1::Response> name(const v1::Request& request, const std::string& who) override;
#include "daemon/access/questions.def"
  absl::Status StreamStacks(const v1::TakeStacksRequest& request,
                            const std::function<bool(const v1::ProcessStack&)>& on_stack) override;
  absl::StatusOr<std::vector<v1::HostLook>> LookAtJob(
      const v1::LookRequest& request, const std::function<bool()>& goes_on) override;
  uint64_t Version(const std::string& job) const override;
  std::string GetMetrics(bool open_metrics, const HttpFront::Counts& http) const override;

 private:
  bool Sees(const JobKey& key) const;
  v1::StatusResponse StatusOf(const JobSelector& selector, bool with_communicators) const;
  template <typename Request>
  bool KeepOwnTenants(Request* request) const;
  std::optional<JobKey> Find(const JobSelector& selector) const;
  void AddJobStatus(const JobKey& key, int64_t now_ns, bool with_communicators,
                    v1::JobStatus* status) const;
  std::vector<JobKey> JobsInOrder() const;
  std::vector<JobKey> ListJobs(const JobSelector& selector, size_t* total) const;
  bool RunsOn(const JobKey& key, const std::string& host) const;
  std::optional<JobKey> NewestOn(const JobKey& key, const std::string& host) const;
  uint64_t UnrecordedVersion() const {
    return parts_.unrecorded == nullptr ? 0 : parts_.unrecorded->version(tenants_);
  }
  void AddUnrecorded(const JobSelector& selector, v1::StatusResponse* response) const;
  void AddReleases(const JobSelector& selector, v1::StatusResponse* response) const;
  void AddIncidents(const JobKey& key, v1::JobStatus* status) const;
  void AddReferral(const JobKey& key, v1::JobStatus* status) const;
  void AddAttempts(const JobKey& key, int64_t now_ns, v1::JobStatus* status) const;
  absl::StatusOr<v1::JobView> GetPast(const JobKey& key, int64_t at_ns) const;
  absl::Status NoSuchJob(const JobSelector& selector) const;

  const Parts parts_;
  const Tenants tenants_;
  const std::optional<Identity> agent_;  // that asks; nullopt means a viewer
  const std::string who_;
  std::vector<v1::Incident> newer_;  // of other daemons
};

}  // namespace rollcall
