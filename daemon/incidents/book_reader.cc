// SPDX-License-Identifier: Apache-2.0
#include "daemon/incidents/book_reader.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/clean_text.h"
#include "daemon/diagnosis/hosts/host_blame.h"
#include "daemon/history/incident_groups.h"
#include "daemon/history/incident_list.h"
#include "daemon/incidents/incident_stacks.h"
#include "daemon/report/incident_proto.h"

namespace rollcall {
namespace {

constexpr int kRecurrenceDays = 7;
constexpr int kMostPids = 64;

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

v1::HostHangs::Hang BlamedHangOf(const v1::Incident& incident, const Verdict& verdict,
                                 const HostBlame& blame) {
  v1::HostHangs::Hang hang;
  hang.set_incident(incident.id());
  hang.set_tenant(incident.tenant());
  hang.set_job(incident.job());
  hang.set_cause(CauseName(verdict.cause));
  hang.set_is_broken(blame.is_broken);
  if (incident.verdicts().empty()) return hang;
  hang.set_summary(incident.verdicts(0).summary());
  for (const v1::Culprit& culprit : incident.verdicts(0).culprits()) {
    if (hang.pids_size() < kMostPids && culprit.pid() != 0) hang.add_pids(culprit.pid());
    if (hang.gpus_size() < kMostPids && !culprit.gpu_uuid().empty()) {
      hang.add_gpus(culprit.gpu_uuid());
    }
  }
  return hang;
}

}  // namespace

std::vector<v1::Incident> BookReader::All(const std::string& job) const {
  const std::string name = CleanText(job);
  return Collect(/*with_stacks=*/true, [&](const v1::Incident& incident) {
    return job.empty() || incident.job() == name;
  });
}

// The waits of a live incident grow without any other change, so it counts as it is now.
std::vector<v1::Incident> BookReader::Collect(
    bool with_stacks, const std::function<bool(const v1::Incident&)>& is_wanted) const {
  std::vector<v1::Incident> incidents;
  const MutexLock lock(store_->mutex);
  for (const auto& [key, job] : store_->table.jobs()) {
    for (const IncidentRecord& record : job.records) {
      const bool grows = Grows(job, record.incident);
      if (!grows && !is_wanted(record.incident)) continue;
      incidents.push_back(AsOfNow(job, record.incident, with_stacks));
      if (grows && !is_wanted(incidents.back())) incidents.pop_back();
    }
  }
  return incidents;
}

// The open incidents of this daemon, and those of others.
std::vector<v1::Incident> BookReader::WithOpen(const std::vector<v1::Incident>& newer,
                                               bool with_stacks) const {
  return Joined(
      Collect(with_stacks, [](const v1::Incident& incident) { return !incident.has_closed_at(); }),
      newer);
}

absl::StatusOr<v1::ListIncidentsResponse> BookReader::List(const v1::ListIncidentsRequest& request,
                                                           std::vector<v1::Incident> newer) const {
  if (request.grouped()) {
    v1::HistoryQuery::Groups groups;
    *groups.mutable_request() = request;
    return Ask(groups, newer, {});
  }
  v1::ListIncidentsResponse response = ListIncidents(request, std::move(newer));
  const int64_t now_ns = timeline_->WallNow();
  for (v1::Incident& incident : *response.mutable_incidents()) {
    incident.set_signature(SignatureOf(incident));
    incident.set_lost_rank_seconds(LostRankSeconds(incident, now_ns));
  }
  return response;
}

v1::ListIncidentsResponse BookReader::ListIncidents(const v1::ListIncidentsRequest& request,
                                                    std::vector<v1::Incident> newer) const {
  v1::ListIncidentsResponse response;
  if (!request.live_only()) {
    auto listed = writers_->history->List(request, WithOpen(newer, request.with_stacks()));
    if (listed.ok()) return *std::move(listed);
    response.set_note(absl::StrCat("only incidents since the daemon's start: ",
                                   std::string(listed.status().message())));
  }
  std::vector<v1::Incident> wanted =
      Collect(request.with_stacks(),
              [&](const v1::Incident& incident) { return IsSelected(incident, request); });
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

absl::StatusOr<v1::Incident> BookReader::Get(const std::string& id) const {
  std::optional<v1::Incident> found = FindInMemory(id);
  if (!found.has_value()) {
    absl::StatusOr<v1::Incident> kept = writers_->history->Get(id);
    if (absl::IsNotFound(kept.status())) return NoSuchIncident(id);
    if (!kept.ok()) return kept;
    found = *std::move(kept);
  }
  found->set_signature(SignatureOf(*found));
  found->set_lost_rank_seconds(LostRankSeconds(*found, timeline_->WallNow()));
  AddRecurrence(&*found);
  return *std::move(found);
}

std::optional<v1::Incident> BookReader::FindInMemory(const std::string& id) const {
  const MutexLock lock(store_->mutex);
  for (const auto& [key, job] : store_->table.jobs()) {
    for (const IncidentRecord& record : job.records) {
      if (record.incident.id() != id) continue;
      v1::Incident incident = AsOfNow(job, record.incident, true);
      *incident.mutable_stack_tree() = MergedStacks(incident, record.rest);
      return incident;
    }
  }
  return std::nullopt;
}

// Without an answer of the history the incident has no recurrence: that is not a reason to hide the
// rest.
void BookReader::AddRecurrence(v1::Incident* incident) const {
  if (!incident->has_confirmed_at() || incident->verdicts().empty()) return;
  v1::HistoryQuery::Groups query;
  query.set_without(HangOf(*incident));
  v1::ListIncidentsRequest& alike = *query.mutable_request();
  alike.add_tenants(ReadJobKey(*incident).tenant);
  alike.set_signature(incident->signature());
  *alike.mutable_until() = incident->opened_at();
  *alike.mutable_from() = incident->opened_at();
  alike.mutable_from()->set_seconds(incident->opened_at().seconds() - kRecurrenceDays * 86'400);
  const auto earlier = writers_->history->Ask(query);
  if (!earlier.ok() || earlier->groups().empty()) return;
  v1::IncidentGroup* group = incident->mutable_recurrence();
  *group = earlier->groups(0);
  AddHang(*incident, group);
  group->set_sentence(RecurrenceInWords(*group, kRecurrenceDays));
}

std::vector<v1::Silence> BookReader::ListSilences(const Tenants& tenants) const {
  const MutexLock lock(store_->mutex);
  return store_->silenced.List(tenants);
}

bool BookReader::HasJob(const JobId& job) const {
  const MutexLock lock(store_->mutex);
  return store_->table.Has(job);
}

std::set<JobKey> BookReader::OpenJobs() const {
  std::set<JobKey> open;
  const MutexLock lock(store_->mutex);
  for (const auto& [key, job] : store_->table.jobs()) {
    if (job.life.live()) open.insert(key);
  }
  return open;
}

HangsByHost BookReader::BlamedHosts() const {
  HangsByHost hangs;
  const MutexLock lock(store_->mutex);
  for (const auto& [key, job] : store_->table.jobs()) {
    const auto& live = job.life.live();
    if (!live || live->is_stored || live->state != IncidentState::kConfirmed) continue;
    if (ownership_ != nullptr && !ownership_->MayAlert(key)) continue;
    const std::optional<HostBlame> blame = BlameHost(live->verdicts.front());
    const IncidentRecord& newest = job.records.back();
    if (!blame.has_value() || newest.incident.id() != live->id || newest.is_over_quota) continue;
    hangs[blame->host].push_back(BlamedHangOf(newest.incident, live->verdicts.front(), *blame));
  }
  return hangs;
}

JobBrief BookReader::Brief(const JobKey& job) const {
  JobBrief brief;
  const MutexLock lock(store_->mutex);
  const JobIncidents* const known = store_->table.Find(job);
  if (known == nullptr) return brief;
  brief.warnings = known->warnings;
  if (!known->records.empty()) {
    brief.last = Summarize(AsOfNow(*known, known->records.back().incident, false));
  } else if (known->last_closed.has_confirmed_at()) {
    brief.last = Summarize(known->last_closed);
  }
  if (known->life.live()) brief.live = Summarize(*known->life.live());
  return brief;
}

IncidentCounts BookReader::CountIncidents(const JobKey& job, int64_t now_ns) const {
  IncidentCounts counts;
  const MutexLock lock(store_->mutex);
  const JobIncidents* const known = store_->table.Find(job);
  if (known == nullptr) return counts;
  counts.by_cause = known->by_cause;
  counts.hung_seconds = known->hung_seconds;
  if (!known->life.live()) return counts;
  const Incident& live = *known->life.live();
  counts.open_cause = CauseName(live.verdicts.front().cause);
  if (live.state == IncidentState::kConfirmed) {
    counts.hung_seconds[counts.open_cause] += static_cast<double>(now_ns - live.opened_ns) / 1e9;
  }
  return counts;
}

DeliveryCounts BookReader::CountDeliveries() const {
  const MutexLock lock(store_->mutex);
  return {writers_->reports->counts(),    writers_->history->counts(), writers_->alerts->sent(),
          writers_->alerts->failed(),     writers_->alerts->waiting(), store_->silenced.alerts(),
          store_->silenced.CountLasting()};
}

size_t BookReader::CountKnownHosts() const {
  size_t hosts = 0;
  const MutexLock lock(store_->mutex);
  for (const auto& [key, job] : store_->table.jobs()) hosts += job.hosts.missing().size();
  return hosts;
}

uint64_t BookReader::Changes() const {
  const MutexLock lock(store_->mutex);
  return store_->table.changes();
}

uint64_t BookReader::Changes(const JobKey& job) const {
  const MutexLock lock(store_->mutex);
  const JobIncidents* const known = store_->table.Find(job);
  return known == nullptr ? 0 : known->changes;
}

}  // namespace rollcall
