// SPDX-License-Identifier: Apache-2.0
// When the alerts of the book's incidents go out, and under which name. alert_hold.h and
// alert_folds.h decide.
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "daemon/incidents/incident_book.h"
#include "daemon/incidents/incident_brief.h"
#include "proto/timestamps.h"

namespace rollcall {
void IncidentBook::Alert(const IncidentEvent& event, JobIncidents* job, Record* record) {
  if (!record->incident.has_confirmed_at()) return;
  const bool is_over = event.incident.closed_ns != 0;
  if (event.kind == IncidentEvent::Kind::kConfirmed) record->is_alert_due = true;
  if (record->is_alert_due) {
    if (HoldsFirst(*record, timeline_->Now())) return;
    SendFirst(job, record);
  } else if (event.kind == IncidentEvent::Kind::kUpdated && !IsSilenced(*job, record)) {
    Say(*record, AlertEvent::kUpdated);
  }
  if (is_over) SayEnd(*job, *record);
}

bool IncidentBook::HoldsFirst(const Record& record, int64_t now_ns) const {
  return HoldsAlert({record.confirmed_ns, record.awaited.OwesListed(), record.has_new_stacks,
                     record.incident.has_closed_at(), stopping_},
                    now_ns, options_.alert_waits_ns);
}

// The first alert, with what the stacks have shown meanwhile.
void IncidentBook::SendFirst(JobIncidents* job, Record* record) {
  record->is_alert_due = false;
  RefreshVerdicts(*job, record->incident, &record->incident);
  Announce(job, record);
  record->unsaved = true;
  SetPending(*job, *record);
  ++job->changes;
  ++changes_;
}

// A hang that joins a row whose alerts go on is an update of these, and takes no place of the
// quota.
void IncidentBook::Announce(JobIncidents* job, Record* record) {
  if (IsSilenced(*job, record)) return;
  JoinRow(*job, record);
  const bool goes_on = !record->incident.repeat().thread().empty();
  if (!goes_on && !MayAlert(*job, record, timeline_->Now())) {
    return folds_.SetTold(record->incident, false);
  }
  record->is_announced = true;
  record->said_ns = timeline_->Now();
  Say(*record, goes_on ? AlertEvent::kUpdated : AlertEvent::kConfirmed);
}

// Tells the first hang of the row of this one. Whoever takes care of the first takes care of all.
void IncidentBook::JoinRow(const JobIncidents& job, Record* record) {
  const AlertFolds::Place place = folds_.Add(record->incident, timeline_->Now());
  if (place.first_words.empty()) return;  // the first, or known from an earlier daemon
  *record->incident.mutable_repeat() = place.repeat;
  Record* first = FindInJob(job.key, place.repeat.first());
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

// Of any attempt of the job; it will be saved. nullptr: it is no longer in memory.
IncidentBook::Record* IncidentBook::FindInJob(const JobId& job, const std::string& incident) {
  for (auto at = jobs_.lower_bound(JobKey(job, INT32_MIN));
       at != jobs_.end() && static_cast<const JobId&>(at->first) == job; ++at) {
    Record* record = FindRecord(incident, &at->second);
    if (record == nullptr) continue;
    record->unsaved = true;
    SetPending(at->second, *record);
    ++at->second.changes;
    return record;
  }
  return nullptr;
}

// Under the name of the row whose alerts go on.
void IncidentBook::Say(const Record& record, AlertEvent event) {
  const v1::Repeat& repeat = record.incident.repeat();
  if (repeat.thread().empty()) return alerts_->Send(record.incident, event);
  v1::Incident in_row = WithoutStacks(record.incident);
  in_row.mutable_repeat()->set_newest(record.incident.id());
  in_row.set_id(repeat.thread());
  *in_row.mutable_opened_at() = repeat.thread_opened_at();
  alerts_->Send(in_row, event);
}

// A job that goes on may hang again at once.
void IncidentBook::SayEnd(const JobIncidents& job, const Record& record) {
  const bool may_restart = restartable_.count(job.key) > 0 || HasLaterAttempt(job.key);
  const AlertFolds::Ending ending = {quota_.IsFull(job.key), may_restart};
  if (folds_.EndsNow(record.incident, ending, timeline_->Now())) {
    Say(record, AlertEvent::kResolved);
  }
}

// An attempt that makes calls is the end of the hangs with which earlier attempts of the job ended.
// Attempts are judged in no order: a hang may be found when the attempt that went on has no
// communicator any more.
void IncidentBook::CloseEarlierAttempts(const JobId& id) {
  std::vector<JobIncidents*> earlier;
  for (auto at = jobs_.lower_bound(JobKey(id, INT32_MIN));
       at != jobs_.end() && static_cast<const JobId&>(at->first) == id; ++at) {
    if (at->second.has_made_calls && at->first.attempt > 0) {
      for (JobIncidents* const job : std::exchange(earlier, {})) GoOnIn(at->first.attempt, job);
      folds_.GoOn(at->first, timeline_->Now());
    }
    earlier.push_back(&at->second);
  }
}

void IncidentBook::GoOnIn(int32_t attempt, JobIncidents* job) {
  if (job->records.empty()) return;
  Record& last = job->records.back();
  const bool has_ended = last.incident.has_confirmed_at() && last.incident.state() == "ended";
  if (!has_ended || last.incident.has_went_on_in()) return;
  last.incident.set_went_on_in(attempt);
  last.dirty = last.unsaved = true;
  SetPending(*job, last);
  ++job->changes;
  ++changes_;
}

bool IncidentBook::HasLaterAttempt(const JobKey& key) const {
  const auto next = jobs_.upper_bound(key);
  return next != jobs_.end() && static_cast<const JobId&>(next->first) == key;
}

// What a message says may have changed without an event: lines come with stacks, and advice with
// what hosts show.
void IncidentBook::SayWhatIsNew(bool has_new_stacks, JobIncidents* job) {
  const std::optional<Incident>& live = job->life.live();
  if (!live || live->is_stored || live->confirmed_ns == 0) return;
  Record* record = FindRecord(live->id, job);
  if (record == nullptr) return;
  if (record->is_alert_due) {
    if (!HoldsFirst(*record, timeline_->Now())) SendFirst(job, record);
    return;
  }
  const v1::Verdict& known = record->incident.verdicts(0);
  const std::vector<Advice>& advice = live->verdicts.front().advice;
  const std::string said = known.advice().empty() ? "" : known.advice(0).id();
  // A restarted daemon knows less than its alert says, until it has stacks.
  const bool is_restored = record->confirmed_ns == 0;
  const bool is_advised_anew = !is_restored && said != (advice.empty() ? "" : advice.front().id);
  if (!has_new_stacks && !is_advised_anew) return;
  RefreshVerdicts(*job, record->incident, &record->incident);
  record->unsaved = true;
  SetPending(*job, *record);
  if (record->is_announced && !IsSilenced(*job, record)) Say(*record, AlertEvent::kUpdated);
}

// Those that have waited long enough, or all.
void IncidentBook::SendDueFirst(bool all) {
  const MutexLock lock(mutex_);
  for (auto& [key, job] : jobs_) {
    if (!job.life.live()) continue;
    Record* record = FindRecord(job.life.live()->id, &job);
    if (record == nullptr || !record->is_alert_due) continue;
    if (all || !HoldsFirst(*record, timeline_->Now())) SendFirst(&job, record);
  }
}

// Returns the id of a hang of the job that was confirmed after this one began, or "".
std::string IncidentBook::LaterHang(const v1::Incident& incident) const {
  const JobId job = ReadJobKey(incident);
  const std::string& newest =
      incident.repeat().newest().empty() ? incident.id() : incident.repeat().newest();
  for (auto at = jobs_.lower_bound(JobKey(job, INT32_MIN));
       at != jobs_.end() && static_cast<const JobId&>(at->first) == job; ++at) {
    for (auto record = at->second.records.rbegin(); record != at->second.records.rend(); ++record) {
      const v1::Incident& other = record->incident;
      const bool is_later = other.has_confirmed_at() && other.id() != newest &&
                            NsOf(other.confirmed_at()) > NsOf(incident.closed_at());
      if (is_later) return other.id();
    }
  }
  return "";
}

// "Resolved" is no last word after which hangs were confirmed.
void IncidentBook::SendDueEnds(int64_t until_ns) {
  const MutexLock lock(mutex_);
  for (v1::Incident& end : folds_.TakeEnds(until_ns)) {
    const std::string later = LaterHang(end);
    if (!later.empty()) end.mutable_repeat()->set_later(later);
    alerts_->Send(end, AlertEvent::kResolved);
  }
}

// Of hangs that last and that nobody has acknowledged.
void IncidentBook::SendReminders() {
  if (options_.remind_every_ns == 0) return;
  const MutexLock lock(mutex_);
  const int64_t now_ns = timeline_->Now();
  for (auto& [key, job] : jobs_) {
    if (!job.life.live() || job.life.live()->is_stored) continue;
    Record* record = FindRecord(job.life.live()->id, &job);
    if (record == nullptr) continue;
    const v1::Incident& incident = record->incident;
    const Reminder known = {record->said_ns, record->is_announced, incident.has_acknowledged(),
                            incident.has_silenced()};
    if (!IsReminderDue(known, now_ns, options_.remind_every_ns)) continue;
    record->said_ns = now_ns;
    RefreshVerdicts(job, incident, &record->incident);
    Say(*record, AlertEvent::kReminder);
  }
}

// For the first diagnosis that finds the restored incident again. The sender ignores the alert if
// it was saved.
void IncidentBook::SendLackingAlert(const std::vector<Verdict>& verdicts, JobIncidents* job) {
  const bool is_live = job->life.live().has_value();
  if (is_live && verdicts.empty()) return;
  job->may_lack_alert = false;
  Record* record = is_live ? FindRecord(job->life.live()->id, job) : nullptr;
  if (record != nullptr) Announce(job, record);
}

}  // namespace rollcall
