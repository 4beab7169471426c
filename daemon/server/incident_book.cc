// SPDX-License-Identifier: Apache-2.0
#include "daemon/server/incident_book.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <chrono>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "daemon/diagnosis/post_mortem.h"
#include "daemon/report/incident_proto.h"
#include "daemon/report/stack_merge.h"
#include "daemon/report/stack_places.h"
#include "daemon/server/incident_list.h"
#include "daemon/server/incident_stacks.h"
#include "proto/clean_text.h"
#include "proto/durations.h"

namespace rollcall {
namespace {

constexpr int64_t kStacksBeforeReportNs = 2 * kSecond;
constexpr size_t kIncidentsKept = 100;  // of one job
// A report that is not written by then is told of without its path.
constexpr int64_t kWithoutReportNs = 3 * kSecond;
// Of the time that the daemon has to stop. The rest is for gRPC and HTTP.
constexpr auto kReportsWithin = std::chrono::seconds(6);
constexpr auto kHistoryWithin = std::chrono::seconds(8);
constexpr auto kAlertsWithin = std::chrono::seconds(11);

// What the wall clock showed when something happened stays, however it was set since.
void KeepTimes(const v1::Incident& known, v1::Incident* incident) {
  if (known.has_opened_at()) *incident->mutable_opened_at() = known.opened_at();
  if (known.has_confirmed_at()) *incident->mutable_confirmed_at() = known.confirmed_at();
  if (known.has_closed_at()) *incident->mutable_closed_at() = known.closed_at();
}

void DropStacks(v1::Incident* incident) {
  incident->clear_stacks();
  incident->clear_stack_tree();
}

v1::IncidentSummary Summarized(const v1::Incident& incident) {
  v1::IncidentSummary summary;
  summary.set_id(incident.id());
  summary.set_state(incident.state());
  if (!incident.verdicts().empty()) {
    summary.set_cause(incident.verdicts(0).cause());
    summary.set_summary(incident.verdicts(0).summary());
  }
  *summary.mutable_opened_at() = incident.opened_at();
  return summary;
}

JobBrief::Live Summarized(const Incident& live) {
  const Verdict& root = live.verdicts.front();
  JobBrief::Live brief = {live.id, live.state == IncidentState::kConfirmed, root.summary, {}};
  for (const Culprit& culprit : root.culprits) brief.culprits.push_back(culprit.rank);
  return brief;
}

}  // namespace

IncidentBook::IncidentBook(IncidentBookOptions options, Timeline* timeline)
    : options_(std::move(options)), timeline_(timeline) {}

absl::Status IncidentBook::Start() {
  history_ = std::make_unique<HistoryKeeper>(options_.history);
  absl::Status usable = history_->Start();
  if (!usable.ok()) return usable;
  ReportQueueOptions reports;
  reports.report_dir = options_.report_dir;
  reports_ = std::make_unique<ReportQueue>(reports);
  alerts_ = std::make_unique<AlertSender>(options_.alerts);
  return absl::OkStatus();
}

IncidentBook::JobIncidents* IncidentBook::Open(const std::string& job) {
  const auto known = jobs_.find(job);
  if (known != jobs_.end()) return &known->second;
  return &jobs_.try_emplace(job, job, history_->LastNumber(job)).first->second;
}

std::vector<StackRequest> IncidentBook::Apply(const JobState& state, std::vector<Verdict> verdicts,
                                              int64_t now_ns) {
  std::vector<StackRequest> requests;
  const absl::MutexLock lock(&mutex_);
  JobIncidents* job = Open(state.name);
  verdicts = SetWarnings(std::move(verdicts), job);
  const bool hangs = job->life.live() && job->life.live()->state == IncidentState::kConfirmed;
  std::vector<Verdict> end;
  if (!hangs) end = JudgeTheEnd(state, &job->fallen);
  if (!end.empty()) verdicts = std::move(end);
  for (const IncidentEvent& event : job->life.Update(state, verdicts, now_ns, options_.limits)) {
    Act(event, job);
    if (!event.take_stacks_of.empty()) {
      requests.push_back(RequestFor(state, event));
      Record* record = FindRecord(event.incident.id, job);
      record->stacks_open += static_cast<int>(requests.back().processes.size());
      record->stacks_asked_ns = timeline_->Now();
    }
    if (event.kind != IncidentEvent::Kind::kEnded) continue;
    // What comes after a hang that was told is no news.
    for (const auto& [id, comm] : state.communicators) job->fallen.insert(id);
  }
  return requests;
}

// Returns the others.
std::vector<Verdict> IncidentBook::SetWarnings(std::vector<Verdict> verdicts,
                                                   JobIncidents* job) {
  const auto warnings = std::stable_partition(verdicts.begin(), verdicts.end(),
                                              [](const Verdict& v) { return !IsWarning(v.cause); });
  job->warnings.clear();
  for (auto at = warnings; at != verdicts.end(); ++at) job->warnings.push_back(at->summary);
  verdicts.erase(warnings, verdicts.end());
  return verdicts;
}

// nullptr: there is none, or it was dropped for newer ones.
IncidentBook::Record* IncidentBook::FindRecord(const std::string& incident, JobIncidents* job) {
  const auto at =
      std::find_if(job->records.begin(), job->records.end(), [&incident](const Record& record) {
        return record.incident.id() == incident;
      });
  return at == job->records.end() ? nullptr : &*at;
}

void IncidentBook::Act(const IncidentEvent& event, JobIncidents* job) {
  Record* record = FindRecord(event.incident.id, job);
  if (record == nullptr) {
    if (job->records.size() >= kIncidentsKept) job->records.erase(job->records.begin());
    record = &job->records.emplace_back();
  }
  Rewrite(event, record);
  ++job->changes;
  ++changes_;
  Count(event, job);
  Alert(event, record->incident);
  if (options_.log_incidents && event.kind == IncidentEvent::Kind::kConfirmed) {
    spdlog::info("{}: {}", event.incident.id, event.incident.verdicts.front().summary);
  }
}

void IncidentBook::Rewrite(const IncidentEvent& event, Record* record) {
  v1::Incident incident = ToProto(OnTheWall(event.incident));
  incident.set_rollcall_version(ROLLCALL_VERSION);
  // What this side has added stays.
  incident.mutable_stacks()->Swap(record->incident.mutable_stacks());
  incident.mutable_stack_tree()->Swap(record->incident.mutable_stack_tree());
  incident.set_report_path(record->folder);
  incident.set_report_note(record->incident.report_note());
  KeepTimes(record->incident, &incident);
  record->incident.Swap(&incident);
  AddPlaces(&record->incident);
  record->dirty = true;
  record->unsaved = true;
}

// The incident with times of the wall clock, for people.
Incident IncidentBook::OnTheWall(Incident incident) {
  incident.opened_ns = timeline_->ToWallTime(incident.opened_ns);
  incident.confirmed_ns = timeline_->ToWallTime(incident.confirmed_ns);
  incident.closed_ns = timeline_->ToWallTime(incident.closed_ns);
  return incident;
}

void IncidentBook::Count(const IncidentEvent& event, JobIncidents* job) {
  const Incident& incident = event.incident;
  const char* cause = CauseName(incident.verdicts.front().cause);
  if (event.kind == IncidentEvent::Kind::kConfirmed) ++job->by_cause[cause];
  if (incident.closed_ns == 0 || incident.confirmed_ns == 0) return;
  job->hung_seconds[cause] += static_cast<double>(incident.closed_ns - incident.opened_ns) / 1e9;
}

void IncidentBook::Alert(const IncidentEvent& event, const v1::Incident& incident) {
  if (!incident.has_confirmed_at()) return;
  if (event.kind == IncidentEvent::Kind::kConfirmed) alerts_->Send(incident, false);
  if (event.kind == IncidentEvent::Kind::kResolved || event.kind == IncidentEvent::Kind::kEnded) {
    alerts_->Send(incident, true);
  }
}

bool IncidentBook::HasLive(const std::string& job) const {
  const absl::MutexLock lock(&mutex_);
  const auto known = jobs_.find(job);
  return known != jobs_.end() && known->second.life.live().has_value();
}

void IncidentBook::Forget(const std::string& job) {
  const absl::MutexLock lock(&mutex_);
  jobs_.erase(job);
  ++changes_;
}

std::optional<Motion> IncidentBook::AddStack(const StackAnswer& answer) {
  const absl::MutexLock lock(&mutex_);
  const auto job = jobs_.find(answer.job);
  if (job == jobs_.end()) return std::nullopt;
  Record* record = FindRecord(answer.incident, &job->second);
  if (record == nullptr) return Motion::kUnknown;
  record->dirty = true;
  --record->stacks_open;
  if (answer.is_rest) {
    AddToTree(answer.stack, answer.stack.rank(), &record->rest);
    return std::nullopt;
  }
  if (!answer.has_come) {
    AddFailure(answer.stack, &record->incident);
    return std::nullopt;
  }
  const Motion motion = MotionSince(record->incident, answer.stack);
  AddSample(answer.stack, &record->incident);
  return motion;
}

void IncidentBook::Publish() {
  WriteReports();
  SaveHistory();
}

void IncidentBook::BeginStop() {
  const absl::MutexLock lock(&mutex_);
  stopping_ = true;
}

void IncidentBook::Finish(SteadyTime begun) {
  if (alerts_ == nullptr) return;
  alerts_->BeginFinish();
  reports_->Finish(begun + kReportsWithin);
  RecordReports();
  SaveHistory();
  history_->Finish(begun + kHistoryWithin);
  alerts_->Finish(begun + kAlertsWithin);
}

// The first report waits a little for the first stacks: whoever ends the job because of it takes
// them with it. Not once we stop.
bool IncidentBook::AwaitsStacks(const Record& record) const {
  return !stopping_ && record.folder.empty() && record.stacks_open > 0 &&
         timeline_->Now() - record.stacks_asked_ns < kStacksBeforeReportNs;
}

void IncidentBook::WriteReports() {
  {
    const absl::MutexLock lock(&mutex_);
    for (auto& [name, job] : jobs_) {
      for (Record& record : job.records) {
        if (record.dirty && record.incident.has_confirmed_at() && !AwaitsStacks(record)) {
          WriteReport(&record);
        }
      }
    }
  }
  RecordReports();
}

void IncidentBook::WriteReport(Record* record) {
  record->dirty = false;
  AddPlaces(&record->incident);
  if (options_.report_dir.empty()) return;
  *record->incident.mutable_stack_tree() = MergedStacks(record->incident, record->rest);
  v1::Incident incident = record->incident;
  // A report tells of the hang; that the job ended afterwards (by our own
  // hand, maybe) is in closed_at and makes it no less confirmed.
  if (incident.state() == "ended") incident.set_state("confirmed");
  reports_->Put(std::move(incident), record->folder);
}

void IncidentBook::RecordReports() {
  const std::vector<ReportQueue::Written> all = reports_->TakeWritten();
  const absl::MutexLock lock(&mutex_);
  for (const ReportQueue::Written& written : all) RecordReport(written);
  for (auto& [name, job] : jobs_) {
    for (Record& record : job.records) RecordProblem(&record);
  }
}

void IncidentBook::RecordReport(const ReportQueue::Written& written) {
  const auto job = jobs_.find(written.job);
  if (job == jobs_.end()) return;
  Record* record = FindRecord(written.incident, &job->second);
  if (record == nullptr) return;
  record->folder = written.folder;
  record->incident.set_report_path(written.folder);
  record->incident.set_report_note(written.note);
  record->unsaved = true;
}

void IncidentBook::RecordProblem(Record* record) {
  if (!record->folder.empty() || record->dirty || !record->incident.has_confirmed_at()) return;
  const std::string problem = reports_->FindProblem(record->incident.id(), kWithoutReportNs);
  if (problem.empty() || problem == record->incident.report_note()) return;
  record->incident.set_report_note(problem);
  record->unsaved = true;
}

void IncidentBook::SaveHistory() {
  const bool all = history_->TakeBegunAnew();
  const absl::MutexLock lock(&mutex_);
  for (auto& [name, job] : jobs_) {
    for (Record& record : job.records) {
      if (!record.unsaved && !all) continue;
      record.unsaved = false;
      history_->Save(record.incident);
    }
  }
}

// While it lives, waits grow without anything else that changes.
v1::Incident IncidentBook::AsOfNow(const JobIncidents& job, const v1::Incident& incident) {
  v1::Incident now = incident;
  if (!job.life.live() || job.life.live()->id != incident.id()) return now;
  now.mutable_verdicts()->Swap(ToProto(*job.life.live()).mutable_verdicts());
  AddPlaces(&now);
  return now;
}

std::vector<v1::Incident> IncidentBook::All(const std::string& job) const {
  std::vector<v1::Incident> incidents;
  const absl::MutexLock lock(&mutex_);
  for (const auto& [name, known] : jobs_) {
    if (!job.empty() && name != CleanText(job)) continue;
    for (const Record& record : known.records) {
      incidents.push_back(AsOfNow(known, record.incident));
    }
  }
  return incidents;
}

std::vector<v1::Incident> IncidentBook::InMemory(bool open_only, bool with_stacks) const {
  std::vector<v1::Incident> incidents;
  const absl::MutexLock lock(&mutex_);
  for (const auto& [name, job] : jobs_) {
    for (const Record& record : job.records) {
      if (open_only && record.incident.has_closed_at()) continue;
      incidents.push_back(AsOfNow(job, record.incident));
      if (!with_stacks) DropStacks(&incidents.back());
    }
  }
  return incidents;
}

absl::StatusOr<v1::ListIncidentsResponse> IncidentBook::List(
    const v1::ListIncidentsRequest& request) const {
  v1::ListIncidentsResponse response;
  if (!request.live_only()) {
    auto listed = history_->List(request, InMemory(true, request.with_stacks()));
    if (listed.ok()) return listed;
    response.set_note(absl::StrCat("only those since the daemon's start: ",
                                   std::string(listed.status().message())));
  }
  std::vector<v1::Incident> wanted = InMemory(false, request.with_stacks());
  wanted.erase(std::remove_if(wanted.begin(), wanted.end(),
                              [&request](const v1::Incident& incident) {
                                return !IsAskedFor(incident, request);
                              }),
               wanted.end());
  if (!request.live_only()) {
    const Window window = WindowFor(request, static_cast<int64_t>(wanted.size()));
    return Merge(request, std::move(wanted), window, std::move(response));
  }
  std::reverse(wanted.begin(), wanted.end());
  for (v1::Incident& incident : wanted) response.add_incidents()->Swap(&incident);
  response.set_total(response.incidents_size());
  return response;
}

absl::StatusOr<v1::Incident> IncidentBook::Get(const std::string& id) const {
  {
    const absl::MutexLock lock(&mutex_);
    for (const auto& [name, job] : jobs_) {
      for (const Record& record : job.records) {
        if (record.incident.id() != id) continue;
        v1::Incident incident = AsOfNow(job, record.incident);
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

JobBrief IncidentBook::Brief(const std::string& job) const {
  JobBrief brief;
  const absl::MutexLock lock(&mutex_);
  const auto known = jobs_.find(job);
  if (known == jobs_.end()) return brief;
  const JobIncidents& incidents = known->second;
  brief.warnings = incidents.warnings;
  if (!incidents.records.empty()) brief.last = Summarized(incidents.records.back().incident);
  if (incidents.life.live()) brief.live = Summarized(*incidents.life.live());
  return brief;
}

IncidentCounts IncidentBook::CountIncidents(const std::string& job, int64_t now_ns) const {
  IncidentCounts counts;
  const absl::MutexLock lock(&mutex_);
  const auto known = jobs_.find(job);
  if (known == jobs_.end()) return counts;
  counts.by_cause = known->second.by_cause;
  counts.hung_seconds = known->second.hung_seconds;
  if (!known->second.life.live()) return counts;
  const Incident& live = *known->second.life.live();
  counts.open_cause = CauseName(live.verdicts.front().cause);
  if (live.state == IncidentState::kConfirmed) {
    counts.hung_seconds[counts.open_cause] += static_cast<double>(now_ns - live.opened_ns) / 1e9;
  }
  return counts;
}

DeliveryCounts IncidentBook::Delivered() const {
  return {reports_->counts(), history_->counts(), alerts_->sent(), alerts_->failed(),
          alerts_->waiting()};
}

uint64_t IncidentBook::Changes(const std::string& job) const {
  const absl::MutexLock lock(&mutex_);
  if (job.empty()) return changes_;
  const auto known = jobs_.find(job);
  return known == jobs_.end() ? 0 : known->second.changes;
}

}  // namespace rollcall
