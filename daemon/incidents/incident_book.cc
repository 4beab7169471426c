// SPDX-License-Identifier: Apache-2.0
#include "daemon/incidents/incident_book.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/durations.h"
#include "base/log/log_fields.h"
#include "daemon/agents/stack_motion.h"
#include "daemon/diagnosis/post_mortem.h"
#include "daemon/history/history_write.h"
#include "daemon/report/gpu/gpu_dumps.h"
#include "daemon/report/host_facts_proto.h"
#include "daemon/report/public_ranks.h"
#include "daemon/report/stack_merge.h"
#include "proto/timestamps.h"

namespace rollcall {
namespace {

// Shares of the time that the daemon has to stop. The rest is for gRPC and HTTP.
// The history comes last, because it records which alerts were delivered.
constexpr auto kReportsWithin = std::chrono::seconds(6);
constexpr auto kAlertsWithin = std::chrono::seconds(9);
constexpr auto kHistoryWithin = std::chrono::seconds(11);
// Where a restarted daemon sends the rest.
constexpr auto kSavedAlertsWithin = std::chrono::seconds(3);

// Whether a rank has come through a call: it has begun the next one.
bool MakesCalls(const JobState& state) {
  return std::any_of(
      state.communicators.begin(), state.communicators.end(), [](const auto& communicator) {
        const auto& members = communicator.second.members;
        return std::any_of(members.begin(), members.end(),
                           [](const auto& member) { return member.second.entered >= 2; });
      });
}

// Removes warnings from the verdicts and stores them. Returns the other verdicts.
std::vector<Verdict> SetWarnings(std::vector<Verdict> verdicts, JobIncidents* job) {
  const auto warnings = std::stable_partition(verdicts.begin(), verdicts.end(),
                                              [](const Verdict& v) { return !IsWarning(v.cause); });
  job->warnings.clear();
  for (auto at = warnings; at != verdicts.end(); ++at) job->warnings.push_back(at->summary);
  verdicts.erase(warnings, verdicts.end());
  return verdicts;
}

// The verdicts from which incidents follow. `not_seen`: empty if the whole job is seen.
std::vector<Verdict> Prepare(const JobState& state, std::vector<Verdict> verdicts,
                             const std::string& not_seen, JobIncidents* job) {
  verdicts = SetWarnings(std::move(verdicts), job);
  const bool hangs = job->life.live() && job->life.live()->state == IncidentState::kConfirmed;
  std::vector<Verdict> end;
  if (!hangs && !job->is_end_judged) end = JudgeTheEnd(state, &job->judged_ends);
  if (!end.empty()) verdicts = std::move(end);
  if (not_seen.empty()) return verdicts;
  Weaken(not_seen, &verdicts);
  // A verdict that a report has already may lack hosts, too.
  IncidentRecord* const live = FindLive(job);
  if (live != nullptr && job->life.live()->is_stored) Weaken(not_seen, &live->incident);
  return verdicts;
}

}  // namespace

IncidentBook::IncidentBook(IncidentBookOptions options, Timeline* timeline,
                           DaemonCounters* counters)
    : options_(std::move(options)),
      timeline_(timeline),
      counters_(counters),
      store_(options_, &writers_, timeline, counters),
      reader_(&store_, &writers_, timeline, options_.ownership),
      actions_(&store_, &writers_),
      takeover_(&store_, &writers_, timeline, options_.ownership) {}

absl::Status IncidentBook::Start() {
  absl::Status usable = writers_.Start(options_, counters_);
  if (!usable.ok()) return usable;
  {
    const MutexLock lock(store_.mutex);
    store_.returning.Begin(timeline_->Now(), writers_.is_kept);
  }
  takeover_.Restore();
  return absl::OkStatus();
}

std::vector<StackRequest> IncidentBook::Apply(const JobState& state, std::vector<Verdict> verdicts,
                                              int64_t now_ns, int64_t began_ns) {
  const MutexLock lock(store_.mutex);
  JobIncidents* const job = store_.table.Open(state.key, *writers_.history);
  job->has_returned = true;
  job->is_awaited = false;
  const std::vector<std::string> hosts = job->hosts.Update(state, now_ns);
  if (!hosts.empty()) {
    writers_.SaveForLater(WriteOfHosts(state.key, hosts, timeline_->ToWallTime(now_ns)));
  }
  if (store_.returning.Awaits(*job, now_ns)) return {};
  const std::string not_seen = store_.returning.WhatIsNotSeen(state, *job, began_ns);
  const View view = not_seen.empty() ? View::kWhole : View::kPart;
  verdicts = Prepare(state, std::move(verdicts), not_seen, job);
  // The history, which has the numbers of earlier incidents, is not readable. The time in seconds
  // is larger than all of these, and than the numbers that an earlier daemon took from the time.
  if (!store_.returning.is_known() && !job->life.live()) {
    job->life.RaiseCount(static_cast<int>(timeline_->ToWallTime(now_ns) / kSecond));
  }
  std::vector<StackRequest> requests =
      ActOnEvents(state, job->life.Update(state, verdicts, now_ns, options_.limits, view), job);
  bool has_new_stacks = false;
  for (IncidentRecord& record : job->records) {
    has_new_stacks |= std::exchange(record.has_new_stacks, false);
    record.awaited.Hear(state);
  }
  store_.alerts.SayWhatIsNew(has_new_stacks, job);
  job->has_made_calls = job->has_made_calls || MakesCalls(state);
  store_.rows.GoOn(state.key, timeline_->Now());
  if (job->may_lack_alert) store_.alerts.SendLacking(verdicts, job);
  return requests;
}

std::vector<StackRequest> IncidentBook::ActOnEvents(const JobState& state,
                                                    const std::vector<IncidentEvent>& events,
                                                    JobIncidents* job) {
  std::vector<StackRequest> requests;
  if (!events.empty()) job->ranks = std::max(job->ranks, PublicRanks(state).count());
  for (const IncidentEvent& event : events) {
    Act(event, job);
    if (!event.take_stacks_of.empty()) {
      requests.push_back(MakeStackRequest(state, event));
      if (requests.back().only_network) continue;  // the incident has no stacks of these
      IncidentRecord* record = FindRecord(event.incident.id, job);
      record->awaited.Add(requests.back(), timeline_->Now());
    }
    if (event.kind != IncidentEvent::Kind::kEnded) continue;
    // The end of a job is not news after its hang was reported.
    for (const auto& [id, comm] : state.communicators) job->judged_ends.insert(id);
  }
  return requests;
}

void IncidentBook::Act(const IncidentEvent& event, JobIncidents* job) {
  IncidentRecord* const record = AddRecord(event.incident.id, job);
  Record(event, *job, record);
  store_.table.SetChanged(job, record);
  if (event.kind == IncidentEvent::Kind::kConfirmed) {
    record->confirmed_ns = event.incident.confirmed_ns;
    store_.silenced.Check(*job, record);  // so that the history has it at once
  }
  if (HasNews(event.kind)) {
    store_.publisher.Save(record);  // before its alert
  }
  Count(event, job);
  store_.alerts.Act(event, job, record);
  store_.quota.Update(job->key, record->incident);
  if (event.incident.closed_ns != 0) store_.publisher.DropIfOverQuota(event.incident, job);
  if (options_.log_incidents && event.kind == IncidentEvent::Kind::kConfirmed) {
    const LogFields fields(
        LogFields::List{{kJobField, job->key.job}, {kIncidentField, event.incident.id}});
    spdlog::info("{}: {}", event.incident.id, event.incident.verdicts.front().summary);
  }
}

// What people see of the incident, with what the hang costs, and where: how many ranks, since when,
// and the labels of the culprits' hosts.
void IncidentBook::Record(const IncidentEvent& event, const JobIncidents& job,
                          IncidentRecord* record) {
  Incident now = event.incident;
  for (int64_t* time_ns : {&now.opened_ns, &now.confirmed_ns, &now.closed_ns}) {
    *time_ns = timeline_->ToWallTime(*time_ns);
  }
  Rewrite(now, record);
  v1::Incident* const incident = &record->incident;
  incident->set_ranks(std::max(incident->ranks(), job.ranks));
  rollcall::SetHostLabels(store_.host_labels, incident);
  if (event.kind == IncidentEvent::Kind::kOpened) {
    const int64_t since_ns = event.incident.opened_ns - event.incident.verdicts.front().waited_ns;
    *incident->mutable_waits_since() = ToTimestamp(timeline_->ToWallTime(since_ns));
  }
  store_.publisher.Judge(event, job.key, record);
  incident->set_abandoned(job.is_abandoned && !job.has_returned);
}

bool IncidentBook::NeedsDiagnosis(const JobKey& job) const {
  const MutexLock lock(store_.mutex);
  const JobIncidents* const known = store_.table.Find(job);
  if (known == nullptr) return false;
  return known->life.live().has_value() || store_.returning.Awaits(*known, timeline_->Now());
}

void IncidentBook::Forget(const JobKey& job, int64_t now_ns) {
  const MutexLock lock(store_.mutex);
  JobIncidents* const known = store_.table.Find(job);
  if (known == nullptr) return;
  Abandon(known, now_ns);
  store_.publisher.DraftLast(known);
  store_.table.Erase(job);
  writers_.history->Apply(WriteOfForgottenHosts(job));
}

// Ends the job's incident, although the job may live.
void IncidentBook::Abandon(JobIncidents* job, int64_t now_ns) {
  job->is_abandoned = true;
  job->has_returned = false;
  for (const IncidentEvent& event : job->life.End(now_ns)) Act(event, job);
}

// The restored jobs that have not come back in time.
void IncidentBook::EndAbandoned() {
  const int64_t now_ns = timeline_->Now();
  const MutexLock lock(store_.mutex);
  std::vector<JobKey> gone;
  for (auto& [key, job] : store_.table.jobs()) {
    const int64_t away_ns = now_ns - job.restored_ns;
    if (!job.is_awaited || away_ns < kJobReturnsWithinNs) continue;
    if (job.is_abandoned) {
      if (away_ns >= 2 * kJobReturnsWithinNs) gone.push_back(key);
      continue;
    }
    Abandon(&job, now_ns);
    // After the alert: a daemon that continues here looks for it only if it has the hosts.
    writers_.history->Apply(WriteOfForgottenHosts(key));
    job.hosts.SetUnrecorded();
  }
  for (const JobKey& key : gone) store_.table.Erase(key);
}

std::optional<StackChange> IncidentBook::AddStack(const StackResult& result) {
  const MutexLock lock(store_.mutex);
  JobIncidents* const job = store_.table.Find(result.job);
  if (job == nullptr) return std::nullopt;
  IncidentRecord* const record = FindRecord(result.incident, job);
  if (record == nullptr) return StackChange();
  record->dirty = true;
  store_.table.SetPending(*job, *record);
  record->awaited.Remove(result);
  if (result.is_rest) {
    AddToTree(result.stack, result.stack.rank(), &record->rest);
    return StackChange();
  }
  if (!result.is_reply || ShowsNothing(result.stack)) {
    AddFailure(result.stack, &record->incident);
    return std::nullopt;
  }
  record->has_new_stacks = true;
  StackChange change = ChangeSince(record->incident, result.stack);
  AddSample(result.stack, &record->incident);
  return change;
}

void IncidentBook::Change(const JobKey& job, const std::string& incident,
                          const std::function<void(IncidentRecord*)>& change) {
  const MutexLock lock(store_.mutex);
  IncidentRecord* const record = store_.table.Find(job, incident);
  if (record == nullptr) return;
  change(record);
  record->dirty = true;
  store_.table.SetChanged(store_.table.Find(job), record);
}

void IncidentBook::AddHostFacts(const JobKey& job, const std::string& incident,
                                const v1::HostFacts& facts) {
  Change(job, incident,
         [&facts](IncidentRecord* record) { AddToIncident(facts, &record->incident); });
}

void IncidentBook::AddGpuDump(const JobKey& job, const std::string& incident,
                              const v1::GpuDump& dump) {
  Change(job, incident, [&dump](IncidentRecord* record) {
    AddToIncident(dump, &record->incident);
    record->unsaved = true;
  });
}

void IncidentBook::Publish() {
  takeover_.Restore();
  EndAbandoned();
  {
    const MutexLock lock(store_.mutex);
    store_.alerts.SendDue();
  }
  PublishPending();
}

void IncidentBook::PublishPending() {
  takeover_.SaveAgain();
  std::vector<IncidentPublisher::Draft> drafts;
  {
    const MutexLock lock(store_.mutex);
    drafts = store_.publisher.TakeDrafts();
  }
  for (IncidentPublisher::Draft& draft : drafts) WriteReport(std::move(draft));
}

// Merging the stacks of thousands of ranks takes long, and diagnoses and queries need the mutex.
void IncidentBook::WriteReport(IncidentPublisher::Draft draft) {
  const v1::StackTree merged = MergedStacks(draft.incident, draft.rest);
  {
    const MutexLock lock(store_.mutex);
    IncidentRecord* const record = store_.table.Find(draft.job, draft.incident.id());
    if (record != nullptr) {
      *record->incident.mutable_stack_tree() = merged;
      record->unsaved = true;
      store_.table.SetPending(*store_.table.Find(draft.job), *record);
    }
  }
  *draft.incident.mutable_stack_tree() = merged;
  if (draft.is_last) writers_.history->Save(draft.incident);  // no other thread saves these stacks
  // A report describes the hang. The end of the job afterwards (possibly caused by --on-hang) is in
  // closed_at, and the hang stays confirmed.
  if (draft.incident.state() == "ended") draft.incident.set_state("confirmed");
  writers_.reports->Put(std::move(draft.incident), draft.folder);
}

void IncidentBook::SetHostLabels(HostLabels labels) {
  const MutexLock lock(store_.mutex);
  store_.host_labels = std::move(labels);
}

void IncidentBook::SetQuota(const IncidentQuotaLimits& limits) {
  const MutexLock lock(store_.mutex);
  store_.quota.SetLimits(limits);
}

void IncidentBook::BeginStop() {
  const MutexLock lock(store_.mutex);
  store_.alerts.BeginStop();
  store_.publisher.BeginStop();
}

void IncidentBook::Finish(SteadyTime begun) {
  if (writers_.alerts == nullptr) return;
  {
    const MutexLock lock(store_.mutex);
    // With a history the next daemon reports the ends that wait for a calm.
    store_.alerts.SendLast(/*ends=*/!writers_.is_kept);
  }
  writers_.alerts->BeginFinish();
  writers_.reports->Finish(begun + kReportsWithin);
  PublishPending();
  writers_.alerts->Finish(begun + (writers_.is_kept ? kSavedAlertsWithin : kAlertsWithin));
  writers_.history->Finish(begun + kHistoryWithin);
}

}  // namespace rollcall
