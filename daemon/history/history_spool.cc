// SPDX-License-Identifier: Apache-2.0
#include "daemon/history/history_spool.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "rollcall/v1/store.pb.h"

namespace rollcall {
namespace {

constexpr int kMostIncidentsShown = 500;

constexpr const char* kSpoolTables[] = {
    // AUTOINCREMENT: no number comes twice, so that Remove() never removes another write.
    "CREATE TABLE IF NOT EXISTS for_database (number INTEGER PRIMARY KEY AUTOINCREMENT, incident "
    "TEXT NOT NULL, body BLOB NOT NULL)",
    "CREATE INDEX IF NOT EXISTS for_database_by_incident ON for_database (incident)",
};

}  // namespace

absl::StatusOr<std::unique_ptr<HistorySpool>> HistorySpool::Open(const std::string& path,
                                                                 const HistoryLimits& limits,
                                                                 const SpoolLimits& spool) {
  auto opened = OpenAs(path, [&](std::unique_ptr<SqlDatabase> db) {
    return std::unique_ptr<SqliteHistory>(new HistorySpool(std::move(db), path, limits, spool));
  });
  if (!opened.ok()) {
    const std::string message(opened.status().message());
    return absl::UnavailableError(absl::StrCat(
        message.substr(0, message.find('\n')),
        "\n  it keeps what waits for the database, beside --report-dir: is that folder writable?"));
  }
  std::unique_ptr<HistorySpool> history(static_cast<HistorySpool*>(opened->release()));
  const absl::Status status = history->PrepareSpool();
  if (!status.ok()) return status;
  return history;
}

absl::Status HistorySpool::PrepareSpool() {
  const MutexLock whole(spool_mutex_);
  {
    const MutexLock lock(mutex_);
    for (const char* table : kSpoolTables) {
      const absl::Status status = Sql(db(), table).Run();
      if (!status.ok()) return status;
    }
  }
  Count();
  return absl::OkStatus();
}

void HistorySpool::Count() {
  const MutexLock lock(mutex_);
  Sql row(db(),
          "SELECT count(*), coalesce(sum(length(body)), 0), coalesce(max(number), 0) FROM "
          "for_database");
  if (!row.Next()) return;
  const MutexLock counts(counts_mutex_);
  waiting_.count = row.Integer(0);
  waiting_.bytes = row.Integer(1);
  newest_ = std::max(newest_, row.Integer(2));
}

absl::Status HistorySpool::Apply(const v1::HistoryWrite& write) {
  const MutexLock whole(spool_mutex_);
  std::unique_ptr<SqlTransaction> transaction;
  {
    const MutexLock lock(mutex_);
    transaction = std::make_unique<SqlTransaction>(db());
  }
  absl::Status status = transaction->begun();
  if (status.ok()) status = SqliteHistory::Apply(write);
  if (status.ok()) status = Append(write.SerializeAsString(), write.incident().id());
  {
    const MutexLock lock(mutex_);
    status = transaction->End(status);
    transaction.reset();
  }
  if (!status.ok() || must_count_) Count();
  must_count_ = false;
  return status;
}

// A newer state of an incident takes the place of the older one that waits, so that all up to a
// place is in the database once the place is brought.
absl::Status HistorySpool::Append(const std::string& message, const std::string& replaces) {
  absl::Status status;
  int64_t place = 0;
  bool is_replaced = false;
  {
    const MutexLock lock(mutex_);
    if (!replaces.empty()) {
      Sql sql(db(), "UPDATE for_database SET body = ?2 WHERE incident = ?1", replaces);
      status = sql.BindBlob(message).Run();
      is_replaced = sql.changed() > 0;
      must_count_ = must_count_ || is_replaced;
    }
    if (status.ok() && !is_replaced) {
      Sql sql(db(), "INSERT INTO for_database (incident, body) VALUES (?, ?) RETURNING number",
              replaces);
      if (sql.BindBlob(message).Next()) place = sql.Integer(0);
      status = sql.Run();
    }
  }
  int64_t bytes = 0;
  {
    const MutexLock counts(counts_mutex_);
    if (!is_replaced) ++waiting_.count;
    newest_ = std::max(newest_, place);
    bytes = waiting_.bytes += static_cast<int64_t>(message.size());
  }
  if (bytes < spool_limits_.bytes / 2) is_full_ = false;
  if (bytes <= spool_limits_.bytes) return status;
  return status.ok() ? DropOldest() : status;
}

absl::Status HistorySpool::DropOldest() {
  const MutexLock lock(mutex_);
  Sql sql(db(),
          "DELETE FROM for_database WHERE number IN (SELECT number FROM for_database ORDER "
          "BY number LIMIT (SELECT count(*) / 10 + 1 FROM for_database))");
  const absl::Status status = sql.Run();
  if (!status.ok()) return status;
  must_count_ = true;
  if (!is_full_) {
    spdlog::error("too many writes wait for the history's database: dropped the oldest {}",
                  sql.changed());
  }
  is_full_ = true;
  const MutexLock counts(counts_mutex_);
  waiting_.lost += sql.changed();
  return status;
}

absl::StatusOr<std::vector<HistorySpool::Entry>> HistorySpool::Next(int most) const {
  const MutexLock whole(spool_mutex_);
  const MutexLock lock(mutex_);
  std::vector<Entry> entries;
  Sql rows(db(), "SELECT number, body FROM for_database ORDER BY number LIMIT ?", most);
  while (rows.Next()) entries.push_back({rows.Integer(0), rows.Bytes(1)});
  if (!rows.status().ok()) return rows.status();
  return entries;
}

absl::Status HistorySpool::Remove(const std::vector<Entry>& entries) {
  const MutexLock whole(spool_mutex_);
  const MutexLock lock(mutex_);
  SqlTransaction transaction(db());
  absl::Status status = transaction.begun();
  Waiting removed;
  for (const Entry& entry : entries) {
    if (!status.ok()) break;
    Sql sql(db(), "DELETE FROM for_database WHERE number = ? AND body = ?", entry.order);
    status = sql.BindBlob(entry.write).Run();
    if (!status.ok() || sql.changed() == 0) continue;
    ++removed.count;
    removed.bytes += static_cast<int64_t>(entry.write.size());
  }
  status = transaction.End(status);
  if (!status.ok()) return status;
  Sql oldest(db(), "SELECT min(number) FROM for_database");
  const int64_t waits_from = oldest.Next() ? oldest.Integer(0) : 0;
  const MutexLock counts(counts_mutex_);
  waiting_.count -= removed.count;
  waiting_.bytes -= removed.bytes;
  brought_ = waits_from == 0 ? newest_ : waits_from - 1;
  return status;
}

HistorySpool::Waiting HistorySpool::waiting() const {
  const MutexLock lock(counts_mutex_);
  return waiting_;
}

int64_t HistorySpool::NewestPlace() const {
  const MutexLock lock(counts_mutex_);
  return newest_;
}

// Too much that waits loses its oldest part: then a place may go without having been brought.
bool HistorySpool::HasBrought(int64_t place) const {
  const MutexLock lock(counts_mutex_);
  return brought_ >= place || waiting_.count == 0;
}

absl::StatusOr<std::vector<v1::Incident>> HistorySpool::WaitingIncidents() const {
  const MutexLock whole(spool_mutex_);
  const MutexLock lock(mutex_);
  std::vector<v1::Incident> incidents;
  Sql rows(db(), "SELECT body FROM for_database WHERE incident != '' ORDER BY number DESC LIMIT ?",
           kMostIncidentsShown);
  while (rows.Next()) {
    v1::HistoryWrite write;
    if (write.ParseFromString(rows.Bytes(0))) incidents.push_back(write.incident());
  }
  if (!rows.status().ok()) return rows.status();
  return incidents;
}

absl::StatusOr<std::string> HistorySpool::KnownDatabase() const {
  const MutexLock lock(mutex_);
  Sql row(db(), "SELECT value FROM meta WHERE name = 'database'");
  if (row.Next()) return row.Bytes(0);
  if (!row.status().ok()) return row.status();
  return "";
}

absl::Status HistorySpool::SetKnownDatabase(const std::string& name) {
  const MutexLock whole(spool_mutex_);
  const MutexLock lock(mutex_);
  return Sql(db(), "INSERT OR REPLACE INTO meta VALUES ('database', ?)", name).Run();
}

}  // namespace rollcall
