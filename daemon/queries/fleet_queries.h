// SPDX-License-Identifier: Apache-2.0
// Answers the queries of people and scripts for all daemons on one database: this daemon's jobs
// from what it has itself, the others' by asking their owners (peers.h).
//
// Lists name the daemons that do not answer. A query about one job goes to its owner; if that one
// has not the job, or is not known, to this daemon, and then to all others. The history is in the
// database; only the newest state of an incident that is open comes from its owner.
//
// Thread-safe. A call may wait for other daemons, for as long as PeerOptions permits.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "daemon/fleet/fleet_jobs.h"
#include "daemon/fleet/fleet_view.h"
#include "daemon/fleet/peers.h"
#include "daemon/jobs/ownership.h"
#include "daemon/queries/query_source.h"

namespace rollcall {

class FleetQueries : public QuerySource {
 public:
  // `local`: this daemon's own. All of them must outlive this object and what it returns.
  FleetQueries(QuerySource* local, const FleetView* fleet, const JobOwnership* ownership,
               PeerOptions options);

  // Returns the daemons that report a working database connection. May wait for a second.
  std::vector<DaemonRow> WithDatabase(const std::vector<DaemonRow>& daemons) const;
  // Ends the waits for other daemons, now and later: the daemon stops.
  void Close() { peers_->Close(); }

  std::unique_ptr<QuerySource> SeenBy(Tenants tenants) const override;
  std::unique_ptr<QuerySource> SeenByAgent(const Identity& agent) const override;
  std::unique_ptr<QuerySource> SeenByCaller(const Identity& caller) const override;
  const QuerySource* own() const override { return local_; }

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
  // What all daemons list, this one first.
  struct Lists {
    std::vector<DaemonJobs> jobs;
    std::vector<DaemonRow> daemons;  // without this one: daemons[i] has jobs[i + 1]
    std::vector<std::string> silent;
    v1::StatusResponse frame;  // all but the jobs, of all together
  };
  using AskThere = std::function<absl::Status(const DaemonRow& peer)>;
  // For threads to end, beyond the time for their calls.
  static constexpr int64_t kSlackNs = 100'000'000;

  // Makes queries that see what `seen` sees, for `caller`.
  FleetQueries(std::unique_ptr<QuerySource> seen, const FleetQueries& all, v1::PeerCaller caller);

  bool IsAgent() const;
  std::string NameOfSelf() const;
  PeerAsk AskOf(const DaemonRow& peer, int64_t patience_ns) const;
  std::optional<DaemonRow> OtherOwnerOf(const std::string& tenant, const std::string& job) const;
  OwnerName OwnerNames() const;

  template <typename Response, typename Request>
  std::vector<absl::StatusOr<Response>> AskAll(const std::vector<DaemonRow>& peers,
                                               const Request& request) const;
  std::vector<absl::StatusOr<v1::ListIncidentsResponse>> AskEach(
      const std::vector<DaemonRow>& peers, const v1::ListIncidentsRequest& request) const;
  std::vector<absl::StatusOr<v1::Incident>> AskEach(const std::vector<DaemonRow>& peers,
                                                    const v1::IncidentRequest& request) const;

  absl::Status AboutJob(const JobSelector& job, const std::function<absl::Status()>& here,
                        const AskThere& there) const;
  template <typename Response, typename Request>
  absl::StatusOr<Response> AskAboutJob(
      const Request& request,
      absl::StatusOr<Response> (QuerySource::*question)(const Request& request) const,
      std::string* daemon = nullptr) const;
  std::vector<DaemonRow> WhoHas(const JobSelector& job) const;
  absl::Status NoSuchJob(const JobSelector& job) const;

  // Of this daemon and of the others: the hosts of a job that is not recorded, each once.
  struct HostsOfJob {
    std::vector<std::string> here;
    std::vector<std::pair<DaemonRow, std::vector<std::string>>> there;
  };
  HostsOfJob FindHosts(const v1::LookRequest& request) const;
  Lists ListsOf(const JobSelector& selector) const;
  void AddCommunicators(const std::string& host, const std::vector<FleetJob>& page,
                        Lists* lists) const;
  absl::StatusOr<v1::StatusResponse> ListJobs(const v1::StatusRequest& request) const;

  std::vector<v1::Incident> AskForIncidents(const v1::ListIncidentsRequest& request,
                                            std::vector<std::string>* silent) const;
  std::unique_ptr<QuerySource> LocalWithOpen(bool with_stacks = false) const;

  const std::unique_ptr<QuerySource> seen_;  // nullptr if local_ is another's
  QuerySource* const local_;
  const FleetView* const fleet_;
  const JobOwnership* const ownership_;
  const std::shared_ptr<Peers> peers_;
  const v1::PeerCaller caller_;
};

}  // namespace rollcall
