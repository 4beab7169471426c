// SPDX-License-Identifier: Apache-2.0
// The queries of people and scripts, for all front ends: the HTTP server, its JSON API and the gRPC
// service. Thread-safe.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "daemon/model/tenants.h"
#include "net/http_front.h"
#include "rollcall/v1/incident.pb.h"
#include "rollcall/v1/look.pb.h"
#include "rollcall/v1/query.pb.h"
#include "security/identity.h"

namespace rollcall {

// Limits one answer. An answer of this size takes a second to make and a browser some to show.
inline constexpr size_t kMaxJobsListed = 1000;

// How a person names a job.
struct JobSelector {
  std::string job;
  std::string tenant;              // empty means any
  std::optional<int32_t> attempt;  // nullopt means the newest
  // Only jobs with a process on this host: of each the newest attempt that has one. Empty means
  // all.
  std::string host = {};
  // For GetJob(): the newest state at this time or before, on the wall clock; 0 means now.
  int64_t at_ns = 0;
  // The part of a list of all jobs, which is in the order of their names.
  size_t offset = 0;
  size_t most = kMaxJobsListed;
};

template <typename Request>
JobSelector SelectorIn(const Request& request) {
  JobSelector selector;
  selector.job = request.job();
  selector.tenant = request.tenant();
  if (request.has_attempt()) selector.attempt = request.attempt();
  return selector;
}
JobSelector SelectorIn(const v1::StatusRequest& request);
JobSelector SelectorIn(const v1::JobRequest& request);

class QuerySource {
 public:
  virtual ~QuerySource() = default;

  // Returns the same queries for a caller who sees only these tenants: jobs of others do not exist
  // for it. This object must outlive the result.
  virtual std::unique_ptr<QuerySource> SeenBy(Tenants tenants) const = 0;
  // Returns the same for an agent: of its tenants' jobs it sees those that an agent of its hosts
  // reports, and of their incidents those that are in memory.
  virtual std::unique_ptr<QuerySource> SeenByAgent(const Identity& agent) const = 0;
  // Returns one of these two, by the caller's role.
  virtual std::unique_ptr<QuerySource> SeenByCaller(const Identity& caller) const;

  // The same queries, with these incidents of other daemons as they are here in the place of their
  // states in the history. nullptr if this source has no history.
  virtual std::unique_ptr<QuerySource> WithNewer(std::vector<v1::Incident> /*newer*/) const {
    return nullptr;
  }

  // The same queries, answered from what this daemon has itself, for another daemon that asks.
  virtual const QuerySource* own() const { return this; }

  // The queries and actions of people, as query.proto describes them. kNotFound: there is no such
  // job or incident; the error lists what there is. kInvalidArgument: the request names what there
  // is not. Actions also have the errors of incident_actions.h and silences.h. `who`: the caller.
#define QUESTION(name, Request, Response, ...) \
  virtual absl::StatusOr<v1::Response> name(const v1::Request& request) const = 0;
#define ACT(name, Request, Response, ...) \
  virtual absl::StatusOr<v1::Response> name(const v1::Request& request, const std::string& who) = 0;
#include "daemon/access/questions.def"

  // Takes the stacks of these processes now. Calls `on_stack` with each as it comes; ends early
  // when it returns false. Returns kNotFound as above. Takes seconds.
  virtual absl::Status StreamStacks(
      const v1::TakeStacksRequest& request,
      const std::function<bool(const v1::ProcessStack&)>& on_stack) = 0;
  // Takes the same stacks, and merges them.
  virtual absl::StatusOr<v1::StacksResponse> GetStacks(const v1::TakeStacksRequest& request);

  // Looks at a job that is not recorded: what each of its hosts shows. As LookDesk::Look().
  virtual absl::StatusOr<std::vector<v1::HostLook>> LookAtJob(
      const v1::LookRequest& request, const std::function<bool()>& goes_on) = 0;
  // The judgement of such a look.
  virtual absl::StatusOr<v1::DiagnoseResponse> Diagnose(const v1::LookRequest& request);

  // Changes when any other result changes, except for times. "" is for all jobs that the caller may
  // see.
  virtual uint64_t Version(const std::string& job) const = 0;

  // Returns the metrics in the text format of Prometheus, or OpenMetrics. `http` are the counts of
  // the calling server.
  virtual std::string GetMetrics(bool open_metrics, const HttpFront::Counts& http) const = 0;
};

}  // namespace rollcall
