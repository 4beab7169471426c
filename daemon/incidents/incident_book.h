// SPDX-License-Identifier: Apache-2.0
// The incidents of all jobs: their life, from the verdicts of a diagnosis on, with their stacks,
// reports and alerts.
//
// The diagnosing thread applies its verdicts (Apply) and passes changes on (Publish). Any thread
// may add stacks. Owns the parts that people and other parts of the daemon use: reader(),
// actions(), takeover() and writers(). incident_store.h has the incidents, and the mutex.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "daemon/agents/stack_request.h"
#include "daemon/diagnosis/life/incident_life.h"
#include "daemon/incidents/book_reader.h"
#include "daemon/incidents/incident_stacks.h"
#include "daemon/incidents/incident_store.h"
#include "daemon/incidents/incident_writers.h"
#include "daemon/incidents/job_takeover.h"
#include "daemon/incidents/operator_actions.h"
#include "daemon/jobs/daemon_counters.h"
#include "daemon/jobs/timeline.h"

namespace rollcall {

class IncidentBook {
 public:
  // `timeline` and `counters` must outlive this object. `counters`: counts what exceeds the quota;
  // nullptr if nothing is counted.
  IncidentBook(IncidentBookOptions options, Timeline* timeline, DaemonCounters* counters = nullptr);

  // Opens the history. Returns kUnavailable, with the reason, if it is unusable. Call it once,
  // before all below.
  absl::Status Start();

  // Applies the verdicts of one diagnosis. Returns the stack requests that follow from them.
  // `began_ns`: when the job began; kBeganNow: no earlier daemon had it.
  std::vector<StackRequest> Apply(const JobState& state, std::vector<Verdict> verdicts,
                                  int64_t now_ns, int64_t began_ns = kBeganNow)
      ABSL_LOCKS_EXCLUDED(store_.mutex);
  // Whether the next diagnosis of the job may change its incidents, even if the job does not
  // change: one is live, or the job's hosts have not all returned.
  bool NeedsDiagnosis(const JobKey& job) const ABSL_LOCKS_EXCLUDED(store_.mutex);
  // Removes the job's incidents from memory. The history keeps them. Ends a live incident: no agent
  // has reported its job for long. The next Publish() writes the end to the reports.
  void Forget(const JobKey& job, int64_t now_ns) ABSL_LOCKS_EXCLUDED(store_.mutex);

  // Adds the reply for one process of an incident's stack request, or the reason why there is none.
  // Returns how the process moved since its previous sample; nullopt if the sample must not be
  // judged.
  std::optional<StackChange> AddStack(const StackResult& result) ABSL_LOCKS_EXCLUDED(store_.mutex);
  // Adds what a host of the incident showed.
  void AddHostFacts(const JobKey& job, const std::string& incident, const v1::HostFacts& facts)
      ABSL_LOCKS_EXCLUDED(store_.mutex);
  // Adds what the GPU of a rank did.
  void AddGpuDump(const JobKey& job, const std::string& incident, const v1::GpuDump& dump)
      ABSL_LOCKS_EXCLUDED(store_.mutex);

  // Passes changes to the writers of reports and history, records the reports that were written,
  // and sends the alerts that are due.
  void Publish() ABSL_LOCKS_EXCLUDED(store_.mutex);

  void SetQuota(const IncidentQuotaLimits& limits) ABSL_LOCKS_EXCLUDED(store_.mutex);
  // Applies to incidents from now on.
  void SetHostLabels(HostLabels labels) ABSL_LOCKS_EXCLUDED(store_.mutex);

  // From now on no report waits for stacks, because no more will come.
  void BeginStop() ABSL_LOCKS_EXCLUDED(store_.mutex);
  // Gives the writers of reports, history and alerts some seconds from `begun` on, all at the same
  // time, and ends their threads. Does nothing if Start() failed or was not called.
  void Finish(SteadyTime begun) ABSL_LOCKS_EXCLUDED(store_.mutex);

  // Each is thread-safe and usable after Start().
  const BookReader& reader() const { return reader_; }
  OperatorActions& actions() { return actions_; }
  JobTakeover& takeover() { return takeover_; }
  const IncidentWriters& writers() const { return writers_; }

 private:
  std::vector<StackRequest> ActOnEvents(const JobState& state,
                                        const std::vector<IncidentEvent>& events, JobIncidents* job)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(store_.mutex);
  void Act(const IncidentEvent& event, JobIncidents* job)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(store_.mutex);
  void Record(const IncidentEvent& event, const JobIncidents& job, IncidentRecord* record)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(store_.mutex);
  void Abandon(JobIncidents* job, int64_t now_ns) ABSL_EXCLUSIVE_LOCKS_REQUIRED(store_.mutex);
  // Changes an incident in memory, which then goes to its report.
  void Change(const JobKey& job, const std::string& incident,
              const std::function<void(IncidentRecord*)>& change) ABSL_LOCKS_EXCLUDED(store_.mutex);
  void EndAbandoned() ABSL_LOCKS_EXCLUDED(store_.mutex);
  void PublishPending() ABSL_LOCKS_EXCLUDED(store_.mutex);
  void WriteReport(IncidentPublisher::Draft draft) ABSL_LOCKS_EXCLUDED(store_.mutex);

  const IncidentBookOptions options_;
  Timeline* const timeline_;
  DaemonCounters* const counters_;
  IncidentWriters writers_;
  IncidentStore store_;
  const BookReader reader_;
  OperatorActions actions_;
  JobTakeover takeover_;
};

}  // namespace rollcall
