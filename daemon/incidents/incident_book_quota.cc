// SPDX-License-Identifier: Apache-2.0
// Which incidents of the book are stored, and which alerts are sent: both within a quota.
#include <algorithm>
#include <optional>

#include "absl/strings/str_cat.h"
#include "base/mutex.h"
#include "daemon/incidents/incident_book.h"

namespace rollcall {

void IncidentBook::ApplyQuota(const IncidentEvent& event, const JobIncidents& job, Record* record) {
  if (event.kind == IncidentEvent::Kind::kOpened) {
    record->is_over_quota = !quota_.MayStoreOpened(job.key, event.incident.opened_ns);
  }
  if (event.kind == IncidentEvent::Kind::kConfirmed &&
      quota_.MayStoreConfirmed(job.key, !record->is_over_quota, event.incident.confirmed_ns)) {
    record->is_over_quota = false;
  }
  if (!record->is_over_quota) return;
  record->incident.set_report_note(absl::StrCat("not stored: the job has had more than ",
                                                options_.quota.incidents,
                                                " incidents in the last hour"));
}

void IncidentBook::DropOverQuota(const IncidentEvent& event, JobIncidents* job) {
  if (event.incident.closed_ns == 0) return;
  const auto at = std::find_if(job->records.begin(), job->records.end(), [&](const Record& record) {
    return record.is_over_quota && record.incident.id() == event.incident.id;
  });
  if (at == job->records.end()) return;
  job->records.erase(at);
  CountDropped(Dropped::kIncidents);
}

// A hang that lasts is none of a job that flaps.
void IncidentBook::StoreIfItLasts(const JobIncidents& job, Record* record) {
  const std::optional<Incident>& live = job.life.live();
  if (!live || live->id != record->incident.id() || live->confirmed_ns == 0) return;
  if (timeline_->Now() - live->confirmed_ns >= options_.quota.lasting_ns) Store(record);
}

// Stores the incident, whatever the quota says.
void IncidentBook::Store(Record* record) {
  if (record->is_over_quota) record->incident.clear_report_note();
  record->is_over_quota = false;
  SaveNow(record);
}

void IncidentBook::SaveNow(Record* record) {
  if (record->is_over_quota) return;
  record->unsaved = false;
  history_->Save(record->incident);
}

void IncidentBook::CountDropped(Dropped what) {
  if (counters_ != nullptr) counters_->CountDropped(what, 1);
}

// False: the alert of the confirmed incident is held back.
bool IncidentBook::MayAlert(const JobIncidents& job, Record* record, int64_t now_ns) {
  if (IsSilenced(job, record)) return false;
  if (options_.alerts.targets.empty()) return true;
  const bool may_alert = quota_.MayAlert(job.key, record->incident, now_ns);
  record->incident.set_alert_held_back(!may_alert);
  if (!may_alert) CountDropped(Dropped::kAlerts);
  if (may_alert && quota_.IsFull(job.key)) record->incident.mutable_repeat()->set_holds_back(true);
  return may_alert;
}

// Sends one alert for all that were held back, where it is due.
void IncidentBook::SendHeldBack() {
  const MutexLock lock(mutex_);
  for (IncidentQuota::Due& due : quota_.TakeDue(timeline_->Now())) {
    due.incident.set_alert_held_back(false);
    const auto job = jobs_.find(ReadJobKey(due.incident));
    Record* record = job == jobs_.end() ? nullptr : FindRecord(due.incident.id(), &job->second);
    if (record != nullptr) {
      record->incident.set_alert_held_back(false);
      Store(record);
      SetPending(job->second, *record);
      ++job->second.changes;
      ++changes_;
    } else {
      history_->Save(due.incident);  // an announced incident has a number of its own for good
    }
    const bool is_silenced = record != nullptr ? IsSilenced(job->second, record)
                                               : silences_.Find(due.incident, WallNow()) != nullptr;
    if (is_silenced) continue;
    if (record != nullptr) {
      record->is_announced = true;
      record->said_ns = timeline_->Now();
      folds_.SetTold(record->incident, true);
    }
    alerts_->Send(due.incident, AlertEvent::kConfirmed);
    if (due.incident.has_closed_at()) alerts_->Send(due.incident, AlertEvent::kResolved);
  }
}

}  // namespace rollcall
