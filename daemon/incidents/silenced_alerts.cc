// SPDX-License-Identifier: Apache-2.0
#include "daemon/incidents/silenced_alerts.h"

#include "daemon/history/history_write.h"

namespace rollcall {

SilencedAlerts::SilencedAlerts(const IncidentBookOptions& options, const IncidentWriters* writers,
                               Timeline* timeline, IncidentTable* table)
    : has_receivers_(!options.alerts.targets.empty()),
      writers_(writers),
      timeline_(timeline),
      table_(table),
      silences_(options.history.database.url.empty() ? "" : options.history.database.daemon) {}

absl::StatusOr<v1::Silence> SilencedAlerts::Add(const v1::Silence& wanted, int64_t seconds,
                                                const std::string& who, const Tenants& tenants) {
  absl::StatusOr<v1::Silence> silence =
      silences_.Add(wanted, seconds, who, tenants, timeline_->WallNow());
  if (!silence.ok()) return silence;
  writers_->history->Apply(WriteOfSilence(*silence));
  HoldBack(*silence);
  table_->CountChange();
  return silence;
}

// The alerts of the confirmed incidents that a new silence fits.
void SilencedAlerts::HoldBack(const v1::Silence& silence) {
  for (auto& [key, job] : table_->jobs()) {
    IncidentRecord* record = FindLive(&job);
    if (record == nullptr || !record->incident.has_confirmed_at()) continue;
    if (!rollcall::Fits(silence, record->incident)) continue;
    if (Check(job, record)) table_->SetChanged(&job, record);
  }
}

absl::StatusOr<v1::Silence> SilencedAlerts::End(const std::string& id, const Tenants& tenants) {
  absl::StatusOr<v1::Silence> silence = silences_.End(id, tenants, timeline_->WallNow());
  if (!silence.ok()) return silence;
  writers_->history->Apply(WriteOfSilence(*silence));
  table_->CountChange();
  return silence;
}

std::vector<v1::Silence> SilencedAlerts::List(const Tenants& tenants) const {
  return silences_.List(tenants, timeline_->WallNow());
}

void SilencedAlerts::Merge(const std::vector<v1::Silence>& stored) {
  const Silences::Merged merged = silences_.Merge(stored, timeline_->WallNow());
  for (const v1::Silence& ended : merged.lost_ends) writers_->history->Apply(WriteOfSilence(ended));
  for (const v1::Silence& silence : merged.begun) HoldBack(silence);
  if (merged.has_changed) table_->CountChange();
}

void SilencedAlerts::SaveAgain() const {
  for (const v1::Silence& silence : List(Tenants::All())) {
    writers_->history->Apply(WriteOfSilence(silence));
  }
}

bool SilencedAlerts::Check(const JobIncidents& job, IncidentRecord* record) {
  const std::vector<v1::Silence*> fitting =
      silences_.FindAll(record->incident, timeline_->WallNow());
  if (fitting.empty()) {
    record->incident.clear_silenced();
    return false;
  }
  const auto [known, is_new] =
      held_.try_emplace({job.key, record->incident.id()}, std::set<std::string>());
  // An earlier daemon has counted a restored one.
  const bool is_counted = is_new && record->incident.has_silenced();
  if (is_new && !is_counted && !record->is_announced) ++alerts_;
  for (v1::Silence* silence : fitting) {
    if (!known->second.insert(silence->id()).second || is_counted) continue;
    silence->set_incidents(silence->incidents() + 1);
    const bool was_told = record->is_announced && has_receivers_;
    if (was_told) silence->set_alerted_incidents(silence->alerted_incidents() + 1);
    writers_->history->Apply(WriteOfSilence(*silence));
  }
  *record->incident.mutable_silenced() = *fitting.back();
  return true;
}

bool SilencedAlerts::Fits(const v1::Incident& incident) {
  return silences_.Find(incident, timeline_->WallNow()) != nullptr;
}

IncidentTable::Ids SilencedAlerts::TakeUnsilenced() {
  IncidentTable::Ids unsilenced;
  for (auto at = held_.begin(); at != held_.end();) {
    const auto& [key, id] = at->first;
    JobIncidents* job = table_->Find(key);
    IncidentRecord* record = job == nullptr ? nullptr : FindLive(job);
    const bool is_live = record != nullptr && record->incident.id() == id;
    if (is_live && Check(*job, record)) {
      ++at;
      continue;
    }
    if (is_live) unsilenced.insert(at->first);
    at = held_.erase(at);
  }
  return unsilenced;
}

size_t SilencedAlerts::CountLasting() const { return silences_.Count(timeline_->WallNow()); }

}  // namespace rollcall
