// SPDX-License-Identifier: Apache-2.0
#include "daemon/incidents/incident_alerts.h"

#include <optional>

#include "daemon/history/history.h"
#include "daemon/incidents/alert_hold.h"
#include "daemon/incidents/incident_brief.h"

namespace rollcall {

IncidentAlerts::IncidentAlerts(const IncidentBookOptions& options, const IncidentWriters* writers,
                               Timeline* timeline, DaemonCounters* counters, Parts parts)
    : waits_ns_(options.alert_waits_ns),
      remind_every_ns_(options.remind_every_ns),
      has_receivers_(!options.alerts.targets.empty()),
      writers_(writers),
      timeline_(timeline),
      counters_(counters),
      parts_(parts) {}

void IncidentAlerts::Act(const IncidentEvent& event, JobIncidents* job, IncidentRecord* record) {
  if (!record->incident.has_confirmed_at()) return;
  if (event.kind == IncidentEvent::Kind::kConfirmed) record->is_alert_due = true;
  if (record->is_alert_due) {
    if (HoldsFirst(*record)) return;
    SendFirst(job, record);
  } else if (event.kind == IncidentEvent::Kind::kUpdated && !parts_.silenced->Check(*job, record)) {
    Say(*record, AlertEvent::kUpdated);
  }
  if (event.incident.closed_ns == 0) return;
  const bool is_last = parts_.quota->IsFull(job->key);
  if (parts_.rows->EndsNow(*job, record->incident, is_last, timeline_->Now())) {
    Say(*record, AlertEvent::kResolved);
  }
}

bool IncidentAlerts::HoldsFirst(const IncidentRecord& record) const {
  return HoldsAlert({record.confirmed_ns, record.awaited.OwesListed(), record.has_new_stacks,
                     record.incident.has_closed_at(), is_stopping_},
                    timeline_->Now(), waits_ns_);
}

// The first alert, with what the stacks have shown meanwhile.
void IncidentAlerts::SendFirst(JobIncidents* job, IncidentRecord* record) {
  record->is_alert_due = false;
  RefreshVerdicts(*job, record);
  Announce(job, record);
  parts_.table->SetChanged(job, record);
}

// A hang that joins a row whose alerts go on is an update of these, and takes no place of the
// quota.
void IncidentAlerts::Announce(JobIncidents* job, IncidentRecord* record) {
  if (parts_.silenced->Check(*job, record)) return;
  parts_.rows->Join(*job, timeline_->Now(), record);
  const bool goes_on = !record->incident.repeat().thread().empty();
  if (!goes_on && !IsWithinQuota(*job, record)) {
    return parts_.rows->SetTold(record->incident, false);
  }
  SetAnnounced(record);
  Say(*record, goes_on ? AlertEvent::kUpdated : AlertEvent::kConfirmed);
}

// False if the alert of the confirmed incident is held back.
bool IncidentAlerts::IsWithinQuota(const JobIncidents& job, IncidentRecord* record) {
  if (!has_receivers_) return true;
  IncidentQuota& quota = *parts_.quota;
  const bool may_alert = quota.MayAlert(job.key, record->incident, timeline_->Now());
  record->incident.set_alert_held_back(!may_alert);
  if (!may_alert && counters_ != nullptr) counters_->CountDropped(Dropped::kAlerts, 1);
  if (may_alert && quota.IsFull(job.key)) record->incident.mutable_repeat()->set_holds_back(true);
  return may_alert;
}

void IncidentAlerts::SetAnnounced(IncidentRecord* record) {
  record->is_announced = true;
  record->said_ns = timeline_->Now();
}

// Under the name of the row whose alerts go on.
void IncidentAlerts::Say(const IncidentRecord& record, AlertEvent event) {
  const v1::Repeat& repeat = record.incident.repeat();
  if (repeat.thread().empty()) return writers_->alerts->Send(record.incident, event);
  v1::Incident in_row = WithoutStacks(record.incident);
  in_row.mutable_repeat()->set_newest(record.incident.id());
  in_row.set_id(repeat.thread());
  *in_row.mutable_opened_at() = repeat.thread_opened_at();
  writers_->alerts->Send(in_row, event);
}

void IncidentAlerts::SayWhatIsNew(bool has_new_stacks, JobIncidents* job) {
  const std::optional<Incident>& live = job->life.live();
  if (!live || live->is_stored || live->confirmed_ns == 0) return;
  IncidentRecord* record = FindLive(job);
  if (record == nullptr) return;
  if (record->is_alert_due) {
    if (!HoldsFirst(*record)) SendFirst(job, record);
    return;
  }
  const v1::Verdict& known = record->incident.verdicts(0);
  const std::vector<Advice>& advice = live->verdicts.front().advice;
  const std::string said = known.advice().empty() ? "" : known.advice(0).id();
  // A restarted daemon has less than its alert reported, until it has stacks.
  const bool is_restored = record->confirmed_ns == 0;
  const bool is_advised_anew = !is_restored && said != (advice.empty() ? "" : advice.front().id);
  if (!has_new_stacks && !is_advised_anew) return;
  RefreshVerdicts(*job, record);
  record->unsaved = true;
  parts_.table->SetPending(*job, *record);
  if (record->is_announced && !parts_.silenced->Check(*job, record))
    Say(*record, AlertEvent::kUpdated);
}

// The sender ignores the alert if it was saved.
void IncidentAlerts::SendLacking(const std::vector<Verdict>& verdicts, JobIncidents* job) {
  if (job->life.live() && verdicts.empty()) return;
  job->may_lack_alert = false;
  IncidentRecord* record = FindLive(job);
  if (record != nullptr) Announce(job, record);
}

void IncidentAlerts::SendDue() {
  SendDueFirst();
  SendHeldBack();
  SendUnsilenced();
  SendDueEnds(timeline_->Now());
  SendReminders();
}

void IncidentAlerts::SendLast(bool ends) {
  is_stopping_ = true;
  SendDueFirst();
  if (ends) SendDueEnds(INT64_MAX);
}

void IncidentAlerts::SendDueFirst() {
  for (auto& [key, job] : parts_.table->jobs()) {
    IncidentRecord* record = FindLive(&job);
    if (record != nullptr && record->is_alert_due && !HoldsFirst(*record)) SendFirst(&job, record);
  }
}

// Sends one alert for all that were held back, where it is due.
void IncidentAlerts::SendHeldBack() {
  for (IncidentQuota::Due& due : parts_.quota->TakeDue(timeline_->Now())) {
    due.incident.set_alert_held_back(false);
    JobIncidents* job = parts_.table->Find(ReadJobKey(due.incident));
    IncidentRecord* record = job == nullptr ? nullptr : FindRecord(due.incident.id(), job);
    if (record != nullptr) {
      record->incident.set_alert_held_back(false);
      parts_.table->SetChanged(job, record);
      parts_.publisher->SaveAnyway(record);
    } else {
      // An announced incident has a number of its own for good.
      writers_->history->Save(due.incident);
    }
    const bool is_silenced = record != nullptr ? parts_.silenced->Check(*job, record)
                                               : parts_.silenced->Fits(due.incident);
    if (is_silenced) continue;
    if (record != nullptr) {
      SetAnnounced(record);
      parts_.rows->SetTold(record->incident, true);
    }
    writers_->alerts->Send(due.incident, AlertEvent::kConfirmed);
    if (due.incident.has_closed_at()) writers_->alerts->Send(due.incident, AlertEvent::kResolved);
  }
}

// Sends the alerts of incidents that last longer than their silence. The sender ignores the alert
// of an incident that it has announced before.
void IncidentAlerts::SendUnsilenced() {
  for (const auto& [key, id] : parts_.silenced->TakeUnsilenced()) {
    JobIncidents* job = parts_.table->Find(key);
    IncidentRecord* record = FindRecord(id, job);
    parts_.table->SetChanged(job, record);
    if (record->is_announced) {
      Say(*record, AlertEvent::kUpdated);
    } else if (!record->is_alert_due) {
      Announce(job, record);
    }
  }
}

void IncidentAlerts::SendDueEnds(int64_t until_ns) {
  for (const v1::Incident& end : parts_.rows->TakeEnds(until_ns)) {
    writers_->alerts->Send(end, AlertEvent::kResolved);
  }
}

// Sends reminders of hangs that last and that no person has acknowledged.
void IncidentAlerts::SendReminders() {
  if (remind_every_ns_ == 0) return;
  const int64_t now_ns = timeline_->Now();
  for (auto& [key, job] : parts_.table->jobs()) {
    IncidentRecord* record = FindLive(&job);
    if (record == nullptr || job.life.live()->is_stored) continue;
    const v1::Incident& incident = record->incident;
    const Reminder known = {record->said_ns, record->is_announced, incident.has_acknowledged(),
                            incident.has_silenced()};
    if (!IsReminderDue(known, now_ns, remind_every_ns_)) continue;
    record->said_ns = now_ns;
    RefreshVerdicts(job, record);
    Say(*record, AlertEvent::kReminder);
  }
}

}  // namespace rollcall
