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
      const absl::Status status = change(&record->incident);
      if (!status.ok()) return status;
      record->dirty = true;
      Store(record);  // a person's words are kept, whatever the quota says
      SetPending(job, *record);
      ++job.changes;
      ++changes_;
      alerts_->Send(record->incident, AlertEvent::kAnnotated);
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

void IncidentBook::AwaitSaved() {
  if (history_->AwaitSaved(kSaveNs)) return;
  spdlog::warn("answered an operator before the history had saved what he did; it goes on trying");
}

}  // namespace rollcall
