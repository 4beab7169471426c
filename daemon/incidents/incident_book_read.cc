// SPDX-License-Identifier: Apache-2.0
// What people read from the incident book.
#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/clean_text.h"
#include "base/mutex.h"
#include "daemon/history/incident_groups.h"
#include "daemon/history/incident_growth.h"
#include "daemon/history/incident_list.h"
#include "daemon/incidents/incident_book.h"
#include "daemon/incidents/incident_brief.h"
#include "daemon/incidents/incident_stacks.h"
#include "daemon/report/incident_proto.h"
#include "daemon/report/stack_places.h"

namespace rollcall {
namespace {

constexpr int kRecurrenceDays = 7;

v1::IncidentSummary Summarize(const v1::Incident& incident) {
  v1::IncidentSummary summary;
  summary.set_id(incident.id());
  summary.set_state(incident.state());
  if (!incident.verdicts().empty()) {
    summary.set_cause(incident.verdicts(0).cause());
    summary.set_summary(incident.verdicts(0).summary());
  }
  *summary.mutable_opened_at() = incident.opened_at();
  summary.set_acknowledged_by(incident.acknowledged().who());
  summary.set_repeat(incident.repeat().sentence());
  return summary;
}

// Without an answer of the history the incident has no recurrence: that is no reason to hide the
// rest.
void AddRecurrence(const HistoryKeeper& history, v1::Incident* incident) {
  if (!incident->has_confirmed_at() || incident->verdicts().empty()) return;
  v1::ListIncidentsRequest alike;
  alike.add_tenants(ReadJobKey(*incident).tenant);
  alike.set_signature(incident->signature());
  *alike.mutable_until() = incident->opened_at();
  *alike.mutable_from() = incident->opened_at();
  alike.mutable_from()->set_seconds(incident->opened_at().seconds() - kRecurrenceDays * 86'400);
  const auto earlier = history.Groups(alike, HangOf(*incident));
  if (!earlier.ok() || earlier->groups().empty()) return;
  v1::IncidentGroup* group = incident->mutable_recurrence();
  *group = earlier->groups(0);
  AddHang(*incident, group);
  group->set_sentence(RecurrenceInWords(*group, kRecurrenceDays));
}

template <typename Predicate>
void EraseIf(std::vector<v1::Incident>* incidents, Predicate predicate) {
  incidents->erase(std::remove_if(incidents->begin(), incidents->end(), predicate),
                   incidents->end());
}

// Of an incident that both have, the state in `own`.
std::vector<v1::Incident> Joined(std::vector<v1::Incident> own,
                                 const std::vector<v1::Incident>& others) {
  std::set<std::string> known;
  for (const v1::Incident& incident : own) known.insert(incident.id());
  for (const v1::Incident& other : others) {
    if (known.insert(other.id()).second) own.push_back(other);
  }
  return own;
}

JobBrief::Live Summarize(const Incident& live) {
  const Verdict& root = live.verdicts.front();
  JobBrief::Live brief = {
      live.id, live.state == IncidentState::kConfirmed, root.summary, {}, live.opened_ns};
  for (const Culprit& culprit : root.culprits) {
    // A job may claim many ranks of which none has reported: the page needs only some of these.
    const auto named = std::min(culprit.ranks, static_cast<int32_t>(kMostListed));
    for (int32_t i = 0; i < named; ++i) brief.culprits.push_back(culprit.rank + i);
  }
  return brief;
}

}  // namespace

std::vector<v1::Incident> IncidentBook::All(const std::string& job) const {
  std::vector<v1::Incident> incidents;
  const MutexLock lock(mutex_);
  for (const auto& [name, known] : jobs_) {
    if (!job.empty() && name.job != CleanText(job)) continue;
    for (const Record& record : known.records) {
      incidents.push_back(AsOfNow(known, record.incident, true));
    }
  }
  return incidents;
}

absl::StatusOr<v1::ListIncidentsResponse> IncidentBook::List(
    const v1::ListIncidentsRequest& request, std::vector<v1::Incident> newer) const {
  if (request.grouped()) {
    absl::StatusOr<v1::ListIncidentsResponse> groups = history_->Groups(request);
    if (groups.ok()) AddGrowth(Joined(ListOpen(false), newer), request, WallNow(), &*groups);
    return groups;
  }
  v1::ListIncidentsResponse response = ListIncidents(request, std::move(newer));
  const int64_t now_ns = WallNow();
  for (v1::Incident& incident : *response.mutable_incidents()) {
    incident.set_signature(SignatureOf(incident));
    incident.set_lost_rank_seconds(LostRankSeconds(incident, now_ns));
  }
  return response;
}

absl::StatusOr<v1::CountIncidentsResponse> IncidentBook::CountIncidents(
    const v1::CountIncidentsRequest& request, const std::vector<v1::Incident>& newer,
    const std::string& who) const {
  absl::StatusOr<v1::CountIncidentsResponse> counts = history_->Count(request, who);
  if (counts.ok()) {
    // The framework is known by the stacks.
    const bool with_stacks = request.by() == "framework";
    AddGrowth(Joined(ListOpen(with_stacks), newer), request, WallNow(), &*counts);
  }
  return counts;
}

v1::ListIncidentsResponse IncidentBook::ListIncidents(const v1::ListIncidentsRequest& request,
                                                      std::vector<v1::Incident> newer) const {
  v1::ListIncidentsResponse response;
  if (!request.live_only()) {
    auto listed = history_->List(request, Joined(ListOpen(request.with_stacks()), newer));
    if (listed.ok()) return *std::move(listed);
    response.set_note(absl::StrCat("only incidents since the daemon's start: ",
                                   std::string(listed.status().message())));
  }
  std::vector<v1::Incident> wanted = ListSelected(request);
  if (!request.live_only()) {
    EraseIf(&newer, [&](const v1::Incident& other) { return !IsSelected(other, request); });
    wanted = Joined(std::move(wanted), newer);
    const Window window = WindowFor(request, static_cast<int64_t>(wanted.size()));
    return Merge(request, std::move(wanted), window, std::move(response));
  }
  if (request.open_only()) {
    EraseIf(&wanted, [](const v1::Incident& incident) { return incident.has_closed_at(); });
  }
  std::reverse(wanted.begin(), wanted.end());
  for (v1::Incident& incident : wanted) response.add_incidents()->Swap(&incident);
  response.set_total(response.incidents_size());
  return response;
}

absl::StatusOr<v1::Incident> IncidentBook::Get(const std::string& id) const {
  absl::StatusOr<v1::Incident> found = Find(id);
  if (!found.ok()) return found;
  found->set_signature(SignatureOf(*found));
  found->set_lost_rank_seconds(LostRankSeconds(*found, WallNow()));
  AddRecurrence(*history_, &*found);
  return found;
}

absl::StatusOr<v1::Incident> IncidentBook::Find(const std::string& id) const {
  {
    const MutexLock lock(mutex_);
    for (const auto& [name, job] : jobs_) {
      for (const Record& record : job.records) {
        if (record.incident.id() != id) continue;
        v1::Incident incident = AsOfNow(job, record.incident, true);
        *incident.mutable_stack_tree() = MergedStacks(incident, record.rest);
        return incident;
      }
    }
  }
  absl::StatusOr<v1::Incident> kept = history_->Get(id);
  if (absl::IsNotFound(kept.status())) return NoSuchIncident(id);
  return kept;
}

std::vector<v1::Incident> IncidentBook::ListOpen(bool with_stacks) const {
  std::vector<v1::Incident> incidents;
  const MutexLock lock(mutex_);
  for (const auto& [name, job] : jobs_) {
    for (const Record& record : job.records) {
      if (record.incident.has_closed_at()) continue;
      incidents.push_back(AsOfNow(job, record.incident, with_stacks));
    }
  }
  return incidents;
}

std::vector<v1::Incident> IncidentBook::ListSelected(
    const v1::ListIncidentsRequest& request) const {
  std::vector<v1::Incident> incidents;
  const MutexLock lock(mutex_);
  for (const auto& [name, job] : jobs_) {
    for (const Record& record : job.records) {
      const bool grows = Grows(job, record.incident);
      if (!grows && !IsSelected(record.incident, request)) continue;
      incidents.push_back(AsOfNow(job, record.incident, request.with_stacks()));
      if (grows && !IsSelected(incidents.back(), request)) incidents.pop_back();
    }
  }
  return incidents;
}

// The waits of a live incident grow without any other change.
bool IncidentBook::Grows(const JobIncidents& job, const v1::Incident& incident) {
  const auto& live = job.life.live();
  return live && live->id == incident.id() && !live->is_stored;
}

void IncidentBook::RefreshVerdicts(const JobIncidents& job, const v1::Incident& with_stacks,
                                   v1::Incident* incident) {
  if (!Grows(job, *incident)) return;
  incident->mutable_verdicts()->Swap(ToProto(*job.life.live()).mutable_verdicts());
  AddSites(with_stacks, incident);
}

v1::Incident IncidentBook::AsOfNow(const JobIncidents& job, const v1::Incident& incident,
                                   bool with_stacks) {
  v1::Incident now = with_stacks ? incident : WithoutStacks(incident);
  RefreshVerdicts(job, incident, &now);
  return now;
}

std::set<JobKey> IncidentBook::OpenJobs() const {
  std::set<JobKey> open;
  const MutexLock lock(mutex_);
  for (const auto& [key, job] : jobs_) {
    if (job.life.live()) open.insert(key);
  }
  return open;
}

JobBrief IncidentBook::Brief(const JobKey& job) const {
  JobBrief brief;
  const MutexLock lock(mutex_);
  const auto known = jobs_.find(job);
  if (known == jobs_.end()) return brief;
  const JobIncidents& incidents = known->second;
  brief.warnings = incidents.warnings;
  if (!incidents.records.empty()) {
    brief.last = Summarize(AsOfNow(incidents, incidents.records.back().incident, false));
  } else if (incidents.last_closed.has_confirmed_at()) {
    brief.last = Summarize(incidents.last_closed);
  }
  if (incidents.life.live()) brief.live = Summarize(*incidents.life.live());
  return brief;
}

IncidentCounts IncidentBook::CountIncidents(const JobKey& job, int64_t now_ns) const {
  IncidentCounts counts;
  const MutexLock lock(mutex_);
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
  const MutexLock lock(mutex_);
  return {reports_->counts(), history_->counts(), alerts_->sent(),           alerts_->failed(),
          alerts_->waiting(), alerts_silenced_,   silences_.Count(WallNow())};
}

size_t IncidentBook::CountKnownHosts() const {
  size_t hosts = 0;
  const MutexLock lock(mutex_);
  for (const auto& [key, job] : jobs_) hosts += job.hosts.missing().size();
  return hosts;
}

uint64_t IncidentBook::Changes() const {
  const MutexLock lock(mutex_);
  return changes_;
}

uint64_t IncidentBook::Changes(const JobKey& job) const {
  const MutexLock lock(mutex_);
  const auto known = jobs_.find(job);
  return known == jobs_.end() ? 0 : known->second.changes;
}

}  // namespace rollcall
