// SPDX-License-Identifier: Apache-2.0
#include "daemon/incidents/job_takeover.h"

#include <optional>
#include <string>
#include <utility>

#include "base/durations.h"
#include "daemon/history/history_write.h"
#include "daemon/incidents/stored_incident.h"
#include "proto/timestamps.h"

namespace rollcall {

// Later than at the start if the history was unusable then.
void JobTakeover::Restore() {
  std::optional<Continuation> stored = writers_->history->ConsumeContinuation();
  if (!stored.has_value()) return;
  writers_->alerts->Restore(stored->alerts);
  const MutexLock lock(store_->mutex);
  store_->silenced.Restore(stored->silences);
  store_->returning.SetKnown();
  attempts_ = std::move(stored->attempts);
  for (auto& [key, job] : store_->table.jobs()) {
    job.life.RaiseCount(writers_->history->LastNumber(key));
  }
  RestoreJobs(&*stored, store_->returning.started_ns());
}

void JobTakeover::SaveAgain() {
  if (!writers_->history->ConsumeRecreated()) return;
  writers_->alerts->SaveAgain();
  const MutexLock lock(store_->mutex);
  attempts_to_save_.all = true;
  store_->silenced.SaveAgain();
  for (auto& [key, job] : store_->table.jobs()) {
    job.hosts.SetUnrecorded();
    for (IncidentRecord& record : job.records) {
      record.unsaved = true;
      store_->table.SetPending(job, record);
    }
  }
}

void JobTakeover::Adopt(const JobId& job, Continuation from_earlier) {
  writers_->history->RaiseNumber(job, from_earlier.last_number);
  const MutexLock lock(store_->mutex);
  const bool is_judged = ownership_ == nullptr || ownership_->Owns(job);
  const bool is_unproven = ownership_ != nullptr && ownership_->IsUnproven(job);
  // A diagnosis that was under way when the job went may have left something here, too.
  if (!is_judged || (is_unproven && !from_earlier.open.empty())) {
    Drop(job);
    attempts_to_save_.jobs.insert(job);  // these were held, too
  }
  adopted_.insert(job);
  writers_->alerts->Restore(from_earlier.alerts);
  for (JobIncidents* const attempt : store_->table.AttemptsOf(job)) {
    attempt->life.RaiseCount(from_earlier.last_number);
  }
  RestoreJobs(&from_earlier, timeline_->Now());
}

void JobTakeover::AvoidNumbersOfOthers(const JobId& job) {
  const auto number = static_cast<int>(timeline_->WallNow() / kSecond);
  writers_->history->RaiseNumber(job, number);
  const MutexLock lock(store_->mutex);
  for (JobIncidents* const attempt : store_->table.AttemptsOf(job)) {
    attempt->life.RaiseCount(number);
  }
}

void JobTakeover::StoreProven(const JobId& job) {
  {
    const MutexLock lock(store_->mutex);
    adopted_.erase(job);
  }
  writers_->history->ReleaseHeld(job);
}

void JobTakeover::Release(const JobId& job) {
  const MutexLock lock(store_->mutex);
  Drop(job);
}

void JobTakeover::ReleaseUnowned(const JobId& job) {
  const MutexLock lock(store_->mutex);
  if (adopted_.count(job) == 0 && !ownership_->Owns(job)) Drop(job);
}

void JobTakeover::Drop(const JobId& job) {
  for (const JobIncidents* const attempt : store_->table.AttemptsOf(job)) {
    const JobKey key = attempt->key;
    store_->table.Erase(key);
  }
  store_->rows.Drop(job);
  writers_->alerts->DropJob(job);
  writers_->history->DropHeld(job);
}

// `restored_ns`: from when on the jobs have time to come back.
void JobTakeover::RestoreJobs(Continuation* stored, int64_t restored_ns) {
  for (auto& [key, hosts] : stored->hosts) {
    JobIncidents* job = store_->table.Open(key, *writers_->history);
    job->restored_ns = restored_ns;
    job->hosts.Restore(hosts);
    job->is_awaited |= !job->has_returned;
  }
  std::set<std::string> lasting;  // hangs that are over, and whose alerts go on
  for (const v1::Incident& incident : stored->open) lasting.insert(incident.repeat().thread());
  for (const v1::Incident& incident : stored->closed) {
    // The earlier daemon may have ended before it saved this alert.
    if (lasting.count(incident.id()) == 0) writers_->alerts->Send(incident, AlertEvent::kResolved);
    RestoreClosed(incident);
  }
  for (const v1::Incident& incident : stored->open) {
    store_->table.Open(ReadJobKey(incident), *writers_->history)->restored_ns = restored_ns;
  }
  // The newest first: only one incident of a job is live.
  for (auto at = stored->open.rbegin(); at != stored->open.rend(); ++at) {
    RestoreOpen(std::move(*at));
  }
}

void JobTakeover::RestoreClosed(const v1::Incident& incident) {
  JobIncidents* const job = store_->table.Find(ReadJobKey(incident));
  if (job == nullptr) return;
  job->life.RestoreClosed(FromStored(incident));
  v1::Incident& last = job->last_closed;
  if (NsOf(last.opened_at()) < NsOf(incident.opened_at())) last = incident;
  job->is_end_judged |=
      !incident.abandoned() && incident.state() == IncidentStateName(IncidentState::kEnded);
}

void JobTakeover::RestoreOpen(v1::Incident incident) {
  JobIncidents* job = store_->table.Open(ReadJobKey(incident), *writers_->history);
  if (FindRecord(incident.id(), job) != nullptr) return;
  if (job->life.live() || incident.verdicts().empty()) {
    incident.set_state(IncidentStateName(IncidentState::kEnded));
    *incident.mutable_closed_at() = ToTimestamp(timeline_->WallNow());
    writers_->alerts->Send(incident, AlertEvent::kResolved);
    writers_->history->Save(std::move(incident));
    return;
  }
  job->life.Restore(FromStored(incident));
  job->may_lack_alert = incident.has_confirmed_at();
  job->is_awaited |= !job->has_returned;
  IncidentRecord& record = job->records.emplace_back();
  record.folder = incident.report_path();
  record.dirty = record.folder.empty();
  record.incident = std::move(incident);
  store_->table.SetPending(*job, record);
  ++job->changes;
  store_->table.CountChange();
}

std::map<JobKey, AttemptFacts> JobTakeover::ConsumeAttempts() {
  const MutexLock lock(store_->mutex);
  return std::exchange(attempts_, {});
}

AttemptsToSave JobTakeover::ConsumeAttemptsToSave() {
  const MutexLock lock(store_->mutex);
  return std::exchange(attempts_to_save_, {});
}

void JobTakeover::SaveAttempts(const AttemptChanges& changes) {
  {
    const MutexLock lock(store_->mutex);
    store_->rows.SetRestartable(changes);
  }
  for (const JobKey& key : changes.forgotten) writers_->SaveForLater(WriteOfForgottenAttempt(key));
  if (changes.changed.empty()) return;
  writers_->SaveForLater(WriteOfAttempts(changes.changed, timeline_->WallNow()));
}

}  // namespace rollcall
