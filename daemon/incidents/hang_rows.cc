// SPDX-License-Identifier: Apache-2.0
#include "daemon/incidents/hang_rows.h"

#include <utility>

#include "daemon/history/history.h"
#include "proto/timestamps.h"

namespace rollcall {

// The person who takes care of the first takes care of all.
void HangRows::Join(const JobIncidents& job, int64_t now_ns, IncidentRecord* record) {
  const AlertFolds::Place place = folds_.Add(record->incident, now_ns);
  if (place.first_words.empty()) return;  // the first, or known from an earlier daemon
  *record->incident.mutable_repeat() = place.repeat;
  IncidentRecord* first = FindToChange(job.key, place.repeat.first());
  if (first == nullptr || first == record) return;
  v1::Repeat* repeat = first->incident.mutable_repeat();
  repeat->set_first(first->incident.id());
  repeat->set_newest(record->incident.id());
  repeat->set_number(place.repeat.number());
  repeat->set_sentence(place.first_words);
  if (first->incident.has_acknowledged() && !record->incident.has_acknowledged()) {
    *record->incident.mutable_acknowledged() = first->incident.acknowledged();
  }
}

// Finds an incident of any attempt of the job. nullptr if it is no longer in memory.
IncidentRecord* HangRows::FindToChange(const JobId& job, const std::string& incident) {
  for (JobIncidents* const attempt : table_->AttemptsOf(job)) {
    IncidentRecord* record = FindRecord(incident, attempt);
    if (record == nullptr) continue;
    table_->SetChanged(attempt, record);
    return record;
  }
  return nullptr;
}

// A job that goes on may hang again at once.
bool HangRows::EndsNow(const JobIncidents& job, const v1::Incident& hang, bool is_last,
                       int64_t now_ns) {
  const bool has_later_attempt = table_->AttemptsOf(job.key).back() != &job;
  const bool may_restart = has_later_attempt || restartable_.count(job.key) > 0;
  return folds_.EndsNow(hang, {is_last, may_restart}, now_ns);
}

// An alert that reports "resolved" names hangs confirmed later.
std::vector<v1::Incident> HangRows::TakeEnds(int64_t now_ns) {
  std::vector<v1::Incident> ends = folds_.TakeEnds(now_ns);
  for (v1::Incident& end : ends) {
    const std::string later = LaterHang(end);
    if (!later.empty()) end.mutable_repeat()->set_later(later);
  }
  return ends;
}

// Returns the id of a hang of the job that was confirmed after this one began, or "".
std::string HangRows::LaterHang(const v1::Incident& incident) {
  const std::string& newest =
      incident.repeat().newest().empty() ? incident.id() : incident.repeat().newest();
  for (const JobIncidents* const attempt : table_->AttemptsOf(ReadJobKey(incident))) {
    for (auto record = attempt->records.rbegin(); record != attempt->records.rend(); ++record) {
      const v1::Incident& other = record->incident;
      const bool is_later = other.has_confirmed_at() && other.id() != newest &&
                            NsOf(other.confirmed_at()) > NsOf(incident.closed_at());
      if (is_later) return other.id();
    }
  }
  return "";
}

// Attempts are judged in no order: a hang may be found when the attempt that went on has no
// communicator any more.
void HangRows::GoOn(const JobId& job, int64_t now_ns) {
  std::vector<JobIncidents*> earlier;
  for (JobIncidents* const attempt : table_->AttemptsOf(job)) {
    const JobKey& key = attempt->key;
    if (attempt->has_made_calls && key.attempt > 0) {
      for (JobIncidents* const gone : std::exchange(earlier, {})) GoOnIn(key.attempt, gone);
      folds_.GoOn(key, now_ns);
    }
    earlier.push_back(attempt);
  }
}

void HangRows::GoOnIn(int32_t attempt, JobIncidents* job) {
  if (job->records.empty()) return;
  IncidentRecord& last = job->records.back();
  const bool has_ended = last.incident.has_confirmed_at() && last.incident.state() == "ended";
  if (!has_ended || last.incident.has_went_on_in()) return;
  last.incident.set_went_on_in(attempt);
  last.dirty = true;
  table_->SetChanged(job, &last);
}

void HangRows::ShareAcknowledgement(const v1::Incident& first) {
  if (first.repeat().newest().empty()) return;
  IncidentRecord* newest = FindToChange(ReadJobKey(first), first.repeat().newest());
  if (newest == nullptr || newest->incident.has_closed_at()) return;
  newest->incident.clear_acknowledged();
  if (first.has_acknowledged()) *newest->incident.mutable_acknowledged() = first.acknowledged();
}

void HangRows::SetRestartable(const AttemptChanges& changes) {
  for (const auto& [key, facts] : changes.changed) {
    if (!facts.restarts.empty()) restartable_.insert(key);
  }
  for (const JobKey& key : changes.forgotten) restartable_.erase(key);
}

}  // namespace rollcall
