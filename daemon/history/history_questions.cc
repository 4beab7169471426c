// SPDX-License-Identifier: Apache-2.0
// What comes back, over all history: the counts of whole weeks (history_weeks.cc), and the facts of
// the rest of the time.
#include <algorithm>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
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

// The parts of the query: counted weeks, of all tenants or of some, and the facts of a time.
constexpr char kWeeksOfAll[] = R"sql(
SELECT value, incidents, certain, lost_rank_ms, last_ns FROM week_counts
WHERE kind = {by} AND week IN ({weeks}) AND tenant = '' AND cause = {cause_or_all})sql";

constexpr char kWeeksOfTenants[] = R"sql(
SELECT value, incidents, certain, lost_rank_ms, last_ns FROM week_counts
WHERE kind = {by} AND week IN ({weeks}) AND tenant IN ({tenants}) [AND cause = {cause}])sql";

constexpr char kFacts[] = R"sql(
SELECT value, 1 AS incidents, certain, lost_rank_ms, opened_ns AS last_ns FROM incident_facts
WHERE kind = {by} AND opened_ns >= {from} AND opened_ns < {until}
  [AND tenant IN ({tenants})] [AND cause = {cause}]
  [AND (incident, opened_ns) IN (
    SELECT id, opened_ns FROM incidents
    WHERE job = {job} AND opened_ns >= {from} AND opened_ns < {until})])sql";

// From the job's incidents to the facts of each, which are few beside all facts of the time. OFFSET
// 0 keeps the server from reading those instead: it guesses how many incidents a job has, and is
// wrong for one that hangs again and again.
constexpr char kFactsOfJob[] = R"sql(
SELECT f.value, 1 AS incidents, f.certain, f.lost_rank_ms, i.opened_ns AS last_ns
FROM incidents AS i CROSS JOIN LATERAL (
  SELECT value, certain, lost_rank_ms FROM incident_facts
  WHERE kind = {by} AND opened_ns = i.opened_ns AND incident = i.id
    [AND tenant IN ({tenants})] [AND cause = {cause}]
  OFFSET 0) AS f
WHERE i.job = {job} AND i.opened_ns >= {from} AND i.opened_ns < {until})sql";

constexpr char kCounts[] = R"sql(
SELECT value, sum(incidents) AS n, sum(certain), sum(lost_rank_ms) AS lost, max(last_ns),
  count(*) OVER ()
FROM ({parts}) AS parts GROUP BY value ORDER BY n DESC, lost DESC, value LIMIT {limit})sql";

constexpr char kNewest[] = R"sql(
SELECT incident FROM incident_facts WHERE kind = {by} AND opened_ns = {last} AND value = {value}
  [AND tenant IN ({tenants})]
ORDER BY incident DESC LIMIT 1)sql";

SqlText UnionOf(const std::vector<SqlText>& parts) {
  SqlText all;
  for (const SqlText& part : parts) {
    absl::StrAppend(&all.text, all.text.empty() ? "" : " UNION ALL ", part.text);
    all.values.insert(all.values.end(), part.values.begin(), part.values.end());
  }
  return all;
}

// Returns the value of a text that narrows the query, and nothing for an empty text.
SqlText UnlessEmpty(const std::string& text) { return text.empty() ? SqlText() : SqlText(text); }

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
  SqlText OfWeeks(const std::vector<int64_t>& weeks) const;
  SqlText OfFacts(const Times& times) const;
  SqlText Whole(const std::vector<int64_t>& weeks, const std::vector<Times>& rest) const;
  // Returns the fillings of every part, with more of one.
  SqlFillings Fillings(const SqlFillings& more) const;
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

SqlFillings Question::Fillings(const SqlFillings& more) const {
  SqlFillings fillings = {{"by", SqlText(request_.by())},
                          {"tenants", SqlText(tenants_)},  // empty means all
                          {"cause", UnlessEmpty(request_.cause())},
                          {"job", UnlessEmpty(request_.job())}};
  fillings.insert(more.begin(), more.end());
  return fillings;
}

SqlText Question::OfWeeks(const std::vector<int64_t>& weeks) const {
  const std::vector<SqlValue> values(weeks.begin(), weeks.end());
  return FillIn(
      tenants_.empty() ? kWeeksOfAll : kWeeksOfTenants,
      Fillings({{"weeks", SqlText(values)}, {"cause_or_all", SqlText(request_.cause())}}));
}

SqlText Question::OfFacts(const Times& times) const {
  const bool by_job = !request_.job().empty() && has_lateral_;
  return FillIn(by_job ? kFactsOfJob : kFacts,
                Fillings({{"from", SqlText(times.from_ns)}, {"until", SqlText(times.until_ns)}}));
}

SqlText Question::Whole(const std::vector<int64_t>& weeks, const std::vector<Times>& rest) const {
  std::vector<SqlText> parts;
  if (!weeks.empty()) parts.push_back(OfWeeks(weeks));
  for (const Times& times : rest) parts.push_back(OfFacts(times));
  const int limit = request_.limit() <= 0 ? kUsualValues : std::min(request_.limit(), kMostValues);
  return FillIn(kCounts, {{"parts", UnionOf(parts)}, {"limit", SqlText(int64_t{limit})}});
}

absl::Status Question::AddNewest(SqlDatabase* db, v1::IncidentCount* count) const {
  Sql row(db, FillIn(kNewest, Fillings({{"last", SqlText(NsOf(count->last()))},
                                        {"value", SqlText(count->value())}})));
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
  Sql rows(db, Whole(*weeks, *rest));
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
