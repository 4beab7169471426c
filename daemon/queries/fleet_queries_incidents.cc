// SPDX-License-Identifier: Apache-2.0
// Incidents and silences of all daemons on one database.
#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "daemon/history/history.h"
#include "daemon/history/incident_list.h"
#include "daemon/queries/fleet_queries.h"

namespace rollcall {
namespace {

// Adds to `response` what it lacks, newest first.
void AddLive(std::vector<v1::Incident> others, v1::ListIncidentsResponse* response) {
  std::vector<v1::Incident> all;
  std::set<std::string> known;
  for (v1::Incident& own : *response->mutable_incidents()) others.push_back(std::move(own));
  // What this daemon has comes last, and counts first.
  for (auto at = others.rbegin(); at != others.rend(); ++at) {
    if (known.insert(at->id()).second) all.push_back(std::move(*at));
  }
  std::sort(all.begin(), all.end(), &ComesBefore);
  response->clear_incidents();
  for (v1::Incident& incident : all) *response->add_incidents() = std::move(incident);
  response->set_total(response->incidents_size());
}

}  // namespace

// What the others have in memory and `request` selects. `silent`: those that do not answer.
std::vector<v1::Incident> FleetQueries::AskForIncidents(const v1::ListIncidentsRequest& request,
                                                        std::vector<std::string>* silent) const {
  const std::vector<DaemonRow> others = peers_->Others();
  auto answers = AskEach(others, request);
  std::vector<v1::Incident> incidents;
  for (size_t i = 0; i < others.size(); ++i) {
    if (!answers[i].ok()) {
      silent->push_back(others[i].name);
      continue;
    }
    for (v1::Incident& incident : *answers[i]->mutable_incidents()) {
      incidents.push_back(std::move(incident));
    }
  }
  return incidents;
}

std::vector<DaemonRow> FleetQueries::WithDatabase(const std::vector<DaemonRow>& daemons) const {
  v1::ListIncidentsRequest newest;  // the answer has a note unless it is that of the database
  newest.set_limit(1);
  newest.set_rows_only(true);
  const auto answers = AskEach(daemons, newest);
  std::vector<DaemonRow> result;
  for (size_t i = 0; i < daemons.size(); ++i) {
    if (answers[i].ok() && answers[i]->note().empty()) result.push_back(daemons[i]);
  }
  return result;
}

// This daemon's queries with all open incidents of the others: a request may select the state in
// the history, and not the newest one. The history has those of a silent daemon, as they were some
// seconds ago.
std::unique_ptr<QuerySource> FleetQueries::LocalWithOpen(bool with_stacks) const {
  v1::ListIncidentsRequest open;
  open.set_live_only(true);
  open.set_open_only(true);
  open.set_with_stacks(with_stacks);
  std::vector<std::string> silent;
  return local_->WithNewer(AskForIncidents(open, &silent));
}

absl::StatusOr<v1::ListIncidentsResponse> FleetQueries::ListIncidents(
    const v1::ListIncidentsRequest& request) const {
  if (request.grouped() && !IsAgent()) return local_->ListIncidents(request);
  std::vector<std::string> silent;
  if (request.live_only() || IsAgent()) {
    absl::StatusOr<v1::ListIncidentsResponse> response = local_->ListIncidents(request);
    if (!response.ok()) return response;
    AddLive(AskForIncidents(request, &silent), &*response);
    if (!silent.empty()) {
      response->set_note(absl::StrCat(response->note(), response->note().empty() ? "" : "; ",
                                      "without the incidents of ", absl::StrJoin(silent, ", "),
                                      ", which does not answer"));
    }
    return response;
  }
  return LocalWithOpen(request.with_stacks())->ListIncidents(request);
}

absl::StatusOr<v1::Incident> FleetQueries::GetIncident(const v1::IncidentRequest& request) const {
  absl::StatusOr<v1::Incident> own = local_->GetIncident(request);
  if (own.ok()) {
    if (own->has_closed_at()) return own;
    const JobKey job = ReadJobKey(*own);
    const std::optional<DaemonRow> owner = OtherOwnerOf(job.tenant, job.job);
    if (!owner.has_value()) return own;
    auto newest = peers_->Ask(AskOf(*owner, peers_->options().patience_ns), request);
    return newest.ok() ? newest : own;
  }
  // Not in the history yet.
  for (auto& answer : AskEach(peers_->Others(), request)) {
    if (answer.ok()) return std::move(answer);
  }
  return own;
}

// The owner of its job has the incident in memory: what another daemon writes, it would overwrite.
absl::StatusOr<v1::Incident> FleetQueries::ActOnIncident(const v1::IncidentActionRequest& request,
                                                         const std::string& who) {
  v1::IncidentRequest same;
  same.set_id(request.id());
  const absl::StatusOr<v1::Incident> seen = GetIncident(same);
  if (!seen.ok()) return seen;
  const JobKey job = ReadJobKey(*seen);
  const std::optional<DaemonRow> owner = OtherOwnerOf(job.tenant, job.job);
  if (!owner.has_value()) return local_->ActOnIncident(request, who);
  PeerAsk ask = AskOf(*owner, peers_->options().patience_ns);
  ask.caller.set_name(who);
  ask.caller.set_role(std::string(RoleName(Role::kOperator)));
  ask.is_action = true;
  return peers_->Ask(ask, request);
}

}  // namespace rollcall
