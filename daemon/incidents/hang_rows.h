// SPDX-License-Identifier: Apache-2.0
// The hangs of a job as one story, over all its attempts: which of them are one row of alerts, who
// takes care of a row, and which attempt goes on after a hang. alert_folds.h decides; this class
// keeps the incidents true to it. One owner, no lock; time is an argument.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "daemon/incidents/alert_folds.h"
#include "daemon/incidents/incident_table.h"
#include "daemon/jobs/job_store.h"
#include "daemon/model/job_key.h"
#include "rollcall/v1/incident.pb.h"

namespace rollcall {

class HangRows {
 public:
  explicit HangRows(IncidentTable* table) : table_(table) {}

  // Takes the confirmed hang into its row, and returns the first hang of that row.
  void Join(const JobIncidents& job, int64_t now_ns, IncidentRecord* record);
  void SetTold(const v1::Incident& hang, bool told) { folds_.SetTold(hang, told); }
  // Whether to report now that the hang is over. `is_last`: as AlertFolds::Ending.
  bool EndsNow(const JobIncidents& job, const v1::Incident& hang, bool is_last, int64_t now_ns);
  // The ends that are due.
  std::vector<v1::Incident> TakeEnds(int64_t now_ns);
  // The attempt of a job that makes calls goes on where earlier ones ended with a hang.
  void GoOn(const JobId& job, int64_t now_ns);
  // Somebody has acknowledged this hang, or does no longer: of the first hang of a row with the
  // newest one, which lasts. People may look at either.
  void ShareAcknowledgement(const v1::Incident& first);

  // Launchers that restart jobs have started some of these attempts.
  void SetRestartable(const AttemptChanges& changes);
  // Another daemon has the job.
  void Drop(const JobId& job) { folds_.Drop(job); }

 private:
  IncidentRecord* FindToChange(const JobId& job, const std::string& incident);
  void GoOnIn(int32_t attempt, JobIncidents* job);
  std::string LaterHang(const v1::Incident& incident);

  IncidentTable* const table_;
  AlertFolds folds_;
  std::set<JobKey> restartable_;
};

}  // namespace rollcall
