// SPDX-License-Identifier: Apache-2.0
#include "daemon/incidents/incident_table.h"

namespace rollcall {

JobIncidents* IncidentTable::Find(const JobKey& job) {
  const auto known = jobs_.find(job);
  return known == jobs_.end() ? nullptr : &known->second;
}

const JobIncidents* IncidentTable::Find(const JobKey& job) const {
  const auto known = jobs_.find(job);
  return known == jobs_.end() ? nullptr : &known->second;
}

IncidentRecord* IncidentTable::Find(const JobKey& job, const std::string& incident) {
  JobIncidents* const known = Find(job);
  return known == nullptr ? nullptr : FindRecord(incident, known);
}

bool IncidentTable::Has(const JobId& job) const {
  const auto at = jobs_.lower_bound(JobKey(job, INT32_MIN));
  return at != jobs_.end() && static_cast<const JobId&>(at->first) == job;
}

std::vector<JobIncidents*> IncidentTable::AttemptsOf(const JobId& job) {
  std::vector<JobIncidents*> attempts;
  for (auto at = jobs_.lower_bound(JobKey(job, INT32_MIN));
       at != jobs_.end() && static_cast<const JobId&>(at->first) == job; ++at) {
    attempts.push_back(&at->second);
  }
  return attempts;
}

JobIncidents* IncidentTable::Open(const JobKey& job, const HistoryKeeper& history) {
  JobIncidents* const known = Find(job);
  if (known != nullptr) return known;
  return &jobs_.try_emplace(job, job, history.LastNumber(job)).first->second;
}

void IncidentTable::Erase(const JobKey& job) {
  jobs_.erase(job);
  ++changes_;
}

void IncidentTable::SetChanged(JobIncidents* job, IncidentRecord* record) {
  record->unsaved = true;
  SetPending(*job, *record);
  ++job->changes;
  ++changes_;
}

void IncidentTable::SetPending(const JobIncidents& job, const IncidentRecord& record) {
  pending_.emplace(job.key, record.incident.id());
}

}  // namespace rollcall
