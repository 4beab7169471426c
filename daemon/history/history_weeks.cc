// SPDX-License-Identifier: Apache-2.0
// The counts of whole weeks, which answer queries over a long time. They follow from the facts, and
// can be made again at any time.
//
// A week is counted once it is over. The daemon that then saves an incident of that week takes the
// mark away, and queries use the facts until it is counted again. A counter that was overtaken by
// such a save finds that its mark has gone, and leaves the week to the next hour.
#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include "base/durations.h"
#include "base/mutex.h"
#include "daemon/history/history_week.h"
#include "daemon/history/sql_history.h"

namespace rollcall {
namespace {

constexpr int64_t kEver = std::numeric_limits<int64_t>::max();
constexpr int64_t kFilled = std::numeric_limits<int64_t>::min();  // all incidents have their facts
// An hour's work for a history of millions. The rest has time.
constexpr int kMostWeeksAtOnce = 4;
constexpr int kMostWindowsAtOnce = 100;
constexpr int64_t kWindow = 1000;                    // incidents
constexpr int64_t kClocksDifferNs = 3600 * kSecond;  // of daemons
constexpr int64_t kLookAgainNs = 8 * 86400 * kSecond;

// Makes the counts that a query may ask for: of all, of one cause, of a tenant and a cause. Empty
// means all. Values: week, kind, begin, end.
constexpr const char* kCountKind[] = {
    R"sql(
INSERT INTO week_counts
  (week, kind, tenant, cause, value, incidents, certain, lost_rank_ms, last_ns)
SELECT ?, kind, '', '', value, count(*), sum(certain), sum(lost_rank_ms), max(opened_ns)
FROM incident_facts WHERE kind = ? AND opened_ns >= ? AND opened_ns < ?
GROUP BY kind, value)sql",
    R"sql(
INSERT INTO week_counts
  (week, kind, tenant, cause, value, incidents, certain, lost_rank_ms, last_ns)
SELECT ?, kind, '', cause, value, count(*), sum(certain), sum(lost_rank_ms), max(opened_ns)
FROM incident_facts WHERE kind = ? AND opened_ns >= ? AND opened_ns < ?
GROUP BY kind, value, cause)sql",
    R"sql(
INSERT INTO week_counts
  (week, kind, tenant, cause, value, incidents, certain, lost_rank_ms, last_ns)
SELECT ?, kind, tenant, cause, value, count(*), sum(certain), sum(lost_rank_ms), max(opened_ns)
FROM incident_facts WHERE kind = ? AND opened_ns >= ? AND opened_ns < ?
GROUP BY kind, value, tenant, cause)sql"};

// Returns the time of the first incident from then on, or kEver.
absl::StatusOr<int64_t> FirstFrom(SqlDatabase* db, int64_t from_ns) {
  Sql row(db,
          "SELECT opened_ns FROM incident_facts WHERE opened_ns >= ? ORDER BY opened_ns LIMIT "
          "1",
          from_ns);
  const int64_t first = row.Next() ? row.Integer(0) : kEver;
  if (!row.status().ok()) return row.status();
  return first;
}

absl::StatusOr<std::vector<std::string>> KindsIn(SqlDatabase* db, int64_t week) {
  std::vector<std::string> kinds;
  std::string last;
  while (true) {
    Sql row(db,
            "SELECT kind FROM incident_facts WHERE kind > ? AND opened_ns >= ? AND opened_ns < "
            "? ORDER BY kind LIMIT 1",
            last, BeginOfWeek(week), BeginOfWeek(week + 1));
    if (!row.Next()) {
      if (!row.status().ok()) return row.status();
      return kinds;
    }
    last = row.Bytes(0);
    kinds.push_back(last);
  }
}

absl::Status CountKind(SqlDatabase* db, int64_t week, const std::string& kind) {
  absl::Status status =
      Sql(db, "DELETE FROM week_counts WHERE week = ? AND kind = ?", week, kind).Run();
  for (const char* text : kCountKind) {
    if (!status.ok()) break;
    status = Sql(db, text, week, kind, BeginOfWeek(week), BeginOfWeek(week + 1)).Run();
  }
  return status;
}

// What a save of the previous release has left out.
absl::StatusOr<std::vector<v1::Incident>> LackingFacts(SqlDatabase* db, int64_t from_ns,
                                                       int64_t until_ns) {
  std::vector<v1::Incident> lacking;
  Sql rows(db,
           "SELECT summary, stacks, state, id FROM incidents AS i WHERE opened_ns >= ? AND "
           "opened_ns < ? AND NOT EXISTS (SELECT 1 FROM incident_facts AS f WHERE f.opened_ns "
           "= i.opened_ns AND f.incident = i.id)",
           from_ns, until_ns);
  while (rows.Next()) {
    v1::Incident& incident = lacking.emplace_back();
    if (!incident.ParseFromString(rows.Bytes(0)) || !incident.MergeFromString(rows.Bytes(1))) {
      incident.Clear();
    }
    incident.set_state(rows.Bytes(2));
    incident.set_id(rows.Bytes(3));
  }
  if (!rows.status().ok()) return rows.status();
  return lacking;
}

}  // namespace

absl::Status SqlHistory::SaveFacts(const IncidentRow& row) {
  std::vector<std::vector<SqlValue>> rows;
  for (const auto& [kind, value] : row.facts.values) {
    rows.push_back({kind, row.opened_ns, value, row.id, row.facts.tenant, row.facts.cause,
                    int64_t{row.facts.is_certain}, row.facts.lost_rank_ms});
  }
  const absl::Status status = InsertRows(
      db(),
      "INSERT INTO incident_facts (kind, opened_ns, value, incident, tenant, cause, certain, "
      "lost_rank_ms) VALUES {rows}",
      rows);
  return status.ok() ? UncountWeek(row.opened_ns) : status;
}

absl::Status SqlHistory::UncountWeek(int64_t opened_ns) {
  absl::Status status = LockWeeks(Others::kMaySave);
  if (status.ok()) {
    status = Sql(db(), "UPDATE counted_weeks SET mark = 0 WHERE week = ? AND mark != 0",
                 WeekOf(opened_ns))
                 .Run();
  }
  return status;
}

absl::Status SqlHistory::CountWeek(int64_t week, int64_t mark) {
  absl::Status status = InTransaction([&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    // Waits for those who are saving incidents of the week, and have seen no mark.
    const absl::Status locked = LockWeeks(Others::kWait);
    if (!locked.ok()) return locked;
    return Sql(db(),
               "INSERT INTO counted_weeks (week, mark) VALUES (?, ?) ON CONFLICT (week) DO "
               "UPDATE SET mark = excluded.mark",
               week, mark)
        .Run();
  });
  absl::StatusOr<std::vector<std::string>> kinds;
  if (status.ok()) {
    const MutexLock lock(mutex_);
    kinds = KindsIn(db(), week);
    status = kinds.status();
  }
  for (size_t i = 0; status.ok() && i < kinds->size(); ++i) {
    status = InTransaction([&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
      const absl::Status locked = LockTables();
      return locked.ok() ? CountKind(db(), week, (*kinds)[i]) : locked;
    });
  }
  if (!status.ok()) return status;
  return InTransaction([&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return Sql(db(), "UPDATE counted_weeks SET mark = 1 WHERE week = ? AND mark = ?", week, mark)
        .Run();
  });
}

absl::Status SqlHistory::CountWeeks(int64_t now_ns) {
  const int64_t end = WeekOf(now_ns - kClocksDifferNs);
  int64_t week = std::numeric_limits<int64_t>::min();
  for (int counted = 0; counted < kMostWeeksAtOnce;) {
    bool is_counted = false;
    {
      const MutexLock lock(mutex_);
      const auto first =
          FirstFrom(db(), week == std::numeric_limits<int64_t>::min() ? week : BeginOfWeek(week));
      if (!first.ok()) return first.status();
      week = WeekOf(*first);
      if (*first == kEver || week >= end) return absl::OkStatus();
      Sql row(db(), "SELECT 1 FROM counted_weeks WHERE week = ? AND mark = 1", week);
      is_counted = row.Next();
      if (!row.status().ok()) return row.status();
    }
    if (!is_counted) {
      ++counted;
      const absl::Status status = CountWeek(week, std::max<int64_t>(now_ns, 2));
      if (!status.ok()) return status;
    }
    ++week;
  }
  return absl::OkStatus();
}

// The weeks whose incidents were deleted, `before` and now being the time of the oldest.
absl::Status SqlHistory::TrimWeeks(int64_t before_ns) {
  const int64_t oldest_ns = OldestIncident();
  if (oldest_ns == before_ns) return absl::OkStatus();
  const int64_t oldest = WeekOf(oldest_ns);
  absl::Status status = Sql(db(), "DELETE FROM week_counts WHERE week < ?", oldest).Run();
  if (status.ok()) status = Sql(db(), "DELETE FROM counted_weeks WHERE week < ?", oldest).Run();
  return status.ok() ? UncountWeek(oldest_ns) : status;
}

int64_t SqlHistory::OldestIncident() const {
  Sql row(db(), "SELECT opened_ns FROM incidents ORDER BY opened_ns LIMIT 1");
  return row.Next() ? row.Integer(0) : kEver;
}

absl::Status SqlHistory::FillWindow(int64_t floor_ns, int64_t* below_ns) {
  int64_t from_ns = 0;
  {
    Sql row(db(),
            "SELECT min(opened_ns), count(*) FROM (SELECT opened_ns FROM incidents WHERE "
            "opened_ns < ? AND opened_ns >= ? ORDER BY opened_ns DESC LIMIT ?) AS w",
            *below_ns, floor_ns, kWindow);
    if (!row.Next()) return row.status();
    from_ns = row.Integer(1) == 0 ? kFilled : row.Integer(0);
  }
  if (from_ns != kFilled) {
    const auto lacking = LackingFacts(db(), from_ns, *below_ns);
    if (!lacking.ok()) return lacking.status();
    for (const v1::Incident& incident : *lacking) {
      const absl::Status status = ReplaceFacts(ToRow(incident));
      if (!status.ok()) return status;
    }
  }
  *below_ns = from_ns;
  return absl::OkStatus();
}

// Walks from the newest incident to the oldest, once; the newest ones again after each start,
// because a daemon of the previous release may have written meanwhile.
absl::Status SqlHistory::FillFacts(int64_t now_ns) {
  int64_t below_ns = 0;
  {
    const MutexLock lock(mutex_);
    below_ns = ReadInteger(db(), "SELECT below_ns FROM facts_filled");
  }
  const bool is_again = below_ns == kFilled;
  if (is_again && has_looked_again_) return absl::OkStatus();
  if (is_again) below_ns = kEver;
  const int64_t floor_ns = is_again ? now_ns - kLookAgainNs : std::numeric_limits<int64_t>::min();
  for (int i = 0; i < kMostWindowsAtOnce && below_ns != kFilled; ++i) {
    const absl::Status status = InTransaction([&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
      const absl::Status filled = FillWindow(floor_ns, &below_ns);
      if (!filled.ok() || is_again) return filled;
      return Sql(db(), "UPDATE facts_filled SET below_ns = ?", below_ns).Run();
    });
    if (!status.ok()) return status;
  }
  has_looked_again_ = below_ns == kFilled;
  return absl::OkStatus();
}

}  // namespace rollcall
