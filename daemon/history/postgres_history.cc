// SPDX-License-Identifier: Apache-2.0
#include "daemon/history/postgres_history.h"

#include <spdlog/spdlog.h>

#include <map>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/durations.h"
#include "daemon/history/postgres_database.h"
#include "daemon/history/postgres_layout.h"
#include "daemon/history/postgres_partitions.h"

namespace rollcall {
namespace {

constexpr int kOldestServer = 13;
constexpr char kNoPartition[] = "(23514)";  // the tables have no other checks
constexpr int64_t kKeepActionRowsNs = 180 * 24 * 3600 * kSecond;
constexpr const char* kOfIncidents[] = {"incidents", "culprits", "incident_facts"};

constexpr char kBytesOfIncident[] = "128 + length(summary) + length(stacks)";

absl::Status CheckServer(SqlDatabase* db, int version) {
  if (version < kOldestServer) {
    return absl::FailedPreconditionError(
        absl::StrCat("the server is PostgreSQL ", version, "; Rollcall needs 13 or later"));
  }
  Sql row(db, "SHOW server_encoding");
  if (!row.Next()) return row.status();
  if (row.Bytes(0) == "UTF8") return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      "the database has the encoding ", row.Bytes(0),
      "; Rollcall needs UTF8:  createdb --encoding=UTF8 --template=template0 rollcall"));
}

}  // namespace

PostgresHistory::PostgresHistory(std::unique_ptr<SqlDatabase> db, const HistoryLimits& limits,
                                 const PostgresOptions& options)
    : SqlHistory(std::move(db), kPostgresDialect, limits, options.daemon),
      incarnation_(options.incarnation) {}

absl::StatusOr<std::unique_ptr<PostgresHistory>> PostgresHistory::Open(
    const PostgresOptions& options, const HistoryLimits& limits) {
  auto db = PostgresDatabase::Connect(options.url, options.times);
  if (!db.ok()) return db.status();
  absl::Status status = CheckServer(db->get(), (*db)->server_version());
  if (status.ok()) status = UseSchema(db->get()).status();
  if (status.ok()) status = Migrate(db->get());
  if (status.ok()) status = NoteStart(db->get(), options.incarnation);
  if (!status.ok()) {
    const auto shown = PostgresUrlInPublic(options.url);
    return absl::Status(
        status.code(),
        absl::StrCat("cannot use ", shown.ok() ? *shown : "the database", ": ", status.message()));
  }
  return std::unique_ptr<PostgresHistory>(new PostgresHistory(*std::move(db), limits, options));
}

absl::Status PostgresHistory::Ping() {
  const MutexLock lock(mutex_);
  return Sql(db(), "SELECT 1").Run();
}

absl::Status PostgresHistory::Begin() {
  const MutexLock lock(mutex_);
  checked_.clear();
  together_ = std::make_unique<SqlTransaction>(db());
  return together_->begun();
}

absl::Status PostgresHistory::End(const absl::Status& status) {
  const MutexLock lock(mutex_);
  const absl::Status ended = together_->End(status);
  together_.reset();
  checked_.clear();
  // Partitions that the transaction made are gone with it.
  if (!ended.ok()) known_.clear();
  return ended;
}

absl::Status PostgresHistory::CheckOwner(const JobId& job, int64_t token) {
  if (checked_.count({job, token}) > 0) return absl::OkStatus();
  Sql row(db(),
          "SELECT coalesce(o.daemon, ''), o.token, CASE WHEN ? = '' OR o.incarnation = ? THEN 0 "
          "WHEN (SELECT s.number FROM daemon_starts AS s WHERE s.incarnation = o.incarnation) > "
          "(SELECT s.number FROM daemon_starts AS s WHERE s.incarnation = ?) THEN 1 ELSE 0 END "
          "FROM owners AS o WHERE o.tenant = ? AND o.job = ? FOR SHARE OF o",
          incarnation_, incarnation_, incarnation_, job.tenant, job.job);
  if (!row.Next()) return row.status();
  const std::string owner = row.Bytes(0);
  const bool is_of_another = !owner.empty() && owner != daemon_;
  if (token > 0 ? token < row.Integer(1) : is_of_another) {
    return absl::AbortedError(absl::StrCat("another daemon has had the job ", ToText(job), " since",
                                           owner.empty() ? "" : ": ", owner));
  }
  if (owner == daemon_ && row.Integer(2) != 0) {
    return absl::AbortedError(absl::StrCat("a daemon that started later has this one's name, ",
                                           daemon_, ", and the job ", ToText(job)));
  }
  if (together_ != nullptr) checked_.insert({job, token});
  return absl::OkStatus();
}

// Partitions that the write made are gone with it. Those of a larger transaction go at its end.
void PostgresHistory::NoteUndone() {
  if (together_ == nullptr) known_.clear();
}

absl::Status PostgresHistory::Ensure(const std::string& table, int64_t wall_ns) {
  const std::pair<std::string, int64_t> partition = {table, WeekOf(wall_ns)};
  if (known_.count(partition) > 0) return absl::OkStatus();
  const absl::Status status = EnsurePartition(db(), table, partition.second);
  if (status.ok()) known_.insert(partition);
  return status;
}

absl::Status PostgresHistory::SaveIncident(const IncidentRow& row) {
  SqlDatabase* const db = this->db();
  absl::Status status;
  for (const char* table : kOfIncidents) {
    if (status.ok()) status = Ensure(table, row.opened_ns);
  }
  if (!status.ok()) return status;
  Sql sql(db,
          "INSERT INTO incidents (id, opened_ns, tenant, job, attempt, number, cause, state, "
          "closed_ns, confirmed, signature, hang, daemon, summary, stacks) VALUES (?, ?, ?, ?, ?, "
          "?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (id, opened_ns) DO UPDATE SET tenant = "
          "excluded.tenant, job = excluded.job, attempt = excluded.attempt, number = "
          "excluded.number, cause = excluded.cause, state = excluded.state, closed_ns = "
          "excluded.closed_ns, confirmed = excluded.confirmed, signature = excluded.signature, "
          "hang = excluded.hang, daemon = excluded.daemon, summary = excluded.summary, stacks = "
          "excluded.stacks",
          row.id, row.opened_ns, row.tenant, row.job, row.attempt, row.number, row.cause, row.state,
          row.closed_ns, row.is_confirmed ? 1 : 0, row.signature, row.hang, daemon_);
  status = sql.BindBlob(row.summary).BindBlob(row.stacks).Run();
  if (status.ok()) {
    status = Sql(db, "DELETE FROM culprits WHERE incident = ? AND incident_opened_ns = ?", row.id,
                 row.opened_ns)
                 .Run();
  }
  if (status.ok()) {
    status = Sql(db,
                 "INSERT INTO job_numbers AS n VALUES (?, ?, ?, ?) ON CONFLICT (tenant, job) DO "
                 "UPDATE SET number = greatest(n.number, excluded.number), opened_ns = "
                 "greatest(n.opened_ns, excluded.opened_ns)",
                 row.tenant, row.job, row.number, row.opened_ns)
                 .Run();
  }
  std::vector<std::vector<SqlValue>> culprits;
  for (const auto& [host, rank] : row.culprits) {
    culprits.push_back({row.id, row.opened_ns, host, int64_t{rank}});
  }
  if (status.ok())
    status = InsertRows(db, "INSERT INTO culprits VALUES {rows} ON CONFLICT DO NOTHING", culprits);
  if (status.ok()) status = ReplaceFacts(row);
  // Another daemon has dropped the partition: the next attempt makes it.
  if (absl::StrContains(status.message(), kNoPartition)) {
    known_.clear();
    return absl::UnavailableError(status.message());
  }
  return status;
}

absl::Status PostgresHistory::ReplaceFacts(const IncidentRow& row) {
  absl::Status status = Ensure("incident_facts", row.opened_ns);
  if (status.ok()) {
    status = Sql(db(), "DELETE FROM incident_facts WHERE opened_ns = ? AND incident = ?",
                 row.opened_ns, row.id)
                 .Run();
  }
  return status.ok() ? SaveFacts(row) : status;
}

absl::Status PostgresHistory::LockTables() { return rollcall::LockTables(db()); }

absl::Status PostgresHistory::LockWeeks(Others others) {
  return Sql(db(), absl::StrCat("SELECT pg_advisory_xact_lock",
                                others == Others::kMaySave ? "_shared" : "",
                                "(hashtext('rollcall weeks'), hashtext(current_schema()))"))
      .Run();
}

absl::Status PostgresHistory::SaveAction(const v1::HistoryWrite::Action& action) {
  const absl::Status status = Ensure("actions", action.at_ns());
  if (!status.ok()) return status;
  const absl::Status saved =
      Sql(db(),
          "INSERT INTO actions (at_ns, content, who, action, object, peer, daemon) VALUES (?, "
          "md5(? || chr(10) || ? || chr(10) || ? || chr(10) || ?), ?, ?, ?, ?, ?) ON CONFLICT DO "
          "NOTHING",
          action.at_ns(), action.who(), action.action(), action.object(), action.peer(),
          action.who(), action.action(), action.object(), action.peer(), daemon_)
          .Run();
  if (absl::StrContains(saved.message(), kNoPartition)) {
    known_.clear();
    return absl::UnavailableError(saved.message());
  }
  return saved;
}

absl::Status PostgresHistory::DropOld(int64_t now_ns) {
  const int64_t oldest_incident = WeekOf(now_ns - limits_.keep_ns);
  const int64_t oldest_action = WeekOf(now_ns - kKeepActionRowsNs);
  for (const char* table : {"incidents", "culprits", "incident_facts", "actions"}) {
    const auto partitions = ListPartitions(db(), table);
    if (!partitions.ok()) return partitions.status();
    const int64_t oldest = std::string(table) == "actions" ? oldest_action : oldest_incident;
    for (const Partition& partition : *partitions) {
      if (partition.week >= oldest) break;
      const absl::Status status = DropPartition(db(), table, partition.week);
      if (!status.ok()) return status;
    }
  }
  return absl::OkStatus();
}

// Drops the oldest weeks, up to the last one, while all of them together are too large. Returns the
// bytes that are left.
absl::StatusOr<int64_t> PostgresHistory::DropExcess(int64_t now_ns) {
  std::map<int64_t, int64_t> bytes;  // by week
  int64_t all = 0;
  for (const char* table : kOfIncidents) {
    const auto partitions = ListPartitions(db(), table);
    if (!partitions.ok()) return partitions.status();
    for (const Partition& partition : *partitions) {
      bytes[partition.week] += partition.bytes;
      all += partition.bytes;
    }
  }
  const int64_t this_week = WeekOf(now_ns);
  for (const auto& [week, size] : bytes) {
    if (all <= limits_.keep_bytes || week >= this_week) break;
    spdlog::warn(
        "dropping a week of incidents, because the history is larger than --history-size: {}",
        PartitionName("incidents", week));
    for (const char* table : kOfIncidents) {
      const absl::Status status = DropPartition(db(), table, week);
      if (!status.ok()) return status;
    }
    all -= size;
  }
  return all;
}

// Of the last week the newest rows stay. The server gives no room back for deleted ones, and uses
// it again: so their own bytes count.
absl::Status PostgresHistory::DeleteExcess() {
  SqlDatabase* const db = this->db();
  Sql sql(db,
          absl::StrCat("DELETE FROM incidents WHERE (id, opened_ns) IN (SELECT id, opened_ns FROM "
                       "(SELECT "
                       "id, opened_ns, sum(",
                       kBytesOfIncident,
                       ") OVER (ORDER BY opened_ns DESC, id ROWS "
                       "UNBOUNDED PRECEDING) AS kept FROM incidents) AS summed WHERE kept > ?)"),
          limits_.keep_bytes);
  const absl::Status status = sql.Run();
  if (!status.ok() || sql.changed() == 0) return status;
  spdlog::warn(
      "deleted {} incidents of this week, because the history is larger than --history-size",
      sql.changed());
  const absl::Status deleted =
      Sql(db,
          "DELETE FROM culprits WHERE NOT EXISTS (SELECT 1 FROM incidents WHERE id = incident "
          "AND opened_ns = incident_opened_ns)")
          .Run();
  if (!deleted.ok()) return deleted;
  return Sql(db,
             "DELETE FROM incident_facts WHERE opened_ns < (SELECT min(opened_ns) FROM "
             "incidents)")
      .Run();
}

absl::Status PostgresHistory::TrimIncidents(int64_t now_ns) {
  known_.clear();
  absl::Status status = LockTables();
  if (status.ok()) status = DropOld(now_ns);
  if (status.ok()) {
    const absl::StatusOr<int64_t> left = DropExcess(now_ns);
    status = left.ok() && *left > limits_.keep_bytes ? DeleteExcess() : left.status();
  }
  if (status.ok()) {
    status =
        Sql(db(), "DELETE FROM job_numbers WHERE opened_ns < ?", now_ns - limits_.keep_ns).Run();
  }
  // In time, so that no incident waits for it.
  for (const char* table : {"incidents", "culprits", "incident_facts", "actions"}) {
    for (const int64_t ahead : {int64_t{0}, 7 * 24 * 3600 * kSecond}) {
      if (status.ok()) status = Ensure(table, now_ns + ahead);
    }
  }
  return status;
}

// The server does that by itself.
absl::Status PostgresHistory::Vacuum() { return absl::OkStatus(); }

}  // namespace rollcall
