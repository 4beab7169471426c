// What becomes of the daemon's incidents: reports, the history, and the lists that people see. The
// disk is others' business (report_queue.h, history_keeper.h): nothing here waits for it.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "daemon/report/incident_proto.h"
#include "daemon/report/stack_places.h"
#include "daemon/server/daemon.h"
#include "daemon/server/incident_list.h"
#include "proto/clean_text.h"

namespace rollcall {
namespace {

// A report that is not written by then is told of without its path.
constexpr int64_t kWithoutReportNs = 3'000'000'000;

void DropStacks(v1::Incident* incident) {
  incident->clear_stacks();
  incident->clear_stack_tree();
}

}  // namespace

void Daemon::WriteReports() {
  {
    const absl::MutexLock lock(&mutex_);
    for (auto& [name, watch] : jobs_) {
      for (Record& record : watch.incidents) {
        if (!record.dirty || !record.incident.has_confirmed_at() || AwaitsStacks(record)) continue;
        record.dirty = false;
        AddPlaces(&record.incident);
        if (options_.report_dir.empty()) continue;
        *record.incident.mutable_stack_tree() = MergedStacks(record.incident, record.rest);
        v1::Incident incident = record.incident;
        // A report tells of the hang; that the job ended afterwards (by our own
        // hand, maybe) is in closed_at and makes it no less confirmed.
        if (incident.state() == "ended") incident.set_state("confirmed");
        reports_->Put(std::move(incident), record.folder);
      }
    }
  }
  NoteWrittenReports();
}

void Daemon::NoteWrittenReports() {
  const std::vector<ReportQueue::Written> all = reports_->TakeWritten();
  const absl::MutexLock lock(&mutex_);
  for (const ReportQueue::Written& written : all) {
    const auto watch = jobs_.find(written.job);
    if (watch == jobs_.end()) continue;
    for (Record& record : watch->second.incidents) {
      if (record.incident.id() != written.incident) continue;
      record.folder = written.folder;
      record.incident.set_report_path(written.folder);
      record.incident.set_report_note(written.note);
      record.unsaved = true;
    }
  }
  for (auto& [name, watch] : jobs_) {
    for (Record& record : watch.incidents) {
      if (!record.folder.empty() || record.dirty || !record.incident.has_confirmed_at()) continue;
      const std::string problem = reports_->ProblemOf(record.incident.id(), kWithoutReportNs);
      if (problem.empty() || problem == record.incident.report_note()) continue;
      record.incident.set_report_note(problem);
      record.unsaved = true;
    }
  }
}

void Daemon::SaveHistory() {
  const bool all = history_->TakeBegunAnew();
  const absl::MutexLock lock(&mutex_);
  for (auto& [name, watch] : jobs_) {
    for (Record& record : watch.incidents) {
      if (!record.unsaved && !all) continue;
      record.unsaved = false;
      history_->Save(record.incident);
    }
  }
}

// While it lives, waits grow without anything else that changes.
v1::Incident Daemon::AsOfNow(const JobWatch& watch, const v1::Incident& incident) {
  v1::Incident now = incident;
  if (!watch.life.live() || watch.life.live()->id != incident.id()) return now;
  now.mutable_verdicts()->Swap(ToProto(*watch.life.live()).mutable_verdicts());
  AddPlaces(&now);
  return now;
}

std::vector<v1::Incident> Daemon::GetIncidents(const std::string& job) const {
  std::vector<v1::Incident> incidents;
  const absl::MutexLock lock(&mutex_);
  for (const auto& [name, watch] : jobs_) {
    if (!job.empty() && name != CleanText(job)) continue;
    for (const Record& record : watch.incidents) {
      incidents.push_back(AsOfNow(watch, record.incident));
    }
  }
  return incidents;
}

std::vector<v1::Incident> Daemon::InMemory(bool open_only, bool with_stacks) const {
  std::vector<v1::Incident> incidents;
  const absl::MutexLock lock(&mutex_);
  for (const auto& [name, watch] : jobs_) {
    for (const Record& record : watch.incidents) {
      if (open_only && record.incident.has_closed_at()) continue;
      incidents.push_back(AsOfNow(watch, record.incident));
      if (!with_stacks) DropStacks(&incidents.back());
    }
  }
  return incidents;
}

absl::StatusOr<v1::ListIncidentsResponse> Daemon::ListIncidents(
    const v1::ListIncidentsRequest& request) const {
  v1::ListIncidentsResponse none;
  if (!request.live_only()) {
    auto listed = history_->List(request, InMemory(true, request.with_stacks()));
    if (listed.ok()) return listed;
    none.set_note(absl::StrCat("only those since the daemon's start: ",
                               std::string(listed.status().message())));
  }
  std::vector<v1::Incident> asked_for;
  for (v1::Incident& incident : InMemory(false, request.with_stacks())) {
    if (IsAskedFor(incident, request)) asked_for.push_back(std::move(incident));
  }
  if (!request.live_only()) {
    const Window window = WindowFor(request, static_cast<int64_t>(asked_for.size()));
    return Merge(request, std::move(asked_for), window, std::move(none));
  }
  std::reverse(asked_for.begin(), asked_for.end());
  for (v1::Incident& incident : asked_for) none.add_incidents()->Swap(&incident);
  none.set_total(none.incidents_size());
  return none;
}

absl::StatusOr<v1::Incident> Daemon::GetIncident(const std::string& id) const {
  {
    const absl::MutexLock lock(&mutex_);
    for (const auto& [name, watch] : jobs_) {
      for (const Record& record : watch.incidents) {
        if (record.incident.id() != id) continue;
        v1::Incident incident = AsOfNow(watch, record.incident);
        *incident.mutable_stack_tree() = MergedStacks(incident, record.rest);
        return incident;
      }
    }
  }
  const auto kept = history_->Get(id);
  if (kept.has_value()) return *kept;
  return absl::NotFoundError(
      absl::StrCat("no incident \"", id, "\"\n  what there is:  rollcall incidents"));
}

}  // namespace rollcall
