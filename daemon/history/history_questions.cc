// SPDX-License-Identifier: Apache-2.0
// What comes back, over all history: the counts of whole weeks (history_weeks.cc), and the facts of
// the rest of the time.
#include <algorithm>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "daemon/history/history_week.h"
#include "daemon/history/sql_reads.h"
#include "proto/timestamps.h"

namespace rollcall {
namespace {

constexpr int kUsualValues = 20;
constexpr int kMostValues = 1000;
// Each is a part of the query. There are more only while the weeks are being counted.
constexpr size_t kMostParts = 20;

struct Times {
  int64_t from_ns, until_ns;  // until: not with it
};

std::string Marks(size_t count) {
  return absl::StrJoin(std::vector<const char*>(count, "?"), ", ");
}

// Text and values of a query, in the order of the text.
class Query {
 public:
  template <typename... Values>
  Query& Add(const std::string& text, const Values&... values) {
    text_ += text;
    (values_.push_back(values), ...);
    return *this;
  }
  Query& AddList(const std::string& text, const std::vector<SqlValue>& list) {
    absl::StrAppend(&text_, text, " IN (", Marks(list.size()), ")");
    values_.insert(values_.end(), list.begin(), list.end());
    return *this;
  }
  const std::string& text() const { return text_; }
  void BindTo(Sql* sql) const {
    for (const SqlValue& value : values_) sql->Bind(value);
  }

 private:
  std::string text_;
  std::vector<SqlValue> values_;
};

// Reads the tenants of the request; empty means all. Returns false if no tenant is left.
bool TenantsOf(const v1::CountIncidentsRequest& request, std::vector<SqlValue>* tenants) {
  const auto& seen = request.tenants();
  tenants->assign(seen.begin(), seen.end());
  if (request.tenant().empty()) return true;
  *tenants = {request.tenant()};
  return seen.empty() || std::find(seen.begin(), seen.end(), request.tenant()) != seen.end();
}

// The times of the request that the weeks do not cover.
std::vector<Times> Rest(const Times& wanted, const std::vector<int64_t>& weeks) {
  std::vector<Times> rest;
  int64_t from_ns = wanted.from_ns;
  for (const int64_t week : weeks) {
    if (from_ns < BeginOfWeek(week)) rest.push_back({from_ns, BeginOfWeek(week)});
    from_ns = BeginOfWeek(week + 1);
  }
  if (from_ns < wanted.until_ns) rest.push_back({from_ns, wanted.until_ns});
  return rest;
}

class Question {
 public:
  Question(const v1::CountIncidentsRequest& request, std::vector<SqlValue> tenants,
           bool has_lateral)
      : request_(request),
        has_lateral_(has_lateral),
        tenants_(std::move(tenants)),
        times_{request.has_from() ? NsOf(request.from()) : std::numeric_limits<int64_t>::min(),
               request.has_until() ? NsOf(request.until()) : std::numeric_limits<int64_t>::max()} {}

  absl::Status Ask(SqlDatabase* db, v1::CountIncidentsResponse* response) const;

 private:
  absl::StatusOr<std::vector<int64_t>> CountedWeeks(SqlDatabase* db) const;
  absl::StatusOr<std::vector<Times>> WithFacts(SqlDatabase* db,
                                               const std::vector<Times>& times) const;
  void AddWeeks(const std::vector<int64_t>& weeks, Query* query) const;
  void AddFacts(const Times& times, Query* query) const;
  void AddFactsOfJob(const Times& times, Query* query) const;
  Query Whole(const std::vector<int64_t>& weeks, const std::vector<Times>& rest) const;
  void AddTenants(Query* query) const {
    if (!tenants_.empty()) query->AddList(" AND tenant", tenants_);
  }
  absl::Status AddNewest(SqlDatabase* db, v1::IncidentCount* count) const;

  const v1::CountIncidentsRequest& request_;
  const bool has_lateral_;
  const std::vector<SqlValue> tenants_;
  const Times times_;
};

// Returns the counted whole weeks of the time, in order. The counts are not by job.
absl::StatusOr<std::vector<int64_t>> Question::CountedWeeks(SqlDatabase* db) const {
  std::vector<int64_t> weeks;
  if (!request_.job().empty()) return weeks;
  Sql rows(db, "SELECT week FROM counted_weeks WHERE mark = 1 ORDER BY week");
  while (rows.Next()) {
    const int64_t week = rows.Integer(0);
    const bool is_inside =
        times_.from_ns <= BeginOfWeek(week) && BeginOfWeek(week + 1) <= times_.until_ns;
    if (is_inside) weeks.push_back(week);
  }
  if (!rows.status().ok()) return rows.status();
  return weeks;
}

absl::StatusOr<std::vector<Times>> Question::WithFacts(SqlDatabase* db,
                                                       const std::vector<Times>& times) const {
  std::vector<Times> with_facts;
  for (const Times& one : times) {
    Sql row(db, "SELECT 1 FROM incident_facts WHERE opened_ns >= ? AND opened_ns < ? LIMIT 1",
            one.from_ns, one.until_ns);
    if (row.Next()) with_facts.push_back(one);
    if (!row.status().ok()) return row.status();
  }
  return with_facts;
}

void Question::AddWeeks(const std::vector<int64_t>& weeks, Query* query) const {
  query->Add(
      "SELECT value, incidents, certain, lost_rank_ms, last_ns FROM week_counts WHERE kind "
      "= ?",
      request_.by());
  query->AddList(" AND week", {weeks.begin(), weeks.end()});
  // Empty means all.
  if (tenants_.empty()) {
    query->Add(" AND tenant = '' AND cause = ?", request_.cause());
  } else {
    AddTenants(query);
    if (!request_.cause().empty()) query->Add(" AND cause = ?", request_.cause());
  }
}

// From the job's incidents to the facts of each, which are few beside all facts of the time. OFFSET
// 0 keeps the server from reading those instead: it guesses how many incidents a job has, and is
// wrong for one that hangs again and again.
void Question::AddFactsOfJob(const Times& times, Query* query) const {
  query->Add(
      "SELECT f.value, 1 AS incidents, f.certain, f.lost_rank_ms, i.opened_ns AS last_ns "
      "FROM incidents AS i CROSS JOIN LATERAL (SELECT value, certain, lost_rank_ms FROM "
      "incident_facts WHERE kind = ? AND opened_ns = i.opened_ns AND incident = "
      "i.id",
      request_.by());
  AddTenants(query);
  if (!request_.cause().empty()) query->Add(" AND cause = ?", request_.cause());
  query->Add(" OFFSET 0) AS f WHERE i.job = ? AND i.opened_ns >= ? AND i.opened_ns < ?",
             request_.job(), times.from_ns, times.until_ns);
}

void Question::AddFacts(const Times& times, Query* query) const {
  if (!request_.job().empty() && has_lateral_) return AddFactsOfJob(times, query);
  query->Add(
      "SELECT value, 1 AS incidents, certain, lost_rank_ms, opened_ns AS last_ns FROM "
      "incident_facts WHERE kind = ? AND opened_ns >= ? AND opened_ns < "
      "?",
      request_.by(), times.from_ns, times.until_ns);
  AddTenants(query);
  if (!request_.cause().empty()) query->Add(" AND cause = ?", request_.cause());
  if (request_.job().empty()) return;
  query->Add(
      " AND (incident, opened_ns) IN (SELECT id, opened_ns FROM incidents WHERE job = ? AND "
      "opened_ns >= ? AND opened_ns < ?)",
      request_.job(), times.from_ns, times.until_ns);
}

Query Question::Whole(const std::vector<int64_t>& weeks, const std::vector<Times>& rest) const {
  Query query;
  query.Add(
      "SELECT value, sum(incidents) AS n, sum(certain), sum(lost_rank_ms) AS lost, "
      "max(last_ns), count(*) OVER () FROM (");
  const char* separator = "";
  if (!weeks.empty()) {
    AddWeeks(weeks, &query);
    separator = " UNION ALL ";
  }
  for (const Times& times : rest) {
    AddFacts(times, &query.Add(separator));
    separator = " UNION ALL ";
  }
  const int limit = request_.limit() <= 0 ? kUsualValues : std::min(request_.limit(), kMostValues);
  query.Add(") AS parts GROUP BY value ORDER BY n DESC, lost DESC, value LIMIT ?", int64_t{limit});
  return query;
}

absl::Status Question::AddNewest(SqlDatabase* db, v1::IncidentCount* count) const {
  Query query;
  query.Add("SELECT incident FROM incident_facts WHERE kind = ? AND opened_ns = ? AND value = ?",
            request_.by(), NsOf(count->last()), count->value());
  AddTenants(&query);
  query.Add(" ORDER BY incident DESC LIMIT 1");
  Sql row(db, query.text());
  query.BindTo(&row);
  if (row.Next()) count->set_newest(row.Bytes(0));
  return row.status();
}

absl::Status Question::Ask(SqlDatabase* db, v1::CountIncidentsResponse* response) const {
  absl::StatusOr<std::vector<int64_t>> weeks = CountedWeeks(db);
  if (!weeks.ok()) return weeks.status();
  absl::StatusOr<std::vector<Times>> rest = WithFacts(db, Rest(times_, *weeks));
  if (!rest.ok()) return rest.status();
  if (rest->size() > kMostParts) {
    weeks->clear();
    *rest = {times_};
  }
  if (weeks->empty() && rest->empty()) return absl::OkStatus();
  const Query query = Whole(*weeks, *rest);
  Sql rows(db, query.text());
  query.BindTo(&rows);
  while (rows.Next()) {
    v1::IncidentCount* count = response->add_counts();
    count->set_value(rows.Bytes(0));
    count->set_incidents(static_cast<int32_t>(rows.Integer(1)));
    count->set_certain_incidents(static_cast<int32_t>(rows.Integer(2)));
    count->set_lost_rank_seconds(static_cast<double>(rows.Integer(3)) / 1000);
    *count->mutable_last() = ToTimestamp(rows.Integer(4));
    response->set_total(static_cast<int32_t>(rows.Integer(5)));
  }
  absl::Status status = rows.status();
  for (v1::IncidentCount& count : *response->mutable_counts()) {
    if (status.ok()) status = AddNewest(db, &count);
  }
  return status;
}

}  // namespace

absl::Status Read(const SqlReading& from, const v1::CountIncidentsRequest& request,
                  v1::CountIncidentsResponse* response) {
  std::vector<SqlValue> tenants;
  if (!TenantsOf(request, &tenants)) return absl::OkStatus();
  const Question question(request, std::move(tenants), from.dialect.has_daemons);
  // All of it sees one state of the weeks and the facts.
  absl::Status status = Sql(from.db, from.dialect.begin_read).Run();
  if (!status.ok()) return status;
  status = question.Ask(from.db, response);
  const absl::Status ended = Sql(from.db, "COMMIT").Run();
  return status.ok() ? ended : status;
}

}  // namespace rollcall
