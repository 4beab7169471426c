// SPDX-License-Identifier: Apache-2.0
#include "daemon/store/history.h"

#include <fcntl.h>
#include <spdlog/spdlog.h>
#include <sqlite3.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <set>
#include <utility>
#include <vector>

#include "absl/time/clock.h"
#include "daemon/store/history_filter.h"
#include "daemon/store/incident_groups.h"
#include "daemon/store/sql.h"
#include "proto/whole_numbers.h"

namespace rollcall {
namespace {

// PRAGMA user_version: changes only when the previous release can no longer use the file.
constexpr int kCompatibleWith = 1;
// meta.layout: changes with each addition.
constexpr int kLayout = 6;
// Incidents that the previous release wrote, and that Open() may index at once.
constexpr int kMostIndexed = 10'000;
constexpr int kMaxRepeated = 20;
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
    "CREATE TABLE IF NOT EXISTS actions (at_ns INTEGER NOT NULL, who TEXT NOT NULL, action TEXT NOT "
    "NULL, object TEXT NOT NULL, peer TEXT NOT NULL)",
    "CREATE INDEX IF NOT EXISTS actions_by_time ON actions (at_ns)",
    // Layout 5.
    "CREATE TABLE IF NOT EXISTS incident_signatures (incident TEXT PRIMARY KEY, tenant TEXT NOT NULL, "
    "signature TEXT NOT NULL, hang TEXT NOT NULL, confirmed INTEGER NOT NULL, opened_ns INTEGER NOT "
    "NULL) WITHOUT ROWID",
    "CREATE INDEX IF NOT EXISTS signatures_by_text ON incident_signatures (signature, opened_ns)",
    // Layout 6.
    "CREATE TABLE IF NOT EXISTS silences (id TEXT PRIMARY KEY, until_ns INTEGER NOT NULL, body BLOB "
    "NOT NULL) WITHOUT ROWID",
};

// Splits an incident into the part for lists, and the stacks.
std::pair<std::string, std::string> Parts(const v1::Incident& incident) {
  v1::Incident head = incident;
  v1::Incident stacks;
  stacks.mutable_stacks()->Swap(head.mutable_stacks());
  stacks.mutable_stack_tree()->Swap(head.mutable_stack_tree());
  return {head.SerializeAsString(), stacks.SerializeAsString()};
}

absl::Status AddRepeated(sqlite3* db, const HistoryFilter& filter, v1::ListIncidentsResponse* response) {
  const std::string chosen = "SELECT id FROM incidents" + filter.Where();
  Sql hosts(db, "SELECT host, count(DISTINCT incident) AS n FROM culprits WHERE host != '' AND "
                "incident IN (" + chosen + ") GROUP BY host HAVING n > 1 ORDER BY n DESC LIMIT ?");
  filter.BindTo(&hosts);
  hosts.Bind(kMaxRepeated);
  while (hosts.Next()) {
    v1::Repeated* repeated = response->add_repeated();
    repeated->set_host(hosts.Bytes(0));
    repeated->set_rank(-1);
    repeated->set_incidents(static_cast<int32_t>(hosts.Integer(1)));
  }
  if (!hosts.status().ok()) return hosts.status();
  Sql ranks(db, "SELECT job, rank, count(DISTINCT culprits.incident) AS n, coalesce(tenant, '') AS "
                "t FROM culprits JOIN incidents ON culprits.incident = id LEFT JOIN incident_keys "
                "ON incident_keys.incident = id WHERE rank >= 0 AND id IN (" + chosen +
                ") GROUP BY t, job, rank HAVING n > 1 ORDER BY n DESC LIMIT ?");
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

absl::Status SaveSignature(sqlite3* db, const v1::Incident& incident) {
  return Sql(db, "INSERT OR REPLACE INTO incident_signatures VALUES (?, ?, ?, ?, ?, ?)",
             incident.id(), ReadJobKey(incident).tenant, SignatureOf(incident), HangOf(incident),
             incident.has_confirmed_at() ? 1 : 0, NsOf(incident.opened_at()))
      .Run();
}

// The previous release writes no signatures. Indexes the newest of its incidents.
absl::Status SaveLackingSignatures(sqlite3* db) {
  std::vector<v1::Incident> lacking;
  Sql rows(db, "SELECT id, summary FROM incidents WHERE id NOT IN (SELECT incident FROM "
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
    if (status.ok()) status = SaveSignature(db, incident);
  }
  return status;
}

absl::Status Execute(sqlite3* db, const std::string& text) { return Sql(db, text).Run(); }

int64_t ReadInteger(sqlite3* db, const std::string& text) {
  Sql sql(db, text);
  return sql.Next() ? sql.Integer(0) : 0;
}

}  // namespace

namespace {

// SQLite gives its files beside the database the mode of the database.
void KeepOthersOut(const std::string& path) {
  // Only for a new file: closing a file that SQLite has open would end SQLite's locks on it.
  const int fd = open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, kFileMode);
  if (fd >= 0) close(fd);
  for (const char* part : {"", "-wal", "-shm"}) {
    struct stat info = {};
    const std::string name = path + part;
    if (lstat(name.c_str(), &info) != 0 || !S_ISREG(info.st_mode)) continue;
    if ((info.st_mode & 0777 & ~kFileMode) != 0) chmod(name.c_str(), info.st_mode & kFileMode);
  }
}

std::pair<uint64_t, uint64_t> FileAt(const std::string& path) {
  struct stat info = {};
  if (stat(path.c_str(), &info) != 0) return {0, 0};
  return {info.st_dev, info.st_ino};
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

bool History::RenameDamaged(const std::string& path) {
  const std::string aside = absl::StrCat(path, ".damaged-", absl::ToUnixSeconds(absl::Now()));
  spdlog::error("the history {} is damaged: renaming it to {} and beginning a new one", path, aside);
  // SQLite must not use the files of the old database for the new one.
  for (const char* part : {"-wal", "-shm"}) {
    (void)std::rename((path + part).c_str(), (aside + part).c_str());
  }
  return std::rename(path.c_str(), aside.c_str()) == 0;
}

bool History::IsInPlace() const { return path_.empty() || FileAt(path_) == file_; }

absl::StatusOr<std::unique_ptr<History>> History::OpenToRead(const std::string& path) {
  sqlite3* db = nullptr;
  const int opened = sqlite3_open_v2(path.c_str(), &db, SQLITE_OPEN_READWRITE, nullptr);
  std::unique_ptr<History> history(new History(db, path, {}));
  if (opened != SQLITE_OK) return absl::UnavailableError(sqlite3_errstr(opened));
  sqlite3_busy_timeout(db, kReaderBusyMs);
  const absl::Status status = Execute(db, "PRAGMA query_only = 1");
  if (!status.ok()) return status;
  return history;
}

absl::StatusOr<std::unique_ptr<History>> History::Open(const std::string& path,
                                                       const HistoryLimits& limits) {
  absl::Status problem;
  for (const bool again : {false, true}) {
    sqlite3* db = nullptr;
    if (!path.empty()) KeepOthersOut(path);
    const int opened = sqlite3_open(path.empty() ? ":memory:" : path.c_str(), &db);
    std::unique_ptr<History> history(new History(db, path, limits));
    history->file_ = FileAt(path);
    problem = opened == SQLITE_OK ? history->Prepare()
                                  : absl::UnavailableError(sqlite3_errstr(opened));
    if (problem.ok()) return history;
    if (again || !absl::IsDataLoss(problem)) break;
    history.reset();
    if (!RenameDamaged(path)) break;
  }
  return absl::UnavailableError(absl::StrCat(
      "the history ", path, " cannot be used: ", problem.message(),
      "\n  another one?  --history=FILE   (none: incidents are kept while this daemon runs)"));
}

History::~History() { sqlite3_close(db_); }

absl::Status History::Prepare() {
  const absl::MutexLock lock(&mutex_);
  sqlite3_busy_timeout(db_, kBusyMs);
  if (ReadInteger(db_, "PRAGMA user_version") > kCompatibleWith) {
    return absl::UnavailableError("it was written by a later release of Rollcall");
  }
  absl::Status status = Execute(db_, "PRAGMA auto_vacuum = INCREMENTAL");
  if (status.ok()) status = Execute(db_, "PRAGMA journal_mode = WAL");
  if (status.ok()) status = CreateTables();
  if (status.ok()) status = Execute(db_, "BEGIN IMMEDIATE");
  if (!status.ok()) return status;
  status = SaveLackingSignatures(db_);
  const absl::Status ended = Execute(db_, status.ok() ? "COMMIT" : "ROLLBACK");
  return status.ok() ? ended : status;
}

absl::Status History::CreateTables() {
  absl::Status status;
  for (const char* table : kTables) {
    if (status.ok()) status = Execute(db_, table);
  }
  if (status.ok()) status = Execute(db_, absl::StrCat("PRAGMA user_version = ", kCompatibleWith));
  // Keeps the number of a later layout.
  if (status.ok()) {
    status = Execute(db_, absl::StrCat("INSERT INTO meta VALUES ('layout', ", kLayout,
                                       ") ON CONFLICT (name) DO UPDATE SET value = max(value, ",
                                       kLayout, ")"));
  }
  return status;
}

absl::Status History::Save(const v1::Incident& incident) {
  const auto [head, stacks] = Parts(incident);
  const std::string cause = incident.verdicts().empty() ? "" : incident.verdicts(0).cause();
  std::set<std::pair<std::string, int32_t>> culprits;
  if (!incident.verdicts().empty()) {
    for (const v1::Culprit& culprit : incident.verdicts(0).culprits()) {
      culprits.emplace(culprit.host(), culprit.rank());
    }
    // Of very many culprits the index has the ranks of those that are listed, and all hosts.
    for (const std::string& host : incident.verdicts(0).other_culprit_hosts()) {
      culprits.emplace(host, -1);
    }
  }
  const absl::MutexLock lock(&mutex_);
  absl::Status status = Execute(db_, "BEGIN IMMEDIATE");
  if (!status.ok()) return status;
  status = Sql(db_, "INSERT OR REPLACE INTO incidents VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
               incident.id(), incident.job(), IncidentNumber(incident), cause, incident.state(),
               NsOf(incident.opened_at()), NsOf(incident.closed_at()))
               .BindBlob(head)
               .BindBlob(stacks)
               .Run();
  if (status.ok()) {
    status = Sql(db_, "INSERT OR REPLACE INTO incident_keys VALUES (?, ?, ?)", incident.id(),
                 ReadJobKey(incident).tenant, incident.attempt())
                 .Run();
  }
  if (status.ok()) status = SaveSignature(db_, incident);
  if (status.ok()) {
    status = Sql(db_, "DELETE FROM culprits WHERE incident = ?", incident.id()).Run();
  }
  for (const auto& [host, rank] : culprits) {
    if (!status.ok()) break;
    status = Sql(db_, "INSERT INTO culprits VALUES (?, ?, ?)", incident.id(), host, rank).Run();
  }
  const absl::Status ended = Execute(db_, status.ok() ? "COMMIT" : "ROLLBACK");
  if (status.ok() && !ended.ok()) (void)Execute(db_, "ROLLBACK");
  return status.ok() ? ended : status;
}

absl::StatusOr<v1::ListIncidentsResponse> History::List(
    const v1::ListIncidentsRequest& request) const {
  const int64_t limit =
      request.limit() <= 0 ? kUsualIncidents : std::min(request.limit(), kMostIncidents);
  return ListWithout({}, request, std::max(request.offset(), 0), limit);
}

absl::StatusOr<v1::ListIncidentsResponse> History::ListWithout(
    const std::vector<std::string>& ids, const v1::ListIncidentsRequest& request, int64_t offset,
    int64_t limit) const {
  const HistoryFilter all(request);
  HistoryFilter filter = all;
  filter.Without(ids);
  v1::ListIncidentsResponse response;
  const absl::MutexLock lock(&mutex_);
  Sql count(db_, "SELECT count(*) FROM incidents" + filter.Where());
  filter.BindTo(&count);
  if (count.Next()) response.set_total(static_cast<int32_t>(count.Integer(0)));
  if (!count.status().ok()) return count.status();
  Sql rows(db_, absl::StrCat("SELECT summary, state, ",
                             request.with_stacks() ? "stacks" : "''", " FROM incidents",
                             filter.Where(), " ORDER BY opened_ns DESC, id LIMIT ? OFFSET ?"));
  filter.BindTo(&rows);
  rows.Bind(limit).Bind(offset);
  while (rows.Next()) {
    v1::Incident* incident = response.add_incidents();
    incident->ParseFromString(rows.Bytes(0));
    incident->set_state(rows.Bytes(1));
    if (request.with_stacks()) incident->MergeFromString(rows.Bytes(2));
  }
  if (!rows.status().ok()) return rows.status();
  const absl::Status status = AddRepeated(db_, all, &response);
  if (!status.ok()) return status;
  return response;
}

absl::StatusOr<v1::Incident> History::Get(const std::string& id) const {
  const absl::MutexLock lock(&mutex_);
  Sql row(db_, "SELECT summary, stacks, state FROM incidents WHERE id = ?", id);
  if (!row.Next()) {
    return row.status().ok() ? absl::NotFoundError("the history has no such incident")
                             : row.status();
  }
  v1::Incident incident;
  if (!incident.ParseFromString(row.Bytes(0)) || !incident.MergeFromString(row.Bytes(1))) {
    return absl::InternalError("the history has this incident, and cannot read it");
  }
  incident.set_state(row.Bytes(2));
  return incident;
}

absl::StatusOr<std::map<JobId, int>> History::LastNumbers() const {
  std::map<JobId, int> numbers;
  const absl::MutexLock lock(&mutex_);
  Sql rows(db_, absl::StrCat("SELECT coalesce(tenant, '", kDefaultTenant,
                             "'), job, max(number) FROM incidents LEFT JOIN incident_keys ON "
                             "incident = id GROUP BY 1, 2"));
  while (rows.Next()) {
    numbers[{rows.Bytes(0), rows.Bytes(1)}] = static_cast<int>(rows.Integer(2));
  }
  // With a part of the numbers a new incident would replace an old one.
  if (!rows.status().ok()) return rows.status();
  return numbers;
}

}  // namespace rollcall
