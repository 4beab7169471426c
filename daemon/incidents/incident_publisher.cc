// SPDX-License-Identifier: Apache-2.0
#include "daemon/incidents/incident_publisher.h"

#include <iterator>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/durations.h"
#include "daemon/report/stack_places.h"

namespace rollcall {
namespace {

// An incident without a report after this time gets a note instead of a path.
constexpr int64_t kWithoutReportNs = 3 * kSecond;

}  // namespace

void IncidentPublisher::Judge(const IncidentEvent& event, const JobId& job,
                              IncidentRecord* record) {
  if (event.kind == IncidentEvent::Kind::kOpened) {
    record->is_over_quota = !quota_->MayStoreOpened(job, event.incident.opened_ns);
  }
  if (event.kind == IncidentEvent::Kind::kConfirmed &&
      quota_->MayStoreConfirmed(job, !record->is_over_quota, event.incident.confirmed_ns)) {
    record->is_over_quota = false;
  }
  if (!record->is_over_quota) return;
  record->incident.set_report_note(absl::StrCat("not stored: the job has had more than ",
                                                quota_->limits().incidents,
                                                " incidents in the last hour"));
}

void IncidentPublisher::Save(IncidentRecord* record) {
  if (record->is_over_quota) return;
  record->unsaved = false;
  writers_->history->Save(record->incident);
}

void IncidentPublisher::SaveAnyway(IncidentRecord* record) {
  if (record->is_over_quota) record->incident.clear_report_note();
  record->is_over_quota = false;
  Save(record);
}

// A hang that lasts does not make a job flap.
void IncidentPublisher::SaveIfItLasts(const JobIncidents& job, IncidentRecord* record) {
  const std::optional<Incident>& live = job.life.live();
  if (!live || live->id != record->incident.id() || live->confirmed_ns == 0) return;
  if (timeline_->Now() - live->confirmed_ns >= quota_->limits().lasting_ns) SaveAnyway(record);
}

void IncidentPublisher::DropIfOverQuota(const Incident& closed, JobIncidents* job) {
  IncidentRecord* const record = FindRecord(closed.id, job);
  if (record == nullptr || !record->is_over_quota) return;
  job->records.erase(job->records.begin() + std::distance(job->records.data(), record));
  if (counters_ != nullptr) counters_->CountDropped(Dropped::kIncidents, 1);
}

std::vector<IncidentPublisher::Draft> IncidentPublisher::TakeDrafts() {
  for (const ReportQueue::Result& result : writers_->reports->DrainResults()) RecordReport(result);
  std::vector<Draft> drafts = std::exchange(last_drafts_, {});
  for (const auto& [key, id] : table_->TakePending()) {
    JobIncidents* const job = table_->Find(key);
    IncidentRecord* const record = table_->Find(key, id);
    if (record == nullptr) continue;
    if (record->is_over_quota) SaveIfItLasts(*job, record);
    if (Publish(*job, record, &drafts)) table_->SetPending(*job, *record);
  }
  return drafts;
}

// True if there is more to do later.
bool IncidentPublisher::Publish(const JobIncidents& job, IncidentRecord* record,
                                std::vector<Draft>* drafts) {
  if (record->is_over_quota) return true;
  const bool is_due = record->dirty && record->incident.has_confirmed_at();
  const bool waits = is_due && AwaitsStacks(*record);
  if (is_due && !waits) AddDraft(job, record, drafts);
  RecordProblem(record);
  if (record->unsaved) Save(record);
  return waits || (record->is_in_queue && record->folder.empty());
}

void IncidentPublisher::AddDraft(const JobIncidents& job, IncidentRecord* record,
                                 std::vector<Draft>* drafts) {
  record->dirty = false;
  RefreshVerdicts(job, record);  // with the lines that the stacks show
  AddSites(&record->incident);
  record->awaited.Explain(timeline_->Now(), &record->incident);
  if (!has_folder_) return;
  drafts->push_back({job.key, record->incident, record->folder, record->rest, false});
  record->is_in_queue = true;
}

void IncidentPublisher::DraftLast(JobIncidents* job) {
  for (IncidentRecord& record : job->records) {
    if (record.is_over_quota) continue;
    if (record.dirty && record.incident.has_confirmed_at()) {
      AddDraft(*job, &record, &last_drafts_);
      record.unsaved = true;
    }
    if (record.unsaved) Save(&record);
  }
  for (Draft& draft : last_drafts_) draft.is_last = true;
}

// The first report waits a little for the first stacks: a user who ends the job because of the
// report ends its processes too. Does not wait once the daemon stops.
bool IncidentPublisher::AwaitsStacks(const IncidentRecord& record) const {
  return !is_stopping_ && record.folder.empty() &&
         (!record.awaited.empty() || record.has_new_stacks) &&
         record.awaited.MayComeSoon(timeline_->Now());
}

void IncidentPublisher::RecordReport(const ReportQueue::Result& result) {
  JobIncidents* const job = table_->Find(result.job);
  IncidentRecord* const record = table_->Find(result.job, result.incident);
  if (record == nullptr) return;
  table_->SetPending(*job, *record);
  record->is_in_queue = false;
  record->folder = result.folder;
  record->incident.set_report_path(result.folder);
  record->incident.set_report_note(result.note);
  record->unsaved = true;
}

void IncidentPublisher::RecordProblem(IncidentRecord* record) {
  if (!record->is_in_queue || !record->folder.empty() || record->dirty) return;
  const std::string problem =
      writers_->reports->FindProblem(record->incident.id(), kWithoutReportNs);
  if (problem.empty() || problem == record->incident.report_note()) return;
  record->incident.set_report_note(problem);
  record->unsaved = true;
}

}  // namespace rollcall
