// SPDX-License-Identifier: Apache-2.0
// The incident book across restarts: what it takes from the history, and what it leaves there.
#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/durations.h"
#include "base/mutex.h"
#include "daemon/history/history_write.h"
#include "daemon/incidents/incident_book.h"
#include "daemon/incidents/stored_incident.h"
#include "daemon/report/incident_proto.h"
#include "proto/timestamps.h"

namespace rollcall {
namespace {

// The start of a process is known to some hundredths of a second. A longer step makes a verdict
// less certain at most.
constexpr int64_t kClockStep = kSecond;

}  // namespace

// Later than at the start if the history was unusable then.
void IncidentBook::Restore() {
  std::optional<Continuation> stored = history_->ConsumeContinuation();
  if (!stored.has_value()) return;
  alerts_->Restore(stored->alerts);
  const MutexLock lock(mutex_);
  silences_.Restore(stored->silences);
  knows_hosts_ = true;
  attempts_ = std::move(stored->attempts);
  for (auto& [key, job] : jobs_) job.life.RaiseCount(history_->LastNumber(key));
  RestoreJobs(&*stored, started_ns_);
}

void IncidentBook::Adopt(const JobId& job, Continuation from_earlier) {
  history_->RaiseNumber(job, from_earlier.last_number);
  const MutexLock lock(mutex_);
  const bool is_judged = options_.ownership == nullptr || options_.ownership->Owns(job);
  const bool is_unproven = options_.ownership != nullptr && options_.ownership->IsUnproven(job);
  // A diagnosis that was under way when the job went may have left something here, too.
  if (!is_judged || (is_unproven && !from_earlier.open.empty())) {
    Drop(job);
    attempts_to_save_.jobs.insert(job);  // these were held, too
  }
  adopted_.insert(job);
  alerts_->Restore(from_earlier.alerts);
  for (auto at = jobs_.lower_bound(JobKey(job, INT32_MIN));
       at != jobs_.end() && static_cast<const JobId&>(at->first) == job; ++at) {
    at->second.life.RaiseCount(from_earlier.last_number);
  }
  RestoreJobs(&from_earlier, timeline_->Now());
}

void IncidentBook::StoreProven(const JobId& job) {
  {
    const MutexLock lock(mutex_);
    adopted_.erase(job);
  }
  history_->ReleaseHeld(job);
}

void IncidentBook::AvoidNumbersOfOthers(const JobId& job) {
  const auto number = static_cast<int>(WallNow() / kSecond);
  history_->RaiseNumber(job, number);
  const MutexLock lock(mutex_);
  for (auto at = jobs_.lower_bound(JobKey(job, INT32_MIN));
       at != jobs_.end() && static_cast<const JobId&>(at->first) == job; ++at) {
    at->second.life.RaiseCount(number);
  }
}

// `restored_ns`: from when on the jobs have time to come back.
void IncidentBook::RestoreJobs(Continuation* stored, int64_t restored_ns) {
  for (auto& [key, hosts] : stored->hosts) {
    JobIncidents* job = Open(key);
    job->restored_ns = restored_ns;
    job->hosts.Restore(hosts);
    if (!job->has_returned) awaited_.insert(key);
  }
  std::set<std::string> lasting;  // hangs that are over, and whose alerts go on
  for (const v1::Incident& incident : stored->open) lasting.insert(incident.repeat().thread());
  for (const v1::Incident& incident : stored->closed) {
    // The earlier daemon may have ended before it saved this alert.
    if (lasting.count(incident.id()) == 0) alerts_->Send(incident, AlertEvent::kResolved);
    const auto job = jobs_.find(ReadJobKey(incident));
    if (job == jobs_.end()) continue;
    job->second.life.RestoreClosed(FromStored(incident));
    v1::Incident& last = job->second.last_closed;
    if (NsOf(last.opened_at()) < NsOf(incident.opened_at())) last = incident;
    job->second.is_end_judged |=
        !incident.abandoned() && incident.state() == IncidentStateName(IncidentState::kEnded);
  }
  const int64_t now_ns = timeline_->Now();
  for (const v1::Incident& incident : stored->open) {
    Open(ReadJobKey(incident))->restored_ns = restored_ns;
  }
  // The newest first: only one incident of a job is live.
  for (auto at = stored->open.rbegin(); at != stored->open.rend(); ++at) {
    RestoreIncident(std::move(*at), now_ns);
  }
}

void IncidentBook::RestoreIncident(v1::Incident incident, int64_t now_ns) {
  JobIncidents* job = Open(ReadJobKey(incident));
  if (FindRecord(incident.id(), job) != nullptr) return;
  if (job->life.live() || incident.verdicts().empty()) {
    incident.set_state(IncidentStateName(IncidentState::kEnded));
    *incident.mutable_closed_at() = ToTimestamp(timeline_->ToWallTime(now_ns));
    alerts_->Send(incident, AlertEvent::kResolved);
    history_->Save(std::move(incident));
    return;
  }
  job->life.Restore(FromStored(incident));
  job->may_lack_alert = incident.has_confirmed_at();
  if (!job->has_returned) awaited_.insert(job->key);
  Record& record = job->records.emplace_back();
  record.folder = incident.report_path();
  record.dirty = record.folder.empty();
  record.incident = std::move(incident);
  SetPending(*job, record);
  ++job->changes;
  ++changes_;
}

// The restored jobs that have not come back in time.
void IncidentBook::EndAbandoned() {
  const int64_t now_ns = timeline_->Now();
  const MutexLock lock(mutex_);
  for (auto at = awaited_.begin(); at != awaited_.end();) {
    JobIncidents& job = jobs_.at(*at);
    if (now_ns - job.restored_ns < kJobReturnsWithinNs) {
      ++at;
      continue;
    }
    const bool is_done = job.is_abandoned && now_ns - job.restored_ns >= 2 * kJobReturnsWithinNs;
    if (!job.is_abandoned) {
      Abandon(&job, now_ns);
      // After the alert: a daemon that continues here looks for it only where it knows the hosts.
      history_->Apply(WriteOfForgottenHosts(*at));
      job.hosts.SetUnrecorded();
    }
    if (!is_done) {
      ++at;
      continue;
    }
    jobs_.erase(*at);
    ++changes_;
    at = awaited_.erase(at);
  }
}

// Ends the job's incident, although the job may live.
void IncidentBook::Abandon(JobIncidents* job, int64_t now_ns) {
  job->is_abandoned = true;
  job->has_returned = false;
  for (const IncidentEvent& event : job->life.End(now_ns)) Act(event, job);
}

bool IncidentBook::AwaitsHosts(const JobIncidents& job, int64_t now_ns) const {
  const int64_t since_ns = std::max(started_ns_, job.restored_ns);
  return (!knows_hosts_ || !job.hosts.missing().empty()) && now_ns - since_ns < kReturnWithinNs;
}

// What a diagnosis cannot see of its job, in words; "": it sees all. Without a history nobody knows
// which hosts a job had that began before this daemon.
std::string IncidentBook::WhatIsNotSeen(const JobState& state, const JobIncidents& job,
                                        int64_t began_ns) const {
  if (!job.hosts.missing().empty()) return MissingHostsInWords(job.hosts.missing());
  const bool has_records = knows_hosts_ && !options_.history.path.empty();
  if (has_records || began_ns >= started_ns_ - kClockStep) return "";
  const RankCount ranks = CountRanks(state);
  return ranks.unreported == 0 ? "" : UnreportedRanksInWords(ranks);
}

void IncidentBook::SaveHosts(const JobState& state, JobIncidents* job, int64_t now_ns) {
  std::vector<std::string> hosts = job->hosts.Update(state, now_ns);
  if (hosts.empty() || options_.history.path.empty()) return;
  history_->Apply(WriteOfHosts(state.key, hosts, timeline_->ToWallTime(now_ns)));
}

// A verdict that a report has already may lack hosts, too.
void IncidentBook::WeakenStored(const std::string& line, JobIncidents* job) {
  if (!job->life.live() || !job->life.live()->is_stored) return;
  Record* record = FindRecord(job->life.live()->id, job);
  if (record != nullptr) Weaken(line, &record->incident);
}

// The history, which has the numbers of earlier incidents, is not readable. The time in seconds is
// larger than all of these, and than the numbers that an earlier daemon took from the time.
void IncidentBook::AvoidUnknownNumbers(JobIncidents* job, int64_t now_ns) {
  if (knows_hosts_ || job->life.live()) return;
  job->life.RaiseCount(static_cast<int>(timeline_->ToWallTime(now_ns) / kSecond));
}

std::map<JobKey, AttemptFacts> IncidentBook::ConsumeAttempts() {
  const MutexLock lock(mutex_);
  return std::exchange(attempts_, {});
}

AttemptsToSave IncidentBook::ConsumeAttemptsToSave() {
  const MutexLock lock(mutex_);
  return std::exchange(attempts_to_save_, {});
}

void IncidentBook::SaveAttempts(const AttemptChanges& changes) {
  {
    const MutexLock lock(mutex_);
    for (const auto& [key, facts] : changes.changed) {
      if (!facts.restarts.empty()) restartable_.insert(key);
    }
    for (const JobKey& key : changes.forgotten) restartable_.erase(key);
  }
  if (options_.history.path.empty()) return;
  for (const JobKey& key : changes.forgotten) history_->Apply(WriteOfForgottenAttempt(key));
  if (changes.changed.empty()) return;
  history_->Apply(WriteOfAttempts(changes.changed, timeline_->ToWallTime(timeline_->Now())));
}

void IncidentBook::SaveAction(const ActionRow& action) {
  if (!options_.history.path.empty()) history_->Apply(WriteOfAction(action));
}

}  // namespace rollcall
