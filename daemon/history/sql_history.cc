// SPDX-License-Identifier: Apache-2.0
#include "daemon/history/sql_history.h"

#include <algorithm>
#include <cstdlib>

#include "daemon/history/incident_groups.h"
#include "daemon/history/sql_reads.h"
#include "proto/timestamps.h"

namespace rollcall {
namespace {

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
  v1::HistoryQuery::Incidents query;
  *query.mutable_request() = request;
  query.set_offset(std::max(request.offset(), 0));
  query.set_limit(request.limit() <= 0 ? kUsualIncidents
                                       : std::min(request.limit(), kMostIncidents));
  return Ask(query);
}

absl::StatusOr<v1::Incident> History::Get(const std::string& id) const {
  v1::IncidentRequest query;
  query.set_id(id);
  return Ask(query);
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

absl::StatusOr<v1::HistoryAnswer> SqlHistory::Answer(const v1::HistoryQuery& query) const {
  v1::HistoryAnswer answer;
  absl::Status status = absl::InvalidArgumentError("a query that this release does not support");
  const MutexLock lock(mutex_);
#define ROLLCALL_QUERY(field, Request, Response, use) \
  if (query.has_##field()) status = Read(reading(), query.field(), answer.mutable_##field());
  ROLLCALL_HISTORY_QUERIES(ROLLCALL_QUERY)
#undef ROLLCALL_QUERY
  if (!status.ok()) return status;
  return answer;
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
