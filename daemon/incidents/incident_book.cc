// SPDX-License-Identifier: Apache-2.0
#include "daemon/incidents/incident_book.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/log/log_fields.h"
#include "daemon/diagnosis/post_mortem.h"
#include "daemon/history/history_write.h"
#include "daemon/incidents/incident_actions.h"
#include "daemon/incidents/incident_stacks.h"
#include "daemon/incidents/stored_incident.h"
#include "daemon/report/host_facts_proto.h"
#include "daemon/report/incident_proto.h"
#include "daemon/report/public_ranks.h"
#include "daemon/report/stack_merge.h"
#include "daemon/report/stack_places.h"
#include "proto/timestamps.h"

namespace rollcall {
namespace {

constexpr uint64_t kBacklog = 200;      // writes: they take a second at most
constexpr size_t kIncidentsKept = 100;  // of one job
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
  if (known.has_waits_since()) *incident->mutable_waits_since() = known.waits_since();
  incident->set_ranks(known.ranks());
}

// A restarted daemon has no stacks, from which the best advice follows: the earlier daemon's holds
// for the same finding.
void KeepAdvice(const v1::Incident& known, v1::Incident* incident) {
  if (known.verdicts().empty() || incident->verdicts().empty()) return;
  v1::Verdict* root = incident->mutable_verdicts(0);
  const v1::Verdict& before = known.verdicts(0);
  const bool is_same =
      root->cause() == before.cause() && root->culprit_ranks() == before.culprit_ranks();
  if (is_same && !before.advice().empty()) *root->mutable_advice() = before.advice();
}

// Whether a rank has come through a call: it has begun the next one.
bool MakesCalls(const JobState& state) {
  return std::any_of(
      state.communicators.begin(), state.communicators.end(), [](const auto& communicator) {
        const auto& members = communicator.second.members;
        return std::any_of(members.begin(), members.end(),
                           [](const auto& member) { return member.second.entered >= 2; });
      });
}

}  // namespace

IncidentBook::IncidentBook(IncidentBookOptions options, Timeline* timeline,
                           DaemonCounters* counters)
    : options_(std::move(options)),
      timeline_(timeline),
      counters_(counters),
      quota_(options_.quota),
      host_labels_(options_.host_labels),
      silences_(options_.history.database.url.empty() ? "" : options_.history.database.daemon) {}

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
  AlertOptions alerts = options_.alerts;
  if (options_.ownership != nullptr) {
    alerts.may_send = [ownership = options_.ownership](const v1::Incident& incident) {
      return ownership->MayAlert(ReadJobKey(incident));
    };
  }
  alerts_ = std::make_unique<AlertSender>(std::move(alerts), is_kept ? history_->outbox() : nullptr,
                                          counters_);
  {
    const MutexLock lock(mutex_);
    started_ns_ = timeline_->Now();
    knows_hosts_ = !is_kept;
  }
  Restore();
  return absl::OkStatus();
}

IncidentBook::JobIncidents* IncidentBook::Open(const JobKey& job) {
  const auto known = jobs_.find(job);
  if (known != jobs_.end()) return &known->second;
  return &jobs_.try_emplace(job, job, history_->LastNumber(job)).first->second;
}

std::vector<StackRequest> IncidentBook::Apply(const JobState& state, std::vector<Verdict> verdicts,
                                              int64_t now_ns, int64_t began_ns) {
  std::vector<StackRequest> requests;
  const MutexLock lock(mutex_);
  JobIncidents* job = Open(state.key);
  job->has_returned = true;
  awaited_.erase(state.key);
  SaveHosts(state, job, now_ns);
  if (AwaitsHosts(*job, now_ns)) return requests;
  const std::string not_seen = WhatIsNotSeen(state, *job, began_ns);
  const View view = not_seen.empty() ? View::kWhole : View::kPart;
  verdicts = Prepare(state, std::move(verdicts), not_seen, job);
  AvoidUnknownNumbers(job, now_ns);
  const std::vector<IncidentEvent> events =
      job->life.Update(state, verdicts, now_ns, options_.limits, view);
  if (!events.empty()) job->ranks = std::max(job->ranks, PublicRanks(state).count());
  for (const IncidentEvent& event : events) {
    Act(event, job);
    if (!event.take_stacks_of.empty()) {
      requests.push_back(MakeStackRequest(state, event));
      Record* record = FindRecord(event.incident.id, job);
      record->awaited.Add(requests.back(), timeline_->Now());
    }
    if (event.kind != IncidentEvent::Kind::kEnded) continue;
    // The end of a job is no news after its hang was reported.
    for (const auto& [id, comm] : state.communicators) job->judged_ends.insert(id);
  }
  bool has_new_stacks = false;
  for (Record& record : job->records) {
    has_new_stacks |= std::exchange(record.has_new_stacks, false);
    record.awaited.Hear(state);
  }
  SayWhatIsNew(has_new_stacks, job);
  job->has_made_calls = job->has_made_calls || MakesCalls(state);
  CloseEarlierAttempts(state.key);
  if (job->may_lack_alert) SendLackingAlert(verdicts, job);
  return requests;
}

// The verdicts from which incidents follow. `not_seen`: "": the whole job is seen.
std::vector<Verdict> IncidentBook::Prepare(const JobState& state, std::vector<Verdict> verdicts,
                                           const std::string& not_seen, JobIncidents* job) {
  verdicts = SetWarnings(std::move(verdicts), job);
  const bool hangs = job->life.live() && job->life.live()->state == IncidentState::kConfirmed;
  std::vector<Verdict> end;
  if (!hangs && !job->is_end_judged) end = JudgeTheEnd(state, &job->judged_ends);
  if (!end.empty()) verdicts = std::move(end);
  if (!not_seen.empty()) {
    Weaken(not_seen, &verdicts);
    WeakenStored(not_seen, job);
  }
  return verdicts;
}

// Removes warnings from the verdicts and stores them. Returns the other verdicts.
std::vector<Verdict> IncidentBook::SetWarnings(std::vector<Verdict> verdicts, JobIncidents* job) {
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
      std::find_if(job->records.begin(), job->records.end(),
                   [&incident](const Record& record) { return record.incident.id() == incident; });
  return at == job->records.end() ? nullptr : &*at;
}

void IncidentBook::Act(const IncidentEvent& event, JobIncidents* job) {
  Record* record = FindRecord(event.incident.id, job);
  if (record == nullptr) {
    if (job->records.size() >= kIncidentsKept) job->records.erase(job->records.begin());
    record = &job->records.emplace_back();
  }
  Rewrite(event, record);
  AddExtent(event, *job, record);
  ApplyQuota(event, *job, record);
  record->incident.set_abandoned(job->is_abandoned && !job->has_returned);
  SetPending(*job, *record);
  if (event.kind == IncidentEvent::Kind::kConfirmed) {
    record->confirmed_ns = event.incident.confirmed_ns;
    IsSilenced(*job, record);  // so that the history knows it at once
  }
  if (event.kind != IncidentEvent::Kind::kTakeStacksAgain &&
      event.kind != IncidentEvent::Kind::kTakeStacksOfRest) {
    SaveNow(record);  // before its alert
  }
  ++job->changes;
  ++changes_;
  Count(event, job);
  Alert(event, job, record);
  quota_.Update(job->key, record->incident);
  DropOverQuota(event, job);
  if (options_.log_incidents && event.kind == IncidentEvent::Kind::kConfirmed) {
    const LogFields fields(
        LogFields::List{{kJobField, job->key.job}, {kIncidentField, event.incident.id}});
    spdlog::info("{}: {}", event.incident.id, event.incident.verdicts.front().summary);
  }
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
  incident.mutable_host_facts()->Swap(record->incident.mutable_host_facts());
  incident.set_host_facts_total(record->incident.host_facts_total());
  incident.mutable_gpu_dumps()->Swap(record->incident.mutable_gpu_dumps());
  incident.set_report_path(record->folder);
  if (!record->is_over_quota) incident.set_report_note(record->incident.report_note());
  incident.set_alert_held_back(record->incident.alert_held_back());
  if (record->incident.has_went_on_in()) {
    incident.set_went_on_in(record->incident.went_on_in());
  }
  if (record->incident.has_repeat()) *incident.mutable_repeat() = record->incident.repeat();
  KeepActions(record->incident, &incident);
  KeepTimes(record->incident, &incident);
  const bool is_restored = record->confirmed_ns == 0 && record->incident.has_confirmed_at();
  if (is_restored) KeepAdvice(record->incident, &incident);
  record->incident.Swap(&incident);
  AddSites(&record->incident);
  record->dirty = true;
  record->unsaved = true;
}

// What the hang costs, and where: how many ranks, since when, and the labels of the culprits'
// hosts.
void IncidentBook::AddExtent(const IncidentEvent& event, const JobIncidents& job, Record* record) {
  v1::Incident* const incident = &record->incident;
  incident->set_ranks(std::max(incident->ranks(), job.ranks));
  rollcall::SetHostLabels(host_labels_, incident);
  if (event.kind != IncidentEvent::Kind::kOpened) return;
  const int64_t since_ns = event.incident.opened_ns - event.incident.verdicts.front().waited_ns;
  *incident->mutable_waits_since() = ToTimestamp(timeline_->ToWallTime(since_ns));
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

bool IncidentBook::NeedsDiagnosis(const JobKey& job) const {
  const MutexLock lock(mutex_);
  const auto known = jobs_.find(job);
  if (known == jobs_.end()) return false;
  return known->second.life.live().has_value() || AwaitsHosts(known->second, timeline_->Now());
}

void IncidentBook::Forget(const JobKey& job, int64_t now_ns) {
  const MutexLock lock(mutex_);
  const auto known = jobs_.find(job);
  if (known == jobs_.end()) return;
  Abandon(&known->second, now_ns);
  DraftLast(&known->second);
  jobs_.erase(known);
  awaited_.erase(job);
  history_->Apply(WriteOfForgottenHosts(job));
  ++changes_;
}

void IncidentBook::Release(const JobId& job) {
  const MutexLock lock(mutex_);
  Drop(job);
}

void IncidentBook::ReleaseUnowned(const JobId& job) {
  const MutexLock lock(mutex_);
  if (adopted_.count(job) == 0 && !options_.ownership->Owns(job)) Drop(job);
}

void IncidentBook::Drop(const JobId& job) {
  for (auto at = jobs_.lower_bound(JobKey(job, INT32_MIN));
       at != jobs_.end() && static_cast<const JobId&>(at->first) == job;) {
    awaited_.erase(at->first);
    at = jobs_.erase(at);
    ++changes_;
  }
  folds_.Drop(job);
  alerts_->DropJob(job);
  history_->DropHeld(job);
}

bool IncidentBook::HasJob(const JobId& job) const {
  const MutexLock lock(mutex_);
  const auto at = jobs_.lower_bound(JobKey(job, INT32_MIN));
  return at != jobs_.end() && static_cast<const JobId&>(at->first) == job;
}

bool IncidentBook::HasBacklog() const {
  const HistoryKeeper::Counts counts = history_->counts();
  return counts.waiting + counts.spooled > kBacklog;
}

std::function<bool()> IncidentBook::StoredBarrier() const { return history_->Barrier(); }

bool IncidentBook::IsAlerting(const JobId& job) const { return alerts_->IsDelivering(job); }

std::optional<StackChange> IncidentBook::AddStack(const StackResult& result) {
  const MutexLock lock(mutex_);
  const auto job = jobs_.find(result.job);
  if (job == jobs_.end()) return std::nullopt;
  Record* record = FindRecord(result.incident, &job->second);
  if (record == nullptr) return StackChange();
  record->dirty = true;
  SetPending(job->second, *record);
  record->awaited.Remove(result);
  if (result.is_rest) {
    AddToTree(result.stack, result.stack.rank(), &record->rest);
    return StackChange();
  }
  if (!result.is_reply) {
    AddFailure(result.stack, &record->incident);
    return std::nullopt;
  }
  record->has_new_stacks = true;
  StackChange change = ChangeSince(record->incident, result.stack);
  AddSample(result.stack, &record->incident);
  return change;
}

void IncidentBook::AddHostFacts(const JobKey& job, const std::string& incident,
                                const v1::HostFacts& facts) {
  const MutexLock lock(mutex_);
  const auto known = jobs_.find(job);
  Record* record = known == jobs_.end() ? nullptr : FindRecord(incident, &known->second);
  if (record == nullptr) return;
  AddToIncident(facts, &record->incident);
  record->dirty = true;
  record->unsaved = true;
  SetPending(known->second, *record);
  ++known->second.changes;
  ++changes_;
}

void IncidentBook::SetHostLabels(HostLabels labels) {
  const MutexLock lock(mutex_);
  host_labels_ = std::move(labels);
}

void IncidentBook::SetQuota(const IncidentQuotaLimits& limits) {
  const MutexLock lock(mutex_);
  quota_.SetLimits(limits);
}

void IncidentBook::BeginStop() {
  const MutexLock lock(mutex_);
  stopping_ = true;
}

void IncidentBook::Finish(SteadyTime begun) {
  if (alerts_ == nullptr) return;
  SendDueFirst(/*all=*/true);
  // With a history the next daemon tells the ends that wait for a calm.
  if (options_.history.path.empty()) SendDueEnds(INT64_MAX);
  alerts_->BeginFinish();
  reports_->Finish(begun + kReportsWithin);
  PublishPending();
  alerts_->Finish(begun + (options_.history.path.empty() ? kAlertsWithin : kSavedAlertsWithin));
  history_->Finish(begun + kHistoryWithin);
}

}  // namespace rollcall
