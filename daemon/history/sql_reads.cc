// SPDX-License-Identifier: Apache-2.0
// Incidents and silences. Groups are in history_groups.cc, counts in history_questions.cc.
#include "daemon/history/sql_reads.h"

#include <string>

#include "absl/strings/substitute.h"

namespace rollcall {
namespace {

constexpr int kMaxRepeated = 20;
constexpr int kMostSilencesListed = 1000;

absl::Status AddRepeatedHosts(const SqlReading& from, const HistoryFilter& filter,
                              v1::ListIncidentsResponse* response) {
  Sql rows(from.db,
           absl::Substitute("SELECT host, count(DISTINCT incident) AS n FROM culprits "
                            "WHERE host != '' AND ($0) IN (SELECT $1 FROM incidents$2) "
                            "GROUP BY host HAVING count(DISTINCT incident) > 1 "
                            "ORDER BY n DESC, host LIMIT ?",
                            from.dialect.culprit_key, from.dialect.incident_key, filter.Where()));
  filter.BindTo(&rows);
  rows.Bind(kMaxRepeated);
  while (rows.Next()) {
    v1::Repeated* repeated = response->add_repeated();
    repeated->set_host(rows.Bytes(0));
    repeated->set_rank(-1);
    repeated->set_incidents(static_cast<int32_t>(rows.Integer(1)));
  }
  return rows.status();
}

absl::Status AddRepeatedRanks(const SqlReading& from, const HistoryFilter& filter,
                              v1::ListIncidentsResponse* response) {
  Sql rows(from.db,
           absl::Substitute("SELECT job, rank, count(DISTINCT culprits.incident) AS n, $0 AS t "
                            "FROM $1 WHERE rank >= 0 AND ($2) IN (SELECT $2 FROM incidents$3) "
                            "GROUP BY t, job, rank HAVING count(DISTINCT culprits.incident) > 1 "
                            "ORDER BY n DESC, t, job, rank LIMIT ?",
                            from.dialect.joined_tenant, from.dialect.joined,
                            from.dialect.incident_key, filter.Where()));
  filter.BindTo(&rows);
  rows.Bind(kMaxRepeated);
  while (rows.Next()) {
    v1::Repeated* repeated = response->add_repeated();
    repeated->set_job(rows.Bytes(0));
    repeated->set_rank(static_cast<int32_t>(rows.Integer(1)));
    repeated->set_incidents(static_cast<int32_t>(rows.Integer(2)));
    repeated->set_tenant(rows.Bytes(3));
  }
  return rows.status();
}

absl::Status AddRows(const SqlReading& from, const HistoryFilter& filter,
                     const v1::HistoryQuery::Incidents& query,
                     v1::ListIncidentsResponse* response) {
  const bool with_stacks = query.request().with_stacks();
  Sql rows(from.db, absl::Substitute("SELECT summary, state, $0 FROM incidents$1 "
                                     "ORDER BY opened_ns DESC, id LIMIT ? OFFSET ?",
                                     with_stacks ? "stacks" : "''", filter.Where()));
  filter.BindTo(&rows);
  rows.Bind(query.limit()).Bind(query.offset());
  while (rows.Next()) {
    v1::Incident* incident = response->add_incidents();
    incident->ParseFromString(rows.Bytes(0));
    incident->set_state(rows.Bytes(1));
    if (with_stacks) incident->MergeFromString(rows.Bytes(2));
  }
  return rows.status();
}

absl::Status CountRows(const SqlReading& from, const HistoryFilter& filter,
                       v1::ListIncidentsResponse* response) {
  Sql row(from.db, absl::Substitute("SELECT count(*) FROM incidents$0", filter.Where()));
  filter.BindTo(&row);
  if (row.Next()) response->set_total(static_cast<int32_t>(row.Integer(0)));
  return row.status();
}

}  // namespace

absl::Status Read(const SqlReading& from, const v1::HistoryQuery::Incidents& query,
                  v1::ListIncidentsResponse* response) {
  HistoryFilter listed(from.dialect, query.request());
  listed.Without({query.without().begin(), query.without().end()});
  if (query.request().rows_only()) return AddRows(from, listed, query, response);
  absl::Status status = CountRows(from, listed, response);
  if (status.ok()) status = AddRows(from, listed, query, response);
  const HistoryFilter all(from.dialect, query.request());
  if (status.ok()) status = AddRepeatedHosts(from, all, response);
  if (status.ok()) status = AddRepeatedRanks(from, all, response);
  return status;
}

absl::Status Read(const SqlReading& from, const v1::IncidentRequest& request,
                  v1::Incident* incident) {
  Sql row(from.db,
          "SELECT summary, stacks, state FROM incidents WHERE id = ? ORDER BY opened_ns DESC LIMIT "
          "1",
          request.id());
  if (!row.Next()) {
    return row.status().ok() ? absl::NotFoundError("the history has no such incident")
                             : row.status();
  }
  if (!incident->ParseFromString(row.Bytes(0)) || !incident->MergeFromString(row.Bytes(1))) {
    return absl::InternalError("the stored incident is damaged");
  }
  incident->set_state(row.Bytes(2));
  return absl::OkStatus();
}

absl::Status Read(const SqlReading& from, const v1::ListSilencesRequest& /*request*/,
                  v1::ListSilencesResponse* response) {
  Sql rows(from.db, "SELECT body FROM silences ORDER BY until_ns DESC LIMIT ?",
           kMostSilencesListed);
  while (rows.Next()) {
    if (!response->add_silences()->ParseFromString(rows.Bytes(0))) {
      response->mutable_silences()->RemoveLast();
    }
  }
  return rows.status();
}

}  // namespace rollcall
