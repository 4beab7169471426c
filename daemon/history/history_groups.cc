// SPDX-License-Identifier: Apache-2.0
// Groups of alike hangs in the history.
#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/substitute.h"
#include "daemon/history/incident_groups.h"
#include "daemon/history/sql_reads.h"
#include "proto/timestamps.h"

namespace rollcall {
namespace {

constexpr int kMostNames = 8;  // hosts, ranks or jobs of a group
// Each group costs five queries, during which the history takes no new incident.
constexpr int kMostGroups = 50;

// The selected incidents that count, as conditions on the table of signatures.
class Chosen {
 public:
  Chosen(const HistoryDialect& dialect, const v1::ListIncidentsRequest& request,
         const std::string& without)
      : dialect_(dialect), filter_(dialect, request), without_(without) {
    const std::string conditions = filter_.Conditions();
    text_ = "confirmed = 1";
    if (!conditions.empty()) {
      absl::StrAppend(&text_, " AND ", absl::Substitute(dialect.chosen, conditions));
    }
    if (!without.empty()) text_ += " AND hang != ?";
  }
  const std::string& text() const { return text_; }
  const HistoryDialect& dialect() const { return dialect_; }
  void BindTo(Sql* sql) const {
    filter_.BindTo(sql);
    if (!without_.empty()) sql->Bind(without_);
  }

 private:
  const HistoryDialect& dialect_;
  const HistoryFilter filter_;
  const std::string without_;
  std::string text_;
};

// Counts the hangs of the group by `column`, in rows for which `condition` is true.
absl::Status AddNames(SqlDatabase* db, const Chosen& chosen, const v1::IncidentGroup& group,
                      const std::string& column, const char* tables, const char* condition,
                      google::protobuf::RepeatedPtrField<v1::Recurring>* names) {
  Sql rows(db, absl::Substitute("SELECT $0, count(DISTINCT hang) AS n FROM $1 "
                                "WHERE $2 AND signature = ? AND tenant = ? AND $3 "
                                "GROUP BY $0 ORDER BY n DESC, $0 LIMIT ?",
                                column, tables, chosen.text(), condition));
  chosen.BindTo(&rows);
  rows.Bind(group.signature()).Bind(group.tenant()).Bind(kMostNames);
  while (rows.Next()) {
    v1::Recurring* name = names->Add();
    name->set_name(rows.Bytes(0));
    name->set_hangs(static_cast<int32_t>(rows.Integer(1)));
  }
  return rows.status();
}

absl::Status AddNewest(SqlDatabase* db, const Chosen& chosen, v1::IncidentGroup* group) {
  Sql row(db, absl::Substitute("SELECT id, summary FROM $0 "
                               "WHERE $1 AND signature = ? AND tenant = ? "
                               "ORDER BY s.opened_ns DESC LIMIT 1",
                               chosen.dialect().signed_incidents, chosen.text()));
  chosen.BindTo(&row);
  row.Bind(group->signature()).Bind(group->tenant());
  if (!row.Next()) return row.status();
  group->set_newest(row.Bytes(0));
  v1::Incident incident;
  if (incident.ParseFromString(row.Bytes(1)) && !incident.verdicts().empty()) {
    group->set_summary(incident.verdicts(0).summary());
  }
  return row.status();
}

// Each incident has one fact of its cause.
absl::Status AddCost(SqlDatabase* db, const Chosen& chosen, v1::IncidentGroup* group) {
  Sql row(db, absl::Substitute("SELECT coalesce(sum(lost_rank_ms), 0) FROM incident_facts "
                               "WHERE kind = 'cause' AND opened_ns >= ? AND opened_ns <= ? AND "
                               "incident IN (SELECT id FROM $0 "
                               "WHERE $1 AND signature = ? AND tenant = ?)",
                               chosen.dialect().signed_incidents, chosen.text()));
  row.Bind(NsOf(group->first())).Bind(NsOf(group->last()));
  chosen.BindTo(&row);
  row.Bind(group->signature()).Bind(group->tenant());
  if (row.Next()) group->set_lost_rank_seconds(static_cast<double>(row.Integer(0)) / 1000);
  return row.status();
}

absl::Status Complete(SqlDatabase* db, const Chosen& chosen, v1::IncidentGroup* group) {
  const char* const culprits = chosen.dialect().signed_culprits;
  absl::Status status = AddNames(db, chosen, *group, "culprits.host", culprits,
                                 "culprits.host != ''", group->mutable_hosts());
  if (status.ok()) {
    status = AddNames(db, chosen, *group, "culprits.rank", culprits, "culprits.rank >= 0",
                      group->mutable_ranks());
  }
  if (status.ok()) {
    status = AddNames(db, chosen, *group, "job", chosen.dialect().signed_incidents, "1 = 1",
                      group->mutable_jobs());
  }
  if (status.ok()) status = AddNewest(db, chosen, group);
  if (status.ok()) status = AddCost(db, chosen, group);
  group->set_sentence(GroupInWords(*group));
  return status;
}

absl::Status CountGroups(SqlDatabase* db, const Chosen& chosen,
                         v1::ListIncidentsResponse* response) {
  Sql row(db, absl::Substitute("SELECT count(*) FROM (SELECT signature, tenant FROM $0 WHERE $1 "
                               "GROUP BY signature, tenant) AS g",
                               chosen.dialect().signatures, chosen.text()));
  chosen.BindTo(&row);
  if (row.Next()) response->set_total(static_cast<int32_t>(row.Integer(0)));
  return row.status();
}

absl::Status AddGroups(SqlDatabase* db, const Chosen& chosen,
                       const v1::ListIncidentsRequest& request,
                       v1::ListIncidentsResponse* response) {
  const int limit = request.limit() <= 0 ? kMostGroups : std::min(request.limit(), kMostGroups);
  Sql rows(db, absl::Substitute("SELECT signature, tenant, count(DISTINCT hang) AS n, "
                                "min(s.opened_ns) AS first, max(s.opened_ns) AS last "
                                "FROM $0 WHERE $1 GROUP BY signature, tenant "
                                "ORDER BY n DESC, last DESC, signature LIMIT ? OFFSET ?",
                                chosen.dialect().signatures, chosen.text()));
  chosen.BindTo(&rows);
  rows.Bind(limit).Bind(std::max(request.offset(), 0));
  while (rows.Next()) {
    v1::IncidentGroup* group = response->add_groups();
    group->set_signature(rows.Bytes(0));
    group->set_tenant(rows.Bytes(1));
    group->set_hangs(static_cast<int32_t>(rows.Integer(2)));
    *group->mutable_first() = ToTimestamp(rows.Integer(3));
    *group->mutable_last() = ToTimestamp(rows.Integer(4));
  }
  return rows.status();
}

}  // namespace

absl::Status Read(const SqlReading& from, const v1::HistoryQuery::Groups& query,
                  v1::ListIncidentsResponse* response) {
  const v1::ListIncidentsRequest& request = query.request();
  const Chosen chosen(from.dialect, request, query.without());
  absl::Status status = CountGroups(from.db, chosen, response);
  if (status.ok()) status = AddGroups(from.db, chosen, request, response);
  for (v1::IncidentGroup& group : *response->mutable_groups()) {
    if (status.ok()) status = Complete(from.db, chosen, &group);
  }
  return status;
}

}  // namespace rollcall
