// SPDX-License-Identifier: Apache-2.0
// The incident book passes incidents on to the writers of reports and history.
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "base/durations.h"
#include "base/mutex.h"
#include "daemon/history/history_write.h"
#include "daemon/incidents/incident_book.h"
#include "daemon/incidents/incident_stacks.h"
#include "daemon/report/stack_places.h"

namespace rollcall {
namespace {

// An incident without a report after this time gets a note instead of a path.
constexpr int64_t kWithoutReportNs = 3 * kSecond;

}  // namespace

void IncidentBook::Publish() {
  Restore();
  EndAbandoned();
  SendDueFirst(/*all=*/false);
  SendHeldBack();
  SendUnsilenced();
  SendDueEnds(timeline_->Now());
  SendReminders();
  PublishPending();
}

void IncidentBook::PublishPending() {
  for (Draft& draft : PublishRecords()) WriteReport(std::move(draft));
}

// Returns the reports that are due.
std::vector<IncidentBook::Draft> IncidentBook::PublishRecords() {
  const std::vector<ReportQueue::Result> reports = reports_->DrainResults();
  const bool is_recreated = history_->ConsumeRecreated();
  if (is_recreated) alerts_->SaveAgain();
  const MutexLock lock(mutex_);
  std::vector<Draft> drafts = std::exchange(last_drafts_, {});
  for (const ReportQueue::Result& result : reports) RecordReport(result);
  if (is_recreated) SetAllUnsaved();
  for (auto at = pending_.begin(); at != pending_.end();) {
    const auto job = jobs_.find(at->first);
    Record* record = job == jobs_.end() ? nullptr : FindRecord(at->second, &job->second);
    if (record != nullptr && record->is_over_quota) StoreIfItLasts(job->second, record);
    const bool has_more = record != nullptr && PublishRecord(job->second, record, &drafts);
    at = has_more ? std::next(at) : pending_.erase(at);
  }
  return drafts;
}

// True: there is more to do later.
bool IncidentBook::PublishRecord(const JobIncidents& job, Record* record,
                                 std::vector<Draft>* drafts) {
  if (record->is_over_quota) return true;
  const bool is_due = record->dirty && record->incident.has_confirmed_at();
  const bool waits = is_due && AwaitsStacks(*record);
  if (is_due && !waits) AddDraft(job, record, drafts);
  RecordProblem(record);
  if (record->unsaved) SaveNow(record);
  return waits || (record->is_in_queue && record->folder.empty());
}

void IncidentBook::AddDraft(const JobIncidents& job, Record* record, std::vector<Draft>* drafts) {
  record->dirty = false;
  RefreshVerdicts(job, record->incident, &record->incident);  // with the lines that the stacks show
  AddSites(&record->incident);
  record->awaited.Explain(timeline_->Now(), &record->incident);
  if (options_.report_dir.empty()) return;
  drafts->push_back({job.key, record->incident, record->folder, record->rest, false});
  record->is_in_queue = true;
}

// Before the job's records go. Without the end, the queue would keep the report for ever as that of
// a live incident.
void IncidentBook::DraftLast(JobIncidents* job) {
  for (Record& record : job->records) {
    if (record.is_over_quota) continue;
    if (record.dirty && record.incident.has_confirmed_at()) {
      AddDraft(*job, &record, &last_drafts_);
      record.unsaved = true;
    }
    if (record.unsaved) SaveNow(&record);
  }
  for (Draft& draft : last_drafts_) draft.is_last = true;
}

// The first report waits a little for the first stacks: a user who ends the job because of the
// report ends its processes too. Does not wait once the daemon stops.
bool IncidentBook::AwaitsStacks(const Record& record) const {
  return !stopping_ && record.folder.empty() &&
         (!record.awaited.empty() || record.has_new_stacks) &&
         record.awaited.MayComeSoon(timeline_->Now());
}

// Merging the stacks of thousands of ranks takes long, and diagnoses and queries need the mutex.
void IncidentBook::WriteReport(Draft draft) {
  const v1::StackTree merged = MergedStacks(draft.incident, draft.rest);
  {
    const MutexLock lock(mutex_);
    const auto job = jobs_.find(draft.job);
    Record* record = job == jobs_.end() ? nullptr : FindRecord(draft.incident.id(), &job->second);
    if (record != nullptr) {
      *record->incident.mutable_stack_tree() = merged;
      record->unsaved = true;
      SetPending(job->second, *record);
    }
  }
  *draft.incident.mutable_stack_tree() = merged;
  if (draft.is_last) history_->Save(draft.incident);  // nobody else saves these stacks
  // A report describes the hang. The end of the job afterwards (possibly caused by --on-hang) is in
  // closed_at, and the hang stays confirmed.
  if (draft.incident.state() == "ended") draft.incident.set_state("confirmed");
  reports_->Put(std::move(draft.incident), draft.folder);
}

void IncidentBook::RecordReport(const ReportQueue::Result& result) {
  const auto job = jobs_.find(result.job);
  Record* record = job == jobs_.end() ? nullptr : FindRecord(result.incident, &job->second);
  if (record == nullptr) return;
  SetPending(job->second, *record);
  record->is_in_queue = false;
  record->folder = result.folder;
  record->incident.set_report_path(result.folder);
  record->incident.set_report_note(result.note);
  record->unsaved = true;
}

void IncidentBook::RecordProblem(Record* record) {
  if (!record->is_in_queue || !record->folder.empty() || record->dirty) return;
  const std::string problem = reports_->FindProblem(record->incident.id(), kWithoutReportNs);
  if (problem.empty() || problem == record->incident.report_note()) return;
  record->incident.set_report_note(problem);
  record->unsaved = true;
}

void IncidentBook::SetPending(const JobIncidents& job, const Record& record) {
  pending_.emplace(job.key, record.incident.id());
}

// A new file replaced the history.
void IncidentBook::SetAllUnsaved() {
  attempts_to_save_.all = true;
  for (const v1::Silence& silence : silences_.List(Tenants::All(), WallNow())) {
    history_->Apply(WriteOfSilence(silence));
  }
  for (auto& [key, job] : jobs_) {
    job.hosts.SetUnrecorded();
    for (Record& record : job.records) {
      record.unsaved = true;
      SetPending(job, record);
    }
  }
}

}  // namespace rollcall
