// SPDX-License-Identifier: Apache-2.0
// Which incidents go to the history, and when their reports are due. The quota of a job limits
// both, but for hangs that last and what a person or an alert has named. One owner, no lock.
#pragma once

#include <string>
#include <vector>

#include "daemon/incidents/incident_quota.h"
#include "daemon/incidents/incident_table.h"
#include "daemon/incidents/incident_writers.h"
#include "daemon/jobs/timeline.h"
#include "daemon/report/stacks/stack_tree.h"

namespace rollcall {

class IncidentPublisher {
 public:
  struct Draft {  // of a report whose stacks are not merged yet
    JobKey job;
    v1::Incident incident;
    std::string folder;
    StackTree rest;
    bool is_last = false;  // its job is forgotten
  };

  // `has_folder`: there are reports on disk. `counters` may be nullptr.
  IncidentPublisher(bool has_folder, const IncidentWriters* writers, Timeline* timeline,
                    DaemonCounters* counters, IncidentTable* table, IncidentQuota* quota)
      : has_folder_(has_folder),
        writers_(writers),
        timeline_(timeline),
        counters_(counters),
        table_(table),
        quota_(quota) {}

  // Sets whether the incident of the event is over the quota.
  void Judge(const IncidentEvent& event, const JobId& job, IncidentRecord* record);
  // Removes the closed incident from memory if it is over the quota.
  void DropIfOverQuota(const Incident& closed, JobIncidents* job);
  // Saves the incident, unless it is over the quota.
  void Save(IncidentRecord* record);
  void SaveAnyway(IncidentRecord* record);

  // Records the reports that were written, saves the incidents that have changed, and returns the
  // reports that are due.
  std::vector<Draft> TakeDrafts();
  // The job is about to be forgotten: TakeDrafts() returns its last reports. Without the end, the
  // queue would keep a report for ever as that of a live incident.
  void DraftLast(JobIncidents* job);
  // From now on no report waits for stacks, because no more will come.
  void BeginStop() { is_stopping_ = true; }

 private:
  void SaveIfItLasts(const JobIncidents& job, IncidentRecord* record);
  bool Publish(const JobIncidents& job, IncidentRecord* record, std::vector<Draft>* drafts);
  void AddDraft(const JobIncidents& job, IncidentRecord* record, std::vector<Draft>* drafts);
  bool AwaitsStacks(const IncidentRecord& record) const;
  void RecordReport(const ReportQueue::Result& result);
  void RecordProblem(IncidentRecord* record);

  const bool has_folder_;
  const IncidentWriters* const writers_;
  Timeline* const timeline_;
  DaemonCounters* const counters_;
  IncidentTable* const table_;
  IncidentQuota* const quota_;
  bool is_stopping_ = false;
  // The publishing thread alone gives reports to the queue: otherwise an older state of a report
  // might follow the last one.
  std::vector<Draft> last_drafts_;
};

}  // namespace rollcall
