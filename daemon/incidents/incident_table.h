// SPDX-License-Identifier: Apache-2.0
// The incidents of all jobs, and which of them have changed. One owner, no lock.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "daemon/history/history_keeper.h"
#include "daemon/incidents/incident_record.h"
#include "daemon/model/job_key.h"

namespace rollcall {

class IncidentTable {
 public:
  using Jobs = std::map<JobKey, JobIncidents>;
  using Ids = std::set<std::pair<JobKey, std::string>>;  // of incidents

  Jobs& jobs() { return jobs_; }
  const Jobs& jobs() const { return jobs_; }

  // Each returns nullptr if there is none.
  JobIncidents* Find(const JobKey& job);
  const JobIncidents* Find(const JobKey& job) const;
  IncidentRecord* Find(const JobKey& job, const std::string& incident);
  bool Has(const JobId& job) const;
  // Returns the attempts of the job, oldest first.
  std::vector<JobIncidents*> AttemptsOf(const JobId& job);
  // Finds the attempt, or begins it after the job's incidents in the history.
  JobIncidents* Open(const JobKey& job, const HistoryKeeper& history);
  void Erase(const JobKey& job);

  // The record is to be saved, and people see the change.
  void SetChanged(JobIncidents* job, IncidentRecord* record);
  void CountChange() { ++changes_; }
  // Grows with every change of any incident, and when a job goes.
  uint64_t changes() const { return changes_; }

  // The writers have work with the incident, until TakePending().
  void SetPending(const JobIncidents& job, const IncidentRecord& record);
  // Some may have gone.
  Ids TakePending() { return std::exchange(pending_, {}); }

 private:
  Jobs jobs_;
  Ids pending_;
  uint64_t changes_ = 0;
};

}  // namespace rollcall
