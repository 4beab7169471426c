// SPDX-License-Identifier: Apache-2.0
#include "daemon/incidents/operator_actions.h"

#include <spdlog/spdlog.h>

#include <utility>

#include "daemon/history/incident_list.h"

namespace rollcall {
namespace {

constexpr int64_t kSaveNs = 2'000'000'000;

}  // namespace

absl::Status OperatorActions::Change(const std::string& id,
                                     const std::function<absl::Status(v1::Incident*)>& change) {
  // The history takes a whole incident: a change must not begin with what another one replaces.
  const MutexLock one_at_a_time(changing_);
  absl::Status status;
  if (ChangeInMemory(id, change, &status)) return status;
  absl::StatusOr<v1::Incident> kept = writers_->history->Get(id);
  if (absl::IsNotFound(kept.status())) return NoSuchIncident(id);
  if (!kept.ok()) return kept.status();
  status = change(&*kept);
  if (!status.ok()) return status;
  writers_->history->Save(*std::move(kept));
  const MutexLock lock(store_->mutex);
  store_->table.CountChange();
  return status;
}

// False if the incident is not in memory.
bool OperatorActions::ChangeInMemory(const std::string& id,
                                     const std::function<absl::Status(v1::Incident*)>& change,
                                     absl::Status* status) {
  const MutexLock lock(store_->mutex);
  for (auto& [key, job] : store_->table.jobs()) {
    IncidentRecord* record = FindRecord(id, &job);
    if (record == nullptr) continue;
    const std::string taken_by = record->incident.acknowledged().who();
    *status = change(&record->incident);
    if (!status->ok()) return true;
    const bool is_taken = record->incident.acknowledged().who() != taken_by;
    if (is_taken) store_->rows.ShareAcknowledgement(record->incident);
    record->dirty = true;
    store_->table.SetChanged(&job, record);
    store_->publisher.SaveAnyway(record);  // a person's words are kept, whatever the quota
    store_->alerts.Say(*record, is_taken ? AlertEvent::kAcknowledged : AlertEvent::kAnnotated);
    return true;
  }
  return false;
}

absl::StatusOr<v1::Silence> OperatorActions::AddSilence(const v1::Silence& wanted, int64_t seconds,
                                                        const std::string& who,
                                                        const Tenants& tenants) {
  const MutexLock lock(store_->mutex);
  return store_->silenced.Add(wanted, seconds, who, tenants);
}

absl::StatusOr<v1::Silence> OperatorActions::EndSilence(const std::string& id,
                                                        const Tenants& tenants) {
  const MutexLock lock(store_->mutex);
  return store_->silenced.End(id, tenants);
}

void OperatorActions::RefreshSilences() {
  const auto stored = writers_->history->Ask(v1::ListSilencesRequest());
  if (!stored.ok()) return;  // the keeper says what is wrong
  const MutexLock lock(store_->mutex);
  store_->silenced.Merge({stored->silences().begin(), stored->silences().end()});
}

void OperatorActions::AwaitSaved() {
  if (writers_->history->AwaitSaved(kSaveNs)) return;
  spdlog::warn("answered an operator before the history saved the action; still trying to save it");
}

}  // namespace rollcall
