// SPDX-License-Identifier: Apache-2.0
// What people add to the incidents of the book, and of the history.
#include <spdlog/spdlog.h>

#include "base/mutex.h"
#include "daemon/history/incident_list.h"
#include "daemon/incidents/incident_book.h"

namespace rollcall {
namespace {

constexpr int64_t kSaveNs = 2'000'000'000;

}  // namespace

absl::Status IncidentBook::Change(const std::string& id,
                                  const std::function<absl::Status(v1::Incident*)>& change) {
  // The history takes a whole incident: a change must not begin with what another one replaces.
  const MutexLock one_at_a_time(changing_);
  {
    const MutexLock lock(mutex_);
    for (auto& [key, job] : jobs_) {
      Record* record = FindRecord(id, &job);
      if (record == nullptr) continue;
      const std::string taken_by = record->incident.acknowledged().who();
      const absl::Status status = change(&record->incident);
      if (!status.ok()) return status;
      const bool is_taken = record->incident.acknowledged().who() != taken_by;
      if (is_taken) ShareAcknowledgement(record->incident);
      record->dirty = true;
      Store(record);  // a person's words are kept, whatever the quota says
      SetPending(job, *record);
      ++job.changes;
      ++changes_;
      Say(*record, is_taken ? AlertEvent::kAcknowledged : AlertEvent::kAnnotated);
      return status;
    }
  }
  absl::StatusOr<v1::Incident> kept = history_->Get(id);
  if (absl::IsNotFound(kept.status())) return NoSuchIncident(id);
  if (!kept.ok()) return kept.status();
  const absl::Status status = change(&*kept);
  if (!status.ok()) return status;
  history_->Save(*std::move(kept));
  const MutexLock lock(mutex_);
  ++changes_;
  return status;
}

// Of the first hang of a row with the newest one, which lasts: people may look at either.
void IncidentBook::ShareAcknowledgement(const v1::Incident& first) {
  if (first.repeat().newest().empty()) return;
  Record* newest = FindInJob(ReadJobKey(first), first.repeat().newest());
  if (newest == nullptr || newest->incident.has_closed_at()) return;
  newest->incident.clear_acknowledged();
  if (first.has_acknowledged()) *newest->incident.mutable_acknowledged() = first.acknowledged();
}

void IncidentBook::AwaitSaved() {
  if (history_->AwaitSaved(kSaveNs)) return;
  spdlog::warn("answered an operator before the history saved the action; still trying to save it");
}

}  // namespace rollcall
