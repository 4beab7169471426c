// SPDX-License-Identifier: Apache-2.0
// What people and other parts of the daemon read of the incidents: those in memory, and those in
// the history. Thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "daemon/history/history_query.h"
#include "daemon/history/incident_growth.h"
#include "daemon/incidents/host_hangs_desk.h"
#include "daemon/incidents/incident_counts.h"
#include "daemon/incidents/incident_store.h"
#include "daemon/jobs/ownership.h"
#include "daemon/model/tenants.h"
#include "rollcall/v1/incident.pb.h"
#include "rollcall/v1/query.pb.h"

namespace rollcall {

// A summary of a job's incidents.
struct JobBrief {
  struct Live {
    std::string id;
    bool is_confirmed = false;
    std::string summary;
    std::vector<int32_t> culprits;  // ranks
    int64_t opened_ns = 0;
  };
  std::vector<std::string> warnings;  // sentences about a job that does not hang
  std::optional<v1::IncidentSummary> last;
  std::optional<Live> live;
};

class BookReader {
 public:
  // All outlive this object. `ownership`: nullptr means all jobs are this daemon's.
  BookReader(const IncidentStore* store, const IncidentWriters* writers, Timeline* timeline,
             const JobOwnership* ownership)
      : store_(store), writers_(writers), timeline_(timeline), ownership_(ownership) {}

  // Incidents since the start, of one job or of all jobs for "", oldest first.
  std::vector<v1::Incident> All(const std::string& job) const;
  // Includes the history. If it is unreadable, a note in the response reports it. `newer`:
  // incidents of other daemons, in a newer state than the history's.
  absl::StatusOr<v1::ListIncidentsResponse> List(const v1::ListIncidentsRequest& request,
                                                 std::vector<v1::Incident> newer = {}) const;
  // Answers a query over all of the history (history_query.h). Hangs that last cost what they cost
  // now. `newer`: as above.
  template <typename Request>
  absl::StatusOr<HistoryAnswerTo<Request>> Ask(const Request& request,
                                               const std::vector<v1::Incident>& newer,
                                               const HistoryCaller& caller) const {
    auto answer = writers_->history->Ask(request, caller);
    if (answer.ok()) {
      AddGrowth(WithOpen(newer, NeedsStacks(request)), request, timeline_->WallNow(), &*answer);
    }
    return answer;
  }
  // Includes the history. kNotFound says how to list the incidents.
  absl::StatusOr<v1::Incident> Get(const std::string& id) const;

  std::vector<v1::Silence> ListSilences(const Tenants& tenants) const;

  // Whether an incident of the job is in memory.
  bool HasJob(const JobId& job) const;
  // The attempts with an open incident.
  std::set<JobKey> OpenJobs() const;
  JobBrief Brief(const JobKey& job) const;
  // The confirmed hangs for which hosts are blamed (BlameHost()), by host: those about which this
  // daemon may alert, and whose jobs it has diagnosed itself.
  HangsByHost BlamedHosts() const;

  IncidentCounts CountIncidents(const JobKey& job, int64_t now_ns) const;
  DeliveryCounts CountDeliveries() const;
  // Hosts that jobs of an earlier daemon had, and that have not come back.
  size_t CountKnownHosts() const;
  // Grows with every change of the job's incidents.
  uint64_t Changes(const JobKey& job) const;
  // Grows with every change of any incident, and when a job goes.
  uint64_t Changes() const;

 private:
  std::vector<v1::Incident> Collect(
      bool with_stacks, const std::function<bool(const v1::Incident&)>& is_wanted) const;
  std::vector<v1::Incident> WithOpen(const std::vector<v1::Incident>& newer,
                                     bool with_stacks) const;
  v1::ListIncidentsResponse ListIncidents(const v1::ListIncidentsRequest& request,
                                          std::vector<v1::Incident> newer) const;
  std::optional<v1::Incident> FindInMemory(const std::string& id) const;
  void AddRecurrence(v1::Incident* incident) const;

  const IncidentStore* const store_;
  const IncidentWriters* const writers_;
  Timeline* const timeline_;
  const JobOwnership* const ownership_;
};

}  // namespace rollcall
