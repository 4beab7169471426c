// SPDX-License-Identifier: Apache-2.0
#include "daemon/history/sql_history.h"

#include <algorithm>
#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "absl/strings/substitute.h"
#include "daemon/history/history_filter.h"
#include "daemon/history/incident_groups.h"
#include "proto/timestamps.h"

namespace rollcall {
namespace {

constexpr int kMaxRepeated = 20;

// Splits an incident into the part for lists, and the stacks.
std::pair<std::string, std::string> Parts(const v1::Incident& incident) {
  v1::Incident head = incident;
  v1::Incident stacks;
  stacks.mutable_stacks()->Swap(head.mutable_stacks());
  stacks.mutable_stack_tree()->Swap(head.mutable_stack_tree());
  return {head.SerializeAsString(), stacks.SerializeAsString()};
}

}  // namespace

JobKey ReadJobKey(const v1::Incident& incident) {
  JobKey key(incident.job(), incident.attempt());
  if (!incident.tenant().empty()) key.tenant = incident.tenant();
  return key;
}

int IncidentNumber(const v1::Incident& incident) {
  const size_t dash = incident.id().rfind('-');
  return dash == std::string::npos ? 0 : std::atoi(incident.id().c_str() + dash + 1);
}

absl::StatusOr<v1::ListIncidentsResponse> History::List(
    const v1::ListIncidentsRequest& request) const {
  const int64_t limit =
      request.limit() <= 0 ? kUsualIncidents : std::min(request.limit(), kMostIncidents);
  return ListWithout({}, request, std::max(request.offset(), 0), limit);
}

IncidentRow ToRow(const v1::Incident& incident) {
  IncidentRow row;
  row.id = incident.id();
  row.job = incident.job();
  row.tenant = ReadJobKey(incident).tenant;
  row.attempt = incident.attempt();
  row.number = IncidentNumber(incident);
  row.state = incident.state();
  row.opened_ns = NsOf(incident.opened_at());
  row.closed_ns = NsOf(incident.closed_at());
  row.signature = SignatureOf(incident);
  row.hang = HangOf(incident);
  row.is_confirmed = incident.has_confirmed_at();
  row.facts = FactsOf(incident);
  std::tie(row.summary, row.stacks) = Parts(incident);
  if (incident.verdicts().empty()) return row;
  row.cause = incident.verdicts(0).cause();
  for (const v1::Culprit& culprit : incident.verdicts(0).culprits()) {
    row.culprits.emplace(culprit.host(), culprit.rank());
  }
  // Of very many culprits the index has the ranks of those that are listed, and all hosts.
  for (const std::string& host : incident.verdicts(0).other_culprit_hosts()) {
    row.culprits.emplace(host, -1);
  }
  return row;
}

SqlHistory::SqlHistory(std::unique_ptr<SqlDatabase> db, const HistoryDialect& dialect,
                       const HistoryLimits& limits, std::string daemon)
    : dialect_(dialect), limits_(limits), daemon_(std::move(daemon)), db_(std::move(db)) {}

bool SqlHistory::IsInPlace() const {
  const MutexLock lock(mutex_);
  return db_->is_connected();
}

absl::Status SqlHistory::AddRepeated(const v1::ListIncidentsRequest& request,
                                     v1::ListIncidentsResponse* response) const {
  const HistoryFilter filter(dialect_, request);
  const std::string chosen =
      absl::StrCat("SELECT ", dialect_.incident_key, " FROM incidents", filter.Where());
  Sql hosts(db(), absl::Substitute("SELECT host, count(DISTINCT incident) AS n FROM culprits "
                                   "WHERE host != '' AND ($0) IN ($1) "
                                   "GROUP BY host HAVING count(DISTINCT incident) > 1 "
                                   "ORDER BY n DESC, host LIMIT ?",
                                   dialect_.culprit_key, chosen));
  filter.BindTo(&hosts);
  hosts.Bind(kMaxRepeated);
  while (hosts.Next()) {
    v1::Repeated* repeated = response->add_repeated();
    repeated->set_host(hosts.Bytes(0));
    repeated->set_rank(-1);
    repeated->set_incidents(static_cast<int32_t>(hosts.Integer(1)));
  }
  if (!hosts.status().ok()) return hosts.status();
  Sql ranks(db(), absl::Substitute(
                      "SELECT job, rank, count(DISTINCT culprits.incident) AS n, $0 AS t FROM $1 "
                      "WHERE rank >= 0 AND ($2) IN ($3) "
                      "GROUP BY t, job, rank HAVING count(DISTINCT culprits.incident) > 1 "
                      "ORDER BY n DESC, t, job, rank LIMIT ?",
                      dialect_.joined_tenant, dialect_.joined, dialect_.incident_key, chosen));
  filter.BindTo(&ranks);
  ranks.Bind(kMaxRepeated);
  while (ranks.Next()) {
    v1::Repeated* repeated = response->add_repeated();
    repeated->set_job(ranks.Bytes(0));
    repeated->set_rank(static_cast<int32_t>(ranks.Integer(1)));
    repeated->set_incidents(static_cast<int32_t>(ranks.Integer(2)));
    repeated->set_tenant(ranks.Bytes(3));
  }
  return ranks.status();
}

absl::StatusOr<v1::ListIncidentsResponse> SqlHistory::ListWithout(
    const std::vector<std::string>& ids, const v1::ListIncidentsRequest& request, int64_t offset,
    int64_t limit) const {
  HistoryFilter filter(dialect_, request);
  filter.Without(ids);
  v1::ListIncidentsResponse response;
  const MutexLock lock(mutex_);
  if (!request.rows_only()) {
    Sql count(db(), "SELECT count(*) FROM incidents" + filter.Where());
    filter.BindTo(&count);
    if (count.Next()) response.set_total(static_cast<int32_t>(count.Integer(0)));
    if (!count.status().ok()) return count.status();
  }
  Sql rows(db(), absl::StrCat("SELECT summary, state, ", request.with_stacks() ? "stacks" : "''",
                              " FROM incidents", filter.Where(),
                              " ORDER BY opened_ns DESC, id LIMIT ? OFFSET ?"));
  filter.BindTo(&rows);
  rows.Bind(limit).Bind(offset);
  while (rows.Next()) {
    v1::Incident* incident = response.add_incidents();
    incident->ParseFromString(rows.Bytes(0));
    incident->set_state(rows.Bytes(1));
    if (request.with_stacks()) incident->MergeFromString(rows.Bytes(2));
  }
  if (!rows.status().ok()) return rows.status();
  if (request.rows_only()) return response;
  const absl::Status status = AddRepeated(request, &response);
  if (!status.ok()) return status;
  return response;
}

absl::StatusOr<v1::Incident> SqlHistory::Get(const std::string& id) const {
  const MutexLock lock(mutex_);
  Sql row(db(),
          "SELECT summary, stacks, state FROM incidents WHERE id = ? ORDER BY opened_ns DESC LIMIT "
          "1",
          id);
  if (!row.Next()) {
    return row.status().ok() ? absl::NotFoundError("the history has no such incident")
                             : row.status();
  }
  v1::Incident incident;
  if (!incident.ParseFromString(row.Bytes(0)) || !incident.MergeFromString(row.Bytes(1))) {
    return absl::InternalError("the stored incident is damaged");
  }
  incident.set_state(row.Bytes(2));
  return incident;
}

absl::StatusOr<std::map<JobId, int>> SqlHistory::LastNumbers() const {
  std::map<JobId, int> numbers;
  const MutexLock lock(mutex_);
  Sql rows(db(), dialect_.numbers);
  while (rows.Next()) {
    const std::string tenant = rows.Bytes(0);
    int& number = numbers[{tenant.empty() ? kDefaultTenant : tenant, rows.Bytes(1)}];
    number = std::max(number, static_cast<int>(rows.Integer(2)));
  }
  // With a part of the numbers a new incident would replace an old one.
  if (!rows.status().ok()) return rows.status();
  return numbers;
}

}  // namespace rollcall
