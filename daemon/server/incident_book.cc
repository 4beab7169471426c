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
#include "daemon/server/stored_incident.h"
#include "proto/clean_text.h"
#include "proto/durations.h"

namespace rollcall {
namespace {

constexpr int64_t kStacksBeforeReportNs = 2 * kSecond;
constexpr size_t kIncidentsKept = 100;  // of one job
// An incident without a report after this time gets a note instead of a path.
constexpr int64_t kWithoutReportNs = 3 * kSecond;
// Shares of the time that the daemon has to stop. The rest is for gRPC and HTTP.
// The history comes last, because it records which alerts were delivered.
constexpr auto kReportsWithin = std::chrono::seconds(6);
constexpr auto kAlertsWithin = std::chrono::seconds(9);
constexpr auto kHistoryWithin = std::chrono::seconds(11);
// Where a restarted daemon sends the rest.
constexpr auto kSavedAlertsWithin = std::chrono::seconds(3);

// Keeps the recorded wall-clock times, even if someone has set the clock since.
void KeepTimes(const v1::Incident& known, v1::Incident* incident) {
  if (known.has_opened_at()) *incident->mutable_opened_at() = known.opened_at();
  if (known.has_confirmed_at()) *incident->mutable_confirmed_at() = known.confirmed_at();
  if (known.has_closed_at()) *incident->mutable_closed_at() = known.closed_at();
}

google::protobuf::Timestamp ToTimestamp(int64_t ns) {
  google::protobuf::Timestamp time;
  time.set_seconds(ns / kSecond);
  time.set_nanos(static_cast<int32_t>(ns % kSecond));
  return time;
}

void DropStacks(v1::Incident* incident) {
  incident->clear_stacks();
  incident->clear_stack_tree();
}

v1::IncidentSummary Summarize(const v1::Incident& incident) {
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

JobBrief::Live Summarize(const Incident& live) {
  const Verdict& root = live.verdicts.front();
  JobBrief::Live brief = {live.id, live.state == IncidentState::kConfirmed, root.summary, {}};
  for (const Culprit& culprit : root.culprits) {
    // A job may claim many ranks of which none has reported: the page needs only some of these.
    const auto named = std::min(culprit.ranks, static_cast<int32_t>(kMostListed));
    for (int32_t i = 0; i < named; ++i) brief.culprits.push_back(culprit.rank + i);
  }
  return brief;
}

}  // namespace

IncidentBook::IncidentBook(IncidentBookOptions options, Timeline* timeline,
                           DaemonCounters* counters)
    : options_(std::move(options)),
      timeline_(timeline),
      counters_(counters),
      quota_(options_.quota) {}

absl::Status IncidentBook::Start() {
  history_ = std::make_unique<HistoryKeeper>(options_.history);
  absl::Status usable = history_->Start();
  if (!usable.ok()) return usable;
  ReportQueueOptions reports;
  reports.report_dir = options_.report_dir;
  reports.keep = options_.keep_reports;
  reports.continues_reports = !options_.history.path.empty();
  reports_ = std::make_unique<ReportQueue>(reports);
  const bool is_kept = !options_.history.path.empty();
  alerts_ = std::make_unique<AlertSender>(options_.alerts, is_kept ? history_->outbox() : nullptr);
  {
    const absl::MutexLock lock(&mutex_);
    started_ns_ = timeline_->Now();
    knows_hosts_ = !is_kept;
  }
  Restore();
  return absl::OkStatus();
}

// Later than at the start if the history was unusable then.
void IncidentBook::Restore() {
  std::optional<Continuation> stored = history_->ConsumeContinuation();
  if (!stored.has_value()) return;
  alerts_->Restore(stored->alerts);
  const absl::MutexLock lock(&mutex_);
  knows_hosts_ = true;
  attempts_ = std::move(stored->attempts);
  for (auto& [key, job] : jobs_) job.life.RaiseCount(history_->LastNumber(key));
  for (auto& [key, hosts] : stored->hosts) {
    JobIncidents* job = Open(key);
    if (job->has_returned) continue;
    job->hosts.Restore(std::move(hosts));
    awaited_.insert(key);
  }
  for (const v1::Incident& incident : stored->closed) {
    // The earlier daemon may have ended before it saved this alert.
    alerts_->Send(incident, AlertEvent::kResolved);
    const auto job = jobs_.find(ReadJobKey(incident));
    if (job == jobs_.end()) continue;
    job->second.life.RestoreClosed(FromStored(incident));
    job->second.is_end_judged |= !incident.abandoned() &&
                                 incident.state() == IncidentStateName(IncidentState::kEnded);
  }
  const int64_t now_ns = timeline_->Now();
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
  const absl::MutexLock lock(&mutex_);
  if (now_ns - started_ns_ < kJobReturnsWithinNs) return;
  for (auto at = awaited_.begin(); at != awaited_.end();) {
    JobIncidents& job = jobs_.at(*at);
    const bool is_done = job.is_abandoned && now_ns - started_ns_ >= 2 * kJobReturnsWithinNs;
    if (!job.is_abandoned) {
      Abandon(&job, now_ns);
      // After the alert: a daemon that continues here looks for it only where it knows the hosts.
      history_->ForgetHosts(*at);
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
  return (!knows_hosts_ || !job.hosts.missing().empty()) && now_ns - started_ns_ < kReturnWithinNs;
}

void IncidentBook::SaveHosts(const JobState& state, JobIncidents* job, int64_t now_ns) {
  std::vector<std::string> hosts = job->hosts.Update(state, now_ns);
  if (hosts.empty() || options_.history.path.empty()) return;
  history_->SaveHosts(state.key, std::move(hosts), timeline_->ToWallTime(now_ns));
}

// A verdict that a report has already may lack hosts, too.
void IncidentBook::WeakenStored(const std::string& line, JobIncidents* job) {
  if (!job->life.live() || !job->life.live()->is_stored) return;
  Record* record = FindRecord(job->life.live()->id, job);
  if (record != nullptr) Weaken(line, &record->incident);
}

IncidentBook::JobIncidents* IncidentBook::Open(const JobKey& job) {
  const auto known = jobs_.find(job);
  if (known != jobs_.end()) return &known->second;
  return &jobs_.try_emplace(job, job, history_->LastNumber(job)).first->second;
}

// The history, which has the numbers of earlier incidents, is not readable. The time in seconds is
// larger than all of these, and than the numbers that an earlier daemon took from the time.
void IncidentBook::AvoidUnknownNumbers(JobIncidents* job, int64_t now_ns) {
  if (knows_hosts_ || job->life.live()) return;
  job->life.RaiseCount(static_cast<int>(timeline_->ToWallTime(now_ns) / kSecond));
}

std::vector<StackRequest> IncidentBook::Apply(const JobState& state, std::vector<Verdict> verdicts,
                                              int64_t now_ns) {
  std::vector<StackRequest> requests;
  const absl::MutexLock lock(&mutex_);
  JobIncidents* job = Open(state.key);
  job->has_returned = true;
  awaited_.erase(state.key);
  SaveHosts(state, job, now_ns);
  if (AwaitsHosts(*job, now_ns)) return requests;
  const View view = job->hosts.missing().empty() ? View::kWhole : View::kPart;
  verdicts = Prepare(state, std::move(verdicts), job);
  AvoidUnknownNumbers(job, now_ns);
  for (const IncidentEvent& event :
       job->life.Update(state, verdicts, now_ns, options_.limits, view)) {
    Act(event, job);
    if (!event.take_stacks_of.empty()) {
      requests.push_back(MakeStackRequest(state, event));
      Record* record = FindRecord(event.incident.id, job);
      record->stacks_open += static_cast<int>(requests.back().processes.size());
      record->stacks_requested_ns = timeline_->Now();
    }
    if (event.kind != IncidentEvent::Kind::kEnded) continue;
    // The end of a job is no news after its hang was reported.
    for (const auto& [id, comm] : state.communicators) job->judged_ends.insert(id);
  }
  if (job->may_lack_alert) SendLackingAlert(verdicts, job);
  return requests;
}

// The verdicts from which incidents follow.
std::vector<Verdict> IncidentBook::Prepare(const JobState& state, std::vector<Verdict> verdicts,
                                           JobIncidents* job) {
  verdicts = SetWarnings(std::move(verdicts), job);
  const bool hangs = job->life.live() && job->life.live()->state == IncidentState::kConfirmed;
  std::vector<Verdict> end;
  if (!hangs && !job->is_end_judged) end = JudgeTheEnd(state, &job->judged_ends);
  if (!end.empty()) verdicts = std::move(end);
  if (!job->hosts.missing().empty()) {
    const std::string line = MissingHostsInWords(job->hosts.missing());
    Weaken(line, &verdicts);
    WeakenStored(line, job);
  }
  return verdicts;
}

// Removes warnings from the verdicts and stores them. Returns the other verdicts.
std::vector<Verdict> IncidentBook::SetWarnings(std::vector<Verdict> verdicts,
                                                   JobIncidents* job) {
  const auto warnings = std::stable_partition(verdicts.begin(), verdicts.end(),
                                              [](const Verdict& v) { return !IsWarning(v.cause); });
  job->warnings.clear();
  for (auto at = warnings; at != verdicts.end(); ++at) job->warnings.push_back(at->summary);
  verdicts.erase(warnings, verdicts.end());
  return verdicts;
}

// Returns nullptr if there is no such incident, or newer ones replaced it.
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
  ApplyQuota(event, *job, record);
  record->incident.set_abandoned(job->is_abandoned && !job->has_returned);
  SetPending(*job, *record);
  const bool may_alert = event.kind != IncidentEvent::Kind::kConfirmed ||
                         MayAlert(job->key, record, event.incident.confirmed_ns);
  if (event.kind != IncidentEvent::Kind::kTakeStacksAgain &&
      event.kind != IncidentEvent::Kind::kTakeStacksOfRest) {
    SaveNow(record);  // before its alert
  }
  ++job->changes;
  ++changes_;
  Count(event, job);
  if (may_alert) Alert(event, record->incident);
  quota_.Update(job->key, record->incident);
  DropOverQuota(event, job);
  if (options_.log_incidents && event.kind == IncidentEvent::Kind::kConfirmed) {
    spdlog::info("{}: {}", event.incident.id, event.incident.verdicts.front().summary);
  }
}

void IncidentBook::ApplyQuota(const IncidentEvent& event, const JobIncidents& job,
                              Record* record) {
  if (event.kind == IncidentEvent::Kind::kOpened) {
    record->is_over_quota = !quota_.MayStoreOpened(job.key, event.incident.opened_ns);
  }
  if (event.kind == IncidentEvent::Kind::kConfirmed &&
      quota_.MayStoreConfirmed(job.key, !record->is_over_quota, event.incident.confirmed_ns)) {
    record->is_over_quota = false;
  }
  if (!record->is_over_quota) return;
  record->incident.set_report_note(
      absl::StrCat("not stored: the job has had more than ", options_.quota.incidents,
                   " incidents in the last hour"));
}

void IncidentBook::DropOverQuota(const IncidentEvent& event, JobIncidents* job) {
  if (event.incident.closed_ns == 0) return;
  const auto at = std::find_if(job->records.begin(), job->records.end(), [&](const Record& record) {
    return record.is_over_quota && record.incident.id() == event.incident.id;
  });
  if (at == job->records.end()) return;
  job->records.erase(at);
  CountDropped(Dropped::kIncidents);
}

// False: the alert of the confirmed incident is held back.
bool IncidentBook::MayAlert(const JobId& job, Record* record, int64_t now_ns) {
  if (options_.alerts.targets.empty()) return true;
  const bool may_alert = quota_.MayAlert(job, record->incident, now_ns);
  record->incident.set_alert_held_back(!may_alert);
  if (!may_alert) CountDropped(Dropped::kAlerts);
  return may_alert;
}

// Sends one alert for all that were held back, where it is due.
void IncidentBook::SendHeldBack() {
  const absl::MutexLock lock(&mutex_);
  for (IncidentQuota::Due& due : quota_.TakeDue(timeline_->Now())) {
    due.incident.set_alert_held_back(false);
    const auto job = jobs_.find(ReadJobKey(due.incident));
    Record* record = job == jobs_.end() ? nullptr : FindRecord(due.incident.id(), &job->second);
    if (record != nullptr) {
      record->incident.set_alert_held_back(false);
      Store(record);
      SetPending(job->second, *record);
      ++job->second.changes;
      ++changes_;
    } else {
      history_->Save(due.incident);  // an announced incident has a number of its own for good
    }
    alerts_->Send(due.incident, AlertEvent::kConfirmed);
    if (due.incident.has_closed_at()) alerts_->Send(due.incident, AlertEvent::kResolved);
  }
}

// Stores the incident, whatever the quota says.
void IncidentBook::Store(Record* record) {
  if (record->is_over_quota) record->incident.clear_report_note();
  record->is_over_quota = false;
  SaveNow(record);
}

// A hang that lasts is none of a job that flaps.
void IncidentBook::StoreIfItLasts(const JobIncidents& job, Record* record) {
  const std::optional<Incident>& live = job.life.live();
  if (!live || live->id != record->incident.id() || live->confirmed_ns == 0) return;
  if (timeline_->Now() - live->confirmed_ns >= options_.quota.lasting_ns) Store(record);
}

void IncidentBook::CountDropped(Dropped what) {
  if (counters_ != nullptr) counters_->CountDropped(what, 1);
}

void IncidentBook::SaveNow(Record* record) {
  if (record->is_over_quota) return;
  record->unsaved = false;
  history_->Save(record->incident);
}

void IncidentBook::Rewrite(const IncidentEvent& event, Record* record) {
  v1::Incident incident = ToProto(WithWallTimes(event.incident));
  incident.set_rollcall_version(ROLLCALL_VERSION);
  incident.set_ended_ranks(static_cast<int32_t>(event.incident.ended_ranks));
  if (event.incident.is_stored) {
    incident.mutable_verdicts()->Swap(record->incident.mutable_verdicts());
    incident.mutable_versions()->Swap(record->incident.mutable_versions());
  }
  // Keeps what the daemon has added to the old message.
  incident.mutable_stacks()->Swap(record->incident.mutable_stacks());
  incident.mutable_stack_tree()->Swap(record->incident.mutable_stack_tree());
  incident.set_report_path(record->folder);
  if (!record->is_over_quota) incident.set_report_note(record->incident.report_note());
  incident.set_alert_held_back(record->incident.alert_held_back());
  KeepTimes(record->incident, &incident);
  record->incident.Swap(&incident);
  AddSites(&record->incident);
  record->dirty = true;
  record->unsaved = true;
}

// Converts the incident's times to the wall clock, for people.
Incident IncidentBook::WithWallTimes(Incident incident) {
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
  if (event.kind == IncidentEvent::Kind::kConfirmed) {
    alerts_->Send(incident, AlertEvent::kConfirmed);
  }
  if (event.kind == IncidentEvent::Kind::kUpdated) alerts_->Send(incident, AlertEvent::kUpdated);
  if (event.kind == IncidentEvent::Kind::kResolved || event.kind == IncidentEvent::Kind::kEnded) {
    alerts_->Send(incident, AlertEvent::kResolved);
  }
}

// For the first diagnosis that finds the restored incident again. The sender ignores the alert if it
// was saved.
void IncidentBook::SendLackingAlert(const std::vector<Verdict>& verdicts, JobIncidents* job) {
  const bool is_live = job->life.live().has_value();
  if (is_live && verdicts.empty()) return;
  job->may_lack_alert = false;
  Record* record = is_live ? FindRecord(job->life.live()->id, job) : nullptr;
  if (record == nullptr || !MayAlert(job->key, record, timeline_->Now())) return;
  alerts_->Send(record->incident, AlertEvent::kConfirmed);
}

std::set<JobKey> IncidentBook::OpenJobs() const {
  std::set<JobKey> open;
  const absl::MutexLock lock(&mutex_);
  for (const auto& [key, job] : jobs_) {
    if (job.life.live()) open.insert(key);
  }
  return open;
}

size_t IncidentBook::CountKnownHosts() const {
  size_t hosts = 0;
  const absl::MutexLock lock(&mutex_);
  for (const auto& [key, job] : jobs_) hosts += job.hosts.missing().size();
  return hosts;
}

bool IncidentBook::NeedsDiagnosis(const JobKey& job) const {
  const absl::MutexLock lock(&mutex_);
  const auto known = jobs_.find(job);
  if (known == jobs_.end()) return false;
  return known->second.life.live().has_value() || AwaitsHosts(known->second, timeline_->Now());
}

void IncidentBook::Forget(const JobKey& job, int64_t now_ns) {
  const absl::MutexLock lock(&mutex_);
  const auto known = jobs_.find(job);
  if (known == jobs_.end()) return;
  Abandon(&known->second, now_ns);
  jobs_.erase(known);
  awaited_.erase(job);
  history_->ForgetHosts(job);
  ++changes_;
}

std::optional<Motion> IncidentBook::AddStack(const StackResult& result) {
  const absl::MutexLock lock(&mutex_);
  const auto job = jobs_.find(result.job);
  if (job == jobs_.end()) return std::nullopt;
  Record* record = FindRecord(result.incident, &job->second);
  if (record == nullptr) return Motion::kUnknown;
  record->dirty = true;
  SetPending(job->second, *record);
  --record->stacks_open;
  if (result.is_rest) {
    AddToTree(result.stack, result.stack.rank(), &record->rest);
    return std::nullopt;
  }
  if (!result.is_reply) {
    AddFailure(result.stack, &record->incident);
    return std::nullopt;
  }
  const Motion motion = MotionSince(record->incident, result.stack);
  AddSample(result.stack, &record->incident);
  return motion;
}

void IncidentBook::Publish() {
  Restore();
  EndAbandoned();
  SendHeldBack();
  PublishPending();
}

std::map<JobKey, AttemptFacts> IncidentBook::ConsumeAttempts() {
  const absl::MutexLock lock(&mutex_);
  return std::exchange(attempts_, {});
}

bool IncidentBook::ConsumeMustSaveAttempts() {
  const absl::MutexLock lock(&mutex_);
  return std::exchange(must_save_attempts_, false);
}

void IncidentBook::SaveAttempts(AttemptChanges changes) {
  if (options_.history.path.empty()) return;
  for (const JobKey& key : changes.forgotten) history_->ForgetAttempt(key);
  if (changes.changed.empty()) return;
  history_->SaveAttempts(std::move(changes.changed), timeline_->ToWallTime(timeline_->Now()));
}

void IncidentBook::SaveAction(ActionRow action) {
  if (!options_.history.path.empty()) history_->SaveAction(std::move(action));
}

void IncidentBook::BeginStop() {
  const absl::MutexLock lock(&mutex_);
  stopping_ = true;
}

void IncidentBook::Finish(SteadyTime begun) {
  if (alerts_ == nullptr) return;
  alerts_->BeginFinish();
  reports_->Finish(begun + kReportsWithin);
  PublishPending();
  alerts_->Finish(begun + (options_.history.path.empty() ? kAlertsWithin : kSavedAlertsWithin));
  history_->Finish(begun + kHistoryWithin);
}

// The first report waits a little for the first stacks: a user who ends the job because of the
// report ends its processes too. Does not wait once the daemon stops.
bool IncidentBook::AwaitsStacks(const Record& record) const {
  return !stopping_ && record.folder.empty() && record.stacks_open > 0 &&
         timeline_->Now() - record.stacks_requested_ns < kStacksBeforeReportNs;
}

void IncidentBook::SetPending(const JobIncidents& job, const Record& record) {
  pending_.emplace(job.key, record.incident.id());
}

// A new file replaced the history.
void IncidentBook::SetAllUnsaved() {
  must_save_attempts_ = true;
  for (auto& [key, job] : jobs_) {
    job.hosts.SetUnrecorded();
    for (Record& record : job.records) {
      record.unsaved = true;
      SetPending(job, record);
    }
  }
}

void IncidentBook::PublishPending() {
  for (Draft& draft : PublishRecords()) WriteReport(std::move(draft));
}

// Returns the reports that are due.
std::vector<IncidentBook::Draft> IncidentBook::PublishRecords() {
  const std::vector<ReportQueue::Result> reports = reports_->DrainResults();
  const bool is_recreated = history_->ConsumeRecreated();
  if (is_recreated) alerts_->SaveAgain();
  std::vector<Draft> drafts;
  const absl::MutexLock lock(&mutex_);
  for (const ReportQueue::Result& result : reports) RecordReport(result);
  if (is_recreated) SetAllUnsaved();
  for (auto at = pending_.begin(); at != pending_.end();) {
    const auto job = jobs_.find(at->first);
    Record* record = job == jobs_.end() ? nullptr : FindRecord(at->second, &job->second);
    if (record != nullptr && record->is_over_quota) StoreIfItLasts(job->second, record);
    const bool has_more = record != nullptr && PublishRecord(at->first, record, &drafts);
    at = has_more ? std::next(at) : pending_.erase(at);
  }
  return drafts;
}

// True: there is more to do later.
bool IncidentBook::PublishRecord(const JobKey& job, Record* record, std::vector<Draft>* drafts) {
  if (record->is_over_quota) return true;
  const bool is_due = record->dirty && record->incident.has_confirmed_at();
  const bool waits = is_due && AwaitsStacks(*record);
  if (is_due && !waits) {
    record->dirty = false;
    AddSites(&record->incident);
    if (!options_.report_dir.empty()) {
      drafts->push_back({job, record->incident, record->folder, record->rest});
      record->is_in_queue = true;
    }
  }
  RecordProblem(record);
  if (record->unsaved) SaveNow(record);
  return waits || (record->is_in_queue && record->folder.empty());
}

// Merging the stacks of thousands of ranks takes long, and diagnoses and queries need the mutex.
void IncidentBook::WriteReport(Draft draft) {
  const v1::StackTree merged = MergedStacks(draft.incident, draft.rest);
  {
    const absl::MutexLock lock(&mutex_);
    const auto job = jobs_.find(draft.job);
    Record* record =
        job == jobs_.end() ? nullptr : FindRecord(draft.incident.id(), &job->second);
    if (record != nullptr) {
      *record->incident.mutable_stack_tree() = merged;
      record->unsaved = true;
      SetPending(job->second, *record);
    }
  }
  *draft.incident.mutable_stack_tree() = merged;
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

// The waits of a live incident grow without any other change.
v1::Incident IncidentBook::AsOfNow(const JobIncidents& job, const v1::Incident& incident) {
  v1::Incident now = incident;
  if (!job.life.live() || job.life.live()->id != incident.id()) return now;
  if (job.life.live()->is_stored) return now;
  now.mutable_verdicts()->Swap(ToProto(*job.life.live()).mutable_verdicts());
  AddSites(&now);
  return now;
}

std::vector<v1::Incident> IncidentBook::All(const std::string& job) const {
  std::vector<v1::Incident> incidents;
  const absl::MutexLock lock(&mutex_);
  for (const auto& [name, known] : jobs_) {
    if (!job.empty() && name.job != CleanText(job)) continue;
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
    response.set_note(absl::StrCat("only incidents since the daemon's start: ",
                                   std::string(listed.status().message())));
  }
  std::vector<v1::Incident> wanted = InMemory(false, request.with_stacks());
  wanted.erase(std::remove_if(wanted.begin(), wanted.end(),
                              [&request](const v1::Incident& incident) {
                                return !IsSelected(incident, request);
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
  return NoSuchIncident(id);
}

JobBrief IncidentBook::Brief(const JobKey& job) const {
  JobBrief brief;
  const absl::MutexLock lock(&mutex_);
  const auto known = jobs_.find(job);
  if (known == jobs_.end()) return brief;
  const JobIncidents& incidents = known->second;
  brief.warnings = incidents.warnings;
  if (!incidents.records.empty()) brief.last = Summarize(incidents.records.back().incident);
  if (incidents.life.live()) brief.live = Summarize(*incidents.life.live());
  return brief;
}

IncidentCounts IncidentBook::CountIncidents(const JobKey& job, int64_t now_ns) const {
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

DeliveryCounts IncidentBook::CountDeliveries() const {
  return {reports_->counts(), history_->counts(), alerts_->sent(), alerts_->failed(),
          alerts_->waiting()};
}

uint64_t IncidentBook::Changes() const {
  const absl::MutexLock lock(&mutex_);
  return changes_;
}

uint64_t IncidentBook::Changes(const JobKey& job) const {
  const absl::MutexLock lock(&mutex_);
  const auto known = jobs_.find(job);
  return known == jobs_.end() ? 0 : known->second.changes;
}

}  // namespace rollcall
