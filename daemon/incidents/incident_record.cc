// SPDX-License-Identifier: Apache-2.0
#include "daemon/incidents/incident_record.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <utility>

#include "daemon/incidents/incident_brief.h"
#include "daemon/report/incident_proto.h"
#include "daemon/report/stack_places.h"

namespace rollcall {
namespace {

constexpr size_t kIncidentsKept = 100;  // of one job

// Keeps the recorded wall-clock times, even if someone has set the clock since.
void KeepTimes(const v1::Incident& known, v1::Incident* incident) {
  if (known.has_opened_at()) *incident->mutable_opened_at() = known.opened_at();
  if (known.has_confirmed_at()) *incident->mutable_confirmed_at() = known.confirmed_at();
  if (known.has_closed_at()) *incident->mutable_closed_at() = known.closed_at();
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

// A wait has turned into a contradiction: the culprits have come to their odd call since their
// samples, which show what they did before. New ones are on their way.
void ForgetEarlierSamples(const Incident& now, v1::Incident* known) {
  if (known->verdicts().empty() || now.verdicts.empty()) return;
  const Verdict& root = now.verdicts.front();
  if (!IsContradiction(root.cause) || known->verdicts(0).cause() == CauseName(root.cause)) return;
  std::set<std::pair<std::string, int32_t>> culprits;
  for (const Culprit& culprit : root.culprits) culprits.insert({culprit.host, culprit.pid});
  auto* stacks = known->mutable_stacks();
  stacks->erase(std::remove_if(stacks->begin(), stacks->end(),
                               [&](const v1::ProcessStack& stack) {
                                 return culprits.count({stack.host(), stack.pid()}) != 0;
                               }),
                stacks->end());
}

// `with_stacks`: the whole incident, whose stacks have the lines.
void TakeVerdicts(const Incident& live, const v1::Incident& with_stacks, v1::Incident* incident) {
  incident->mutable_verdicts()->Swap(ToProto(live).mutable_verdicts());
  AddSites(with_stacks, incident);
}

}  // namespace

IncidentRecord* FindRecord(const std::string& incident, JobIncidents* job) {
  const auto at = std::find_if(
      job->records.begin(), job->records.end(),
      [&incident](const IncidentRecord& record) { return record.incident.id() == incident; });
  return at == job->records.end() ? nullptr : &*at;
}

IncidentRecord* FindLive(JobIncidents* job) {
  return job->life.live() ? FindRecord(job->life.live()->id, job) : nullptr;
}

IncidentRecord* AddRecord(const std::string& incident, JobIncidents* job) {
  IncidentRecord* known = FindRecord(incident, job);
  if (known != nullptr) return known;
  if (job->records.size() >= kIncidentsKept) job->records.erase(job->records.begin());
  return &job->records.emplace_back();
}

// Only the fields of the diagnosis change: what is added to an incident later needs nothing here.
void Rewrite(const Incident& now, IncidentRecord* record) {
  v1::Incident* const known = &record->incident;
  v1::Incident diagnosed = ToProto(now);
  if (now.is_stored) {
    diagnosed.mutable_verdicts()->Swap(known->mutable_verdicts());
    diagnosed.mutable_versions()->Swap(known->mutable_versions());
  }
  KeepTimes(*known, &diagnosed);
  if (!now.is_stored) ForgetEarlierSamples(now, known);
  const bool is_restored = record->confirmed_ns == 0 && known->has_confirmed_at();
  if (is_restored) KeepAdvice(*known, &diagnosed);
  v1::Incident::GetReflection()->SwapFields(known, &diagnosed, DiagnosedFields());
  known->set_rollcall_version(ROLLCALL_VERSION);
  known->set_ended_ranks(static_cast<int32_t>(now.ended_ranks));
  known->set_report_path(record->folder);
  if (record->is_over_quota) known->clear_report_note();
  AddSites(known);
  record->dirty = true;
  record->unsaved = true;
}

void Count(const IncidentEvent& event, JobIncidents* job) {
  const Incident& incident = event.incident;
  const char* cause = CauseName(incident.verdicts.front().cause);
  if (event.kind == IncidentEvent::Kind::kConfirmed) ++job->by_cause[cause];
  if (incident.closed_ns == 0 || incident.confirmed_ns == 0) return;
  job->hung_seconds[cause] += static_cast<double>(incident.closed_ns - incident.opened_ns) / 1e9;
}

bool Grows(const JobIncidents& job, const v1::Incident& incident) {
  const auto& live = job.life.live();
  return live && live->id == incident.id() && !live->is_stored;
}

void RefreshVerdicts(const JobIncidents& job, IncidentRecord* record) {
  if (!Grows(job, record->incident)) return;
  TakeVerdicts(*job.life.live(), record->incident, &record->incident);
}

v1::Incident AsOfNow(const JobIncidents& job, const v1::Incident& incident, bool with_stacks) {
  v1::Incident now = with_stacks ? incident : WithoutStacks(incident);
  if (Grows(job, incident)) TakeVerdicts(*job.life.live(), incident, &now);
  return now;
}

}  // namespace rollcall
