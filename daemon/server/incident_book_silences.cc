// SPDX-License-Identifier: Apache-2.0
// Alerts of the book's incidents that people do not want for a time.
#include "daemon/server/incident_book.h"

namespace rollcall {

absl::StatusOr<v1::Silence> IncidentBook::AddSilence(const v1::Silence& wanted, int64_t seconds,
                                                     const std::string& who,
                                                     const Tenants& tenants) {
  const absl::MutexLock lock(&mutex_);
  const absl::StatusOr<v1::Silence> silence =
      silences_.Add(wanted, seconds, who, tenants, WallNow());
  if (!silence.ok()) return silence;
  history_->SaveSilence(*silence);
  for (auto& [key, job] : jobs_) {
    if (!job.life.live()) continue;
    Record* record = FindRecord(job.life.live()->id, &job);
    if (record == nullptr || !record->incident.has_confirmed_at()) continue;
    if (!Fits(*silence, record->incident)) continue;
    // Nothing of an announced incident is held back yet, so the silence does not count it.
    if (record->is_announced) *record->incident.mutable_silenced() = *silence;
    if (!IsSilenced(job, record)) continue;
    record->unsaved = true;
    SetPending(job, *record);
    ++job.changes;
  }
  ++changes_;
  return silence;
}

absl::StatusOr<v1::Silence> IncidentBook::EndSilence(const std::string& id,
                                                     const Tenants& tenants) {
  const absl::MutexLock lock(&mutex_);
  const absl::StatusOr<v1::Silence> silence = silences_.End(id, tenants, WallNow());
  if (!silence.ok()) return silence;
  history_->SaveSilence(*silence);
  ++changes_;
  return silence;
}

std::vector<v1::Silence> IncidentBook::ListSilences(const Tenants& tenants) const {
  const absl::MutexLock lock(&mutex_);
  return silences_.List(tenants, WallNow());
}

// Sets whether a silence holds back the alerts of the incident, and counts it there once.
bool IncidentBook::IsSilenced(const JobIncidents& job, Record* record) {
  v1::Silence* silence = silences_.Find(record->incident, WallNow());
  if (silence == nullptr) {
    record->incident.clear_silenced();
    return false;
  }
  // An earlier daemon may have counted it.
  const bool is_counted = record->incident.silenced().id() == silence->id();
  if (silenced_.emplace(job.key, record->incident.id()).second && !is_counted) {
    silence->set_incidents(silence->incidents() + 1);
    history_->SaveSilence(*silence);
    ++alerts_silenced_;
  }
  *record->incident.mutable_silenced() = *silence;
  return true;
}

// Sends the alerts of incidents that last longer than their silence. The sender ignores the alert of
// an incident that it has announced before.
void IncidentBook::SendUnsilenced() {
  const absl::MutexLock lock(&mutex_);
  for (auto at = silenced_.begin(); at != silenced_.end();) {
    const auto known = jobs_.find(at->first);
    JobIncidents* job = known == jobs_.end() ? nullptr : &known->second;
    const bool is_live = job != nullptr && job->life.live() && job->life.live()->id == at->second;
    Record* record = is_live ? FindRecord(at->second, job) : nullptr;
    if (record != nullptr && IsSilenced(*job, record)) {
      ++at;
      continue;
    }
    at = silenced_.erase(at);
    if (record == nullptr) continue;
    record->unsaved = true;
    SetPending(*job, *record);
    ++job->changes;
    ++changes_;
    if (!record->is_announced && !MayAlert(*job, record, timeline_->Now())) continue;
    record->is_announced = true;
    alerts_->Send(record->incident, AlertEvent::kConfirmed);
    alerts_->Send(record->incident, AlertEvent::kUpdated);
  }
}

int64_t IncidentBook::WallNow() const { return timeline_->ToWallTime(timeline_->Now()); }

}  // namespace rollcall
