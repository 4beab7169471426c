// SPDX-License-Identifier: Apache-2.0
// Alerts of the book's incidents that people do not want for a time.
#include "base/mutex.h"
#include "daemon/history/history_write.h"
#include "daemon/incidents/incident_book.h"

namespace rollcall {

absl::StatusOr<v1::Silence> IncidentBook::AddSilence(const v1::Silence& wanted, int64_t seconds,
                                                     const std::string& who,
                                                     const Tenants& tenants) {
  const MutexLock lock(mutex_);
  const absl::StatusOr<v1::Silence> silence =
      silences_.Add(wanted, seconds, who, tenants, WallNow());
  if (!silence.ok()) return silence;
  history_->Apply(WriteOfSilence(*silence));
  HoldBack(*silence);
  ++changes_;
  return silence;
}

// The alerts of the confirmed incidents that a new silence fits.
void IncidentBook::HoldBack(const v1::Silence& silence) {
  for (auto& [key, job] : jobs_) {
    if (!job.life.live()) continue;
    Record* record = FindRecord(job.life.live()->id, &job);
    if (record == nullptr || !record->incident.has_confirmed_at()) continue;
    if (!Fits(silence, record->incident)) continue;
    if (!IsSilenced(job, record)) continue;
    record->unsaved = true;
    SetPending(job, *record);
    ++job.changes;
  }
}

void IncidentBook::RefreshSilences() {
  const absl::StatusOr<std::vector<v1::Silence>> stored = history_->ListSilences();
  if (!stored.ok()) return;  // the keeper says what is wrong
  const MutexLock lock(mutex_);
  const Silences::Merged merged = silences_.Merge(*stored, WallNow());
  for (const v1::Silence& ended : merged.lost_ends) history_->Apply(WriteOfSilence(ended));
  for (const v1::Silence& silence : merged.begun) HoldBack(silence);
  if (merged.has_changed) ++changes_;
}

absl::StatusOr<v1::Silence> IncidentBook::EndSilence(const std::string& id,
                                                     const Tenants& tenants) {
  const MutexLock lock(mutex_);
  const absl::StatusOr<v1::Silence> silence = silences_.End(id, tenants, WallNow());
  if (!silence.ok()) return silence;
  history_->Apply(WriteOfSilence(*silence));
  ++changes_;
  return silence;
}

std::vector<v1::Silence> IncidentBook::ListSilences(const Tenants& tenants) const {
  const MutexLock lock(mutex_);
  return silences_.List(tenants, WallNow());
}

// Sets whether silences hold back the alerts of the incident, and counts it once on each that does.
bool IncidentBook::IsSilenced(const JobIncidents& job, Record* record) {
  const std::vector<v1::Silence*> fitting = silences_.FindAll(record->incident, WallNow());
  if (fitting.empty()) {
    record->incident.clear_silenced();
    return false;
  }
  const auto [known, is_new] =
      silenced_.try_emplace({job.key, record->incident.id()}, std::set<std::string>());
  // An earlier daemon has counted a restored one.
  const bool is_counted = is_new && record->incident.has_silenced();
  if (is_new && !is_counted && !record->is_announced) ++alerts_silenced_;
  for (v1::Silence* silence : fitting) {
    if (!known->second.insert(silence->id()).second || is_counted) continue;
    silence->set_incidents(silence->incidents() + 1);
    const bool was_told = record->is_announced && !options_.alerts.targets.empty();
    if (was_told) silence->set_alerted_incidents(silence->alerted_incidents() + 1);
    history_->Apply(WriteOfSilence(*silence));
  }
  *record->incident.mutable_silenced() = *fitting.back();
  return true;
}

// Sends the alerts of incidents that last longer than their silence. The sender ignores the alert
// of an incident that it has announced before.
void IncidentBook::SendUnsilenced() {
  const MutexLock lock(mutex_);
  for (auto at = silenced_.begin(); at != silenced_.end();) {
    const auto& [key, id] = at->first;
    const auto known = jobs_.find(key);
    JobIncidents* job = known == jobs_.end() ? nullptr : &known->second;
    const bool is_live = job != nullptr && job->life.live() && job->life.live()->id == id;
    Record* record = is_live ? FindRecord(id, job) : nullptr;
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
    if (record->is_announced) {
      Say(*record, AlertEvent::kUpdated);
    } else if (!record->is_alert_due) {
      Announce(job, record);
    }
  }
}

int64_t IncidentBook::WallNow() const { return timeline_->ToWallTime(timeline_->Now()); }

}  // namespace rollcall
