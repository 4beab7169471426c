// SPDX-License-Identifier: Apache-2.0
#include "daemon/history/sqlite_history.h"

#include <fcntl.h>
#include <spdlog/spdlog.h>
#include <sqlite3.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstdio>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/mutex.h"
#include "base/unique_fd.h"
#include "daemon/history/incident_groups.h"
#include "daemon/history/sqlite_database.h"

namespace rollcall {
namespace {

// PRAGMA user_version: changes only when the previous release can no longer use the file.
constexpr int kCompatibleWith = 1;
// meta.layout: changes with each addition.
constexpr int kLayout = 7;
// Incidents that the previous release wrote, and that Open() may index at once.
constexpr int kMostIndexed = 10'000;
constexpr int kBusyMs = 2000;
constexpr int kReaderBusyMs = 500;
constexpr mode_t kFileMode = 0640;

constexpr const char* kTables[] = {
    "CREATE TABLE IF NOT EXISTS incidents (id TEXT PRIMARY KEY, job TEXT NOT NULL, number INTEGER "
    "NOT NULL, cause TEXT NOT NULL, state TEXT NOT NULL, opened_ns INTEGER NOT NULL, closed_ns "
    "INTEGER NOT NULL, summary BLOB NOT NULL, stacks BLOB NOT NULL) WITHOUT ROWID",
    "CREATE INDEX IF NOT EXISTS incidents_by_time ON incidents (opened_ns)",
    "CREATE INDEX IF NOT EXISTS incidents_by_job ON incidents (job, number)",
    "CREATE TABLE IF NOT EXISTS culprits (incident TEXT NOT NULL, host TEXT NOT NULL, rank INTEGER "
    "NOT NULL, PRIMARY KEY (incident, host, rank)) WITHOUT ROWID",
    "CREATE INDEX IF NOT EXISTS culprits_by_host ON culprits (host)",
    // Layout 2. Only tables are added: the previous release inserts whole rows into the tables
    // above.
    "CREATE TABLE IF NOT EXISTS meta (name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID",
    "CREATE TABLE IF NOT EXISTS incident_keys (incident TEXT PRIMARY KEY, tenant TEXT NOT NULL, "
    "attempt INTEGER NOT NULL) WITHOUT ROWID",
    "CREATE TABLE IF NOT EXISTS outbox (incident TEXT NOT NULL, sequence INTEGER NOT NULL, kind "
    "TEXT NOT NULL, made_ns INTEGER NOT NULL, body BLOB NOT NULL, sent INTEGER NOT NULL, PRIMARY "
    "KEY (incident, sequence)) WITHOUT ROWID",
    "CREATE TABLE IF NOT EXISTS outbox_receivers (incident TEXT NOT NULL, sequence INTEGER NOT "
    "NULL, receiver TEXT NOT NULL, PRIMARY KEY (incident, sequence, receiver)) WITHOUT ROWID",
    "CREATE TABLE IF NOT EXISTS job_hosts (tenant TEXT NOT NULL, job TEXT NOT NULL, attempt "
    "INTEGER NOT NULL, host TEXT NOT NULL, seen_ns INTEGER NOT NULL, PRIMARY KEY (tenant, job, "
    "attempt, host)) WITHOUT ROWID",
    // Layout 3.
    "CREATE TABLE IF NOT EXISTS job_attempts (tenant TEXT NOT NULL, job TEXT NOT NULL, attempt "
    "INTEGER NOT NULL, world_size INTEGER NOT NULL, restarts TEXT NOT NULL, launch TEXT NOT NULL, "
    "has_twin INTEGER NOT NULL, seen_ns INTEGER NOT NULL, PRIMARY KEY (tenant, job, attempt)) "
    "WITHOUT ROWID",
    "CREATE TABLE IF NOT EXISTS attempt_members (tenant TEXT NOT NULL, job TEXT NOT NULL, attempt "
    "INTEGER NOT NULL, host TEXT NOT NULL, pid INTEGER NOT NULL, start_time INTEGER NOT NULL, "
    "rank INTEGER NOT NULL, PRIMARY KEY (tenant, job, attempt, host, pid, start_time)) "
    "WITHOUT ROWID",
    // Layout 4.
    "CREATE TABLE IF NOT EXISTS actions (at_ns INTEGER NOT NULL, who TEXT NOT NULL, action TEXT "
    "NOT NULL, object TEXT NOT NULL, peer TEXT NOT NULL)",
    "CREATE INDEX IF NOT EXISTS actions_by_time ON actions (at_ns)",
    // Layout 5.
    "CREATE TABLE IF NOT EXISTS incident_signatures (incident TEXT PRIMARY KEY, tenant TEXT NOT "
    "NULL, signature TEXT NOT NULL, hang TEXT NOT NULL, confirmed INTEGER NOT NULL, opened_ns "
    "INTEGER NOT NULL) WITHOUT ROWID",
    "CREATE INDEX IF NOT EXISTS signatures_by_text ON incident_signatures (signature, opened_ns)",
    // Layout 6.
    "CREATE TABLE IF NOT EXISTS silences (id TEXT PRIMARY KEY, until_ns INTEGER NOT NULL, body "
    "BLOB NOT NULL) WITHOUT ROWID",
    // Layout 7. For queries over all history: incident_facts.h, history_weeks.cc.
    "CREATE TABLE IF NOT EXISTS incident_facts (kind TEXT NOT NULL, opened_ns INTEGER NOT NULL, "
    "value TEXT NOT NULL, incident TEXT NOT NULL, tenant TEXT NOT NULL, cause TEXT NOT NULL, "
    "certain INTEGER NOT NULL, lost_rank_ms INTEGER NOT NULL, PRIMARY KEY (kind, opened_ns, value, "
    "incident)) WITHOUT ROWID",
    "CREATE INDEX IF NOT EXISTS facts_by_incident ON incident_facts (incident)",
    "CREATE INDEX IF NOT EXISTS facts_by_time ON incident_facts (opened_ns)",
    "CREATE TABLE IF NOT EXISTS week_counts (week INTEGER NOT NULL, kind TEXT NOT NULL, tenant "
    "TEXT NOT NULL, cause TEXT NOT NULL, value TEXT NOT NULL, incidents INTEGER NOT NULL, certain "
    "INTEGER NOT NULL, lost_rank_ms INTEGER NOT NULL, last_ns INTEGER NOT NULL, PRIMARY KEY (week, "
    "kind, tenant, cause, value)) WITHOUT ROWID",
    "CREATE TABLE IF NOT EXISTS counted_weeks (week INTEGER PRIMARY KEY, mark INTEGER NOT NULL)",
    "CREATE TABLE IF NOT EXISTS facts_filled (id INTEGER PRIMARY KEY, below_ns INTEGER NOT NULL)",
    "INSERT INTO facts_filled VALUES (1, 9223372036854775807) ON CONFLICT (id) DO NOTHING",
};

absl::Status Execute(SqlDatabase* db, const std::string& text) { return Sql(db, text).Run(); }

absl::Status SaveSignature(SqlDatabase* db, const IncidentRow& row) {
  return Sql(db, "INSERT OR REPLACE INTO incident_signatures VALUES (?, ?, ?, ?, ?, ?)", row.id,
             row.tenant, row.signature, row.hang, row.is_confirmed ? 1 : 0, row.opened_ns)
      .Run();
}

// The previous release writes no signatures. Indexes the newest of its incidents.
absl::Status SaveLackingSignatures(SqlDatabase* db) {
  std::vector<v1::Incident> lacking;
  Sql rows(db,
           "SELECT id, summary FROM incidents WHERE id NOT IN (SELECT incident FROM "
           "incident_signatures) ORDER BY opened_ns DESC LIMIT ?");
  rows.Bind(kMostIndexed);
  while (rows.Next()) {
    v1::Incident& incident = lacking.emplace_back();
    // One that cannot be read gets a row as well: it is in no group.
    if (!incident.ParseFromString(rows.Bytes(1))) incident.Clear();
    incident.set_id(rows.Bytes(0));
  }
  absl::Status status = rows.status();
  for (const v1::Incident& incident : lacking) {
    if (status.ok()) status = SaveSignature(db, ToRow(incident));
  }
  return status;
}

// SQLite gives its files beside the database the mode of the database.
void KeepOthersOut(const std::string& path) {
  // Only for a new file: closing a file that SQLite has open would end SQLite's locks on it.
  UniqueFd(open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, kFileMode));
  for (const char* part : {"", "-wal", "-shm"}) {
    struct stat info = {};
    // O_PATH opens no file, so closing this ends no lock.
    const UniqueFd file(open((path + part).c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
    if (!file.valid() || fstat(file.get(), &info) != 0 || !S_ISREG(info.st_mode)) continue;
    if ((info.st_mode & 0777 & ~kFileMode) == 0) continue;
    chmod(absl::StrCat("/proc/self/fd/", file.get()).c_str(), info.st_mode & kFileMode);
  }
}

std::pair<uint64_t, uint64_t> FileAt(const std::string& path) {
  struct stat info = {};
  if (stat(path.c_str(), &info) != 0) return {0, 0};
  return {info.st_dev, info.st_ino};
}

// What incidents take in the file, about. A row of `culprits` is in its table and in an index.
constexpr char kBytesOfIncidents[] =
    "SELECT (SELECT coalesce(sum(128 + length(summary) + length(stacks)), 0) FROM incidents) + "
    "(SELECT coalesce(sum(2 * (16 + length(incident) + length(host))), 0) FROM culprits) + "
    "(SELECT coalesce(sum(72 + 2 * length(incident) + length(value)), 0) FROM incident_facts)";

int64_t UsedBytes(SqlDatabase* db) {
  const int64_t page = std::max<int64_t>(ReadInteger(db, "PRAGMA page_size"), 1);
  return (ReadInteger(db, "PRAGMA page_count") - ReadInteger(db, "PRAGMA freelist_count")) * page;
}

// The rows that belong to incidents that were deleted.
absl::Status DeleteOrphans(SqlDatabase* db) {
  absl::Status status;
  for (const char* table : {"culprits", "incident_keys", "incident_signatures", "incident_facts"}) {
    if (!status.ok()) break;
    status = Sql(db, absl::StrCat("DELETE FROM ", table,
                                  " WHERE incident NOT IN (SELECT id FROM incidents)"))
                 .Run();
  }
  return status;
}

}  // namespace

SqliteHistory::SqliteHistory(std::unique_ptr<SqlDatabase> db, std::string path,
                             const HistoryLimits& limits)
    : SqlHistory(std::move(db), kSqliteDialect, limits, ""),
      path_(std::move(path)),
      file_(FileAt(path_)) {}

bool SqliteHistory::RenameDamaged(const std::string& path) {
  const std::string aside = absl::StrCat(path, ".damaged-", absl::ToUnixSeconds(absl::Now()));
  spdlog::error("the history {} is damaged: renaming it to {} and beginning a new one", path,
                aside);
  // SQLite must not use the files of the old database for the new one.
  for (const char* part : {"-wal", "-shm"}) {
    (void)std::rename((path + part).c_str(), (aside + part).c_str());
  }
  return std::rename(path.c_str(), aside.c_str()) == 0;
}

bool SqliteHistory::IsInPlace() const { return path_.empty() || FileAt(path_) == file_; }

absl::StatusOr<std::unique_ptr<SqliteHistory>> SqliteHistory::OpenToRead(const std::string& path) {
  sqlite3* db = nullptr;
  const int opened = sqlite3_open_v2(path.c_str(), &db, SQLITE_OPEN_READWRITE, nullptr);
  auto database = std::make_unique<SqliteDatabase>(db);
  if (opened != SQLITE_OK) return absl::UnavailableError(sqlite3_errstr(opened));
  sqlite3_busy_timeout(db, kReaderBusyMs);
  const absl::Status status = Execute(database.get(), "PRAGMA query_only = 1");
  if (!status.ok()) return status;
  return std::unique_ptr<SqliteHistory>(new SqliteHistory(std::move(database), path, {}));
}

absl::StatusOr<std::unique_ptr<SqliteHistory>> SqliteHistory::Open(const std::string& path,
                                                                   const HistoryLimits& limits) {
  return OpenAs(path, [&](std::unique_ptr<SqlDatabase> db) {
    return std::unique_ptr<SqliteHistory>(new SqliteHistory(std::move(db), path, limits));
  });
}

absl::StatusOr<std::unique_ptr<SqliteHistory>> SqliteHistory::OpenExisting(
    const std::string& path) {
  sqlite3* db = nullptr;
  const int opened = sqlite3_open_v2(path.c_str(), &db, SQLITE_OPEN_READWRITE, nullptr);
  std::unique_ptr<SqliteHistory> history(
      new SqliteHistory(std::make_unique<SqliteDatabase>(db), path, {}));
  absl::Status status;
  if (opened != SQLITE_OK) {
    status = absl::UnavailableError(sqlite3_errstr(opened));
  } else {
    sqlite3_busy_timeout(db, kBusyMs);
    status = history->PrepareExisting();
  }
  if (status.ok()) return history;
  return absl::Status(status.code(),
                      absl::StrCat("the history ", path, " cannot be used: ", status.message()));
}

absl::Status SqliteHistory::PrepareExisting() {
  {
    const MutexLock lock(mutex_);
    Sql tables(db(), "SELECT count(*) FROM sqlite_master WHERE name IN ('incidents', 'culprits')");
    if (!tables.Next()) return tables.status();
    if (tables.Integer(0) != 2) {
      return absl::InvalidArgumentError("it is not a history of rollcalld");
    }
  }
  return Prepare();
}

absl::StatusOr<std::unique_ptr<SqliteHistory>> SqliteHistory::OpenAs(const std::string& path,
                                                                     const Make& make) {
  absl::Status problem;
  for (const bool again : {false, true}) {
    sqlite3* db = nullptr;
    if (!path.empty()) KeepOthersOut(path);
    const int opened = sqlite3_open(path.empty() ? ":memory:" : path.c_str(), &db);
    if (opened == SQLITE_OK) sqlite3_busy_timeout(db, kBusyMs);
    std::unique_ptr<SqliteHistory> history = make(std::make_unique<SqliteDatabase>(db));
    problem =
        opened == SQLITE_OK ? history->Prepare() : absl::UnavailableError(sqlite3_errstr(opened));
    if (problem.ok()) return history;
    if (again || !absl::IsDataLoss(problem)) break;
    history.reset();
    if (!RenameDamaged(path)) break;
  }
  return absl::UnavailableError(absl::StrCat(
      "the history ", path, " cannot be used: ", problem.message(),
      "\n  another one?  --history=FILE   (none: incidents are kept while this daemon runs)"));
}

absl::Status SqliteHistory::Prepare() {
  const MutexLock lock(mutex_);
  SqlDatabase* const db = this->db();
  if (ReadInteger(db, "PRAGMA user_version") > kCompatibleWith) {
    return absl::UnavailableError("it was written by a later release of Rollcall");
  }
  absl::Status status = Execute(db, "PRAGMA auto_vacuum = INCREMENTAL");
  if (status.ok()) status = Execute(db, "PRAGMA journal_mode = WAL");
  if (status.ok()) status = CreateTables();
  if (!status.ok()) return status;
  SqlTransaction transaction(db);
  return transaction.End(transaction.begun().ok() ? SaveLackingSignatures(db)
                                                  : transaction.begun());
}

absl::Status SqliteHistory::CreateTables() {
  absl::Status status;
  for (const char* table : kTables) {
    if (status.ok()) status = Execute(db(), table);
  }
  if (status.ok()) status = Execute(db(), absl::StrCat("PRAGMA user_version = ", kCompatibleWith));
  // Keeps the number of a later layout.
  if (status.ok()) {
    status = Execute(
        db(), absl::StrCat("INSERT INTO meta VALUES ('layout', ", kLayout,
                           ") ON CONFLICT (name) DO UPDATE SET value = max(value, ", kLayout, ")"));
  }
  return status;
}

absl::Status SqliteHistory::SaveIncident(const IncidentRow& row) {
  SqlDatabase* const db = this->db();
  absl::Status status =
      Sql(db, "INSERT OR REPLACE INTO incidents VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", row.id,
          row.job, row.number, row.cause, row.state, row.opened_ns, row.closed_ns)
          .BindBlob(row.summary)
          .BindBlob(row.stacks)
          .Run();
  if (status.ok()) {
    status = Sql(db, "INSERT OR REPLACE INTO incident_keys VALUES (?, ?, ?)", row.id, row.tenant,
                 row.attempt)
                 .Run();
  }
  if (status.ok()) status = SaveSignature(db, row);
  if (status.ok()) status = Sql(db, "DELETE FROM culprits WHERE incident = ?", row.id).Run();
  if (!status.ok()) return status;
  std::vector<std::vector<SqlValue>> culprits;
  for (const auto& [host, rank] : row.culprits) culprits.push_back({row.id, host, int64_t{rank}});
  status = InsertRows(db, "INSERT INTO culprits VALUES {rows}", culprits);
  return status.ok() ? ReplaceFacts(row) : status;
}

absl::Status SqliteHistory::ReplaceFacts(const IncidentRow& row) {
  const absl::Status status =
      Sql(db(), "DELETE FROM incident_facts WHERE incident = ?", row.id).Run();
  return status.ok() ? SaveFacts(row) : status;
}

// One daemon has the file.
absl::Status SqliteHistory::LockTables() { return absl::OkStatus(); }
absl::Status SqliteHistory::LockWeeks(Others /*others*/) { return absl::OkStatus(); }

absl::Status SqliteHistory::SaveAction(const v1::HistoryWrite::Action& action) {
  return Sql(db(), "INSERT INTO actions VALUES (?, ?, ?, ?, ?)", action.at_ns(), action.who(),
             action.action(), action.object(), action.peer())
      .Run();
}

// Deletes the oldest incidents while the file is too large. Incidents have at least a half of the
// file, whatever the other tables take: those have limits of their own.
absl::Status SqliteHistory::TrimIncidents(int64_t now_ns) {
  SqlDatabase* const db = this->db();
  absl::Status status =
      Sql(db, "DELETE FROM incidents WHERE opened_ns < ?", now_ns - limits_.keep_ns).Run();
  if (status.ok()) status = DeleteOrphans(db);
  while (status.ok() && UsedBytes(db) > limits_.keep_bytes &&
         ReadInteger(db, kBytesOfIncidents) > limits_.keep_bytes / 2 &&
         ReadInteger(db, "SELECT count(*) FROM incidents") > 1) {
    status = Sql(db,
                 "DELETE FROM incidents WHERE id IN (SELECT id FROM incidents ORDER BY "
                 "opened_ns LIMIT (SELECT count(*) / 10 + 1 FROM incidents))")
                 .Run();
    if (status.ok()) status = DeleteOrphans(db);
  }
  return status;
}

absl::Status SqliteHistory::Vacuum() { return Execute(db(), "PRAGMA incremental_vacuum"); }

}  // namespace rollcall
