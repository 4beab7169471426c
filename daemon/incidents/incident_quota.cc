// SPDX-License-Identifier: Apache-2.0
#include "daemon/incidents/incident_quota.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "daemon/incidents/incident_brief.h"

namespace rollcall {
void IncidentQuota::DropOld(int64_t now_ns, Job* job) const {
  const int64_t until_ns = now_ns - limits_.hour_ns;
  for (Window* window : {&job->opened, &job->confirmed, &job->alerts}) window->Drop(until_ns);
}

IncidentQuota::Job* IncidentQuota::Find(const JobId& job, int64_t now_ns) {
  Job* known = &jobs_[job];
  DropOld(now_ns, known);
  return known;
}

bool IncidentQuota::MayStoreOpened(const JobId& job, int64_t now_ns) {
  Window* opened = &Find(job, now_ns)->opened;
  if (opened->size() >= limits_.incidents) return false;
  opened->Add(now_ns);
  return true;
}

bool IncidentQuota::MayStoreConfirmed(const JobId& job, bool is_stored, int64_t now_ns) {
  Window* confirmed = &Find(job, now_ns)->confirmed;
  if (!is_stored && confirmed->size() >= limits_.incidents) return false;
  confirmed->Add(now_ns);
  return true;
}

bool IncidentQuota::MayAlert(const JobId& job, const v1::Incident& incident, int64_t now_ns) {
  Job* known = Find(job, now_ns);
  if (known->held == 0 && known->alerts.size() < limits_.alerts) {
    known->alerts.Add(now_ns);
    return true;
  }
  ++known->held;
  known->newest = WithoutStacks(incident);
  known->newest_ns = now_ns;
  return false;
}

bool IncidentQuota::IsFull(const JobId& job) const {
  const auto known = jobs_.find(job);
  return known != jobs_.end() &&
         (known->second.held > 0 || known->second.alerts.size() >= limits_.alerts);
}

void IncidentQuota::Update(const JobId& job, const v1::Incident& incident) {
  const auto known = jobs_.find(job);
  if (known == jobs_.end() || known->second.held == 0) return;
  if (known->second.newest.id() == incident.id()) known->second.newest = WithoutStacks(incident);
}

bool IncidentQuota::IsDue(const Job& job, int64_t now_ns) const {
  if (job.held == 0) return false;
  const bool lasts = !job.newest.has_closed_at() && now_ns - job.newest_ns >= limits_.lasting_ns;
  return lasts || job.alerts.size() < limits_.alerts;
}

std::vector<IncidentQuota::Due> IncidentQuota::TakeDue(int64_t now_ns) {
  std::vector<Due> due;
  for (auto at = jobs_.begin(); at != jobs_.end();) {
    Job& job = at->second;
    DropOld(now_ns, &job);
    if (IsDue(job, now_ns)) {
      job.alerts.Add(now_ns);
      v1::Incident incident = std::exchange(job.newest, {});
      const size_t held = std::exchange(job.held, 0);
      if (held > 1 && !incident.verdicts().empty()) {
        v1::Verdict* root = incident.mutable_verdicts(0);
        const std::string newest = root->summary();
        root->set_summary(absl::StrCat("flapping: ", held,
                                       " more incidents in the last hour; the newest: ", newest));
      }
      due.push_back({at->first, std::move(incident)});
    }
    const bool is_idle =
        job.opened.size() + job.confirmed.size() + job.alerts.size() + job.held == 0;
    at = is_idle ? jobs_.erase(at) : std::next(at);
  }
  return due;
}

}  // namespace rollcall
