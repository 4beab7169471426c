// SPDX-License-Identifier: Apache-2.0
// What the history deletes, so that its file keeps to its size and nothing stays for ever.
#include <spdlog/spdlog.h>
#include <sqlite3.h>

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "daemon/store/history.h"
#include "daemon/store/sql.h"
#include "proto/durations.h"

namespace rollcall {
namespace {

constexpr int64_t kHour = 3600 * kSecond;
constexpr int64_t kKeepHostsNs = 7 * 24 * kHour;
constexpr int64_t kKeepActionsNs = 180 * 24 * kHour;
constexpr int64_t kKeepSilencesNs = 30 * 24 * kHour;  // after their end
constexpr int64_t kKeepSentNs = kHour;   // a receiver may ask who sent it
constexpr int64_t kKeepUnsentNs = 24 * kHour;

// What incidents take in the file, about. A row of `culprits` is in its table and in an index.
constexpr char kBytesOfIncidents[] =
    "SELECT (SELECT coalesce(sum(128 + length(summary) + length(stacks)), 0) FROM incidents) + "
    "(SELECT coalesce(sum(2 * (16 + length(incident) + length(host))), 0) FROM culprits)";

// A table that may take a part of the file.
struct Share {
  const char* table;
  const char* key;    // columns
  const char* bytes;  // of a row, about
  const char* order;  // the last rows in this order are deleted
  int64_t parts;      // of the file's size: one in so many
};

// A half of the file in all.
constexpr Share kShares[] = {
    {"actions", "rowid", "64 + length(who) + length(action) + length(object) + length(peer)",
     "at_ns DESC", 8},
    // Those of open incidents come first: without them an alert would be sent again.
    {"outbox", "incident, sequence", "64 + length(incident) + length(body)",
     "incident NOT IN (SELECT id FROM incidents WHERE closed_ns = 0), sent, made_ns DESC", 16},
    {"job_attempts", "tenant, job, attempt",
     "64 + length(restarts) + length(launch) + (SELECT coalesce(sum(96 + length(host)), 0) FROM "
     "attempt_members AS m WHERE m.tenant = job_attempts.tenant AND m.job = job_attempts.job AND "
     "m.attempt = job_attempts.attempt)",
     // The attempt of a job that lives may have begun long ago. Only the hosts of such a job are
     // recorded again and again.
     "(tenant, job, attempt) NOT IN (SELECT tenant, job, attempt FROM job_hosts), seen_ns DESC", 4},
    {"job_hosts", "tenant, job, attempt, host", "32 + length(tenant) + length(job) + length(host)",
     "seen_ns DESC", 16},
};

absl::Status KeepShares(sqlite3* db, int64_t keep_bytes) {
  absl::Status status;
  for (const Share& share : kShares) {
    if (!status.ok()) break;
    status = Sql(db,
                 absl::StrCat("DELETE FROM ", share.table, " WHERE (", share.key, ") IN (SELECT ",
                              share.key, " FROM (SELECT ", share.key, ", sum(", share.bytes,
                              ") OVER (ORDER BY ", share.order,
                              " ROWS UNBOUNDED PRECEDING) AS kept FROM ", share.table,
                              ") WHERE kept > ?)"),
                 keep_bytes / share.parts)
                 .Run();
    const int deleted = status.ok() ? sqlite3_changes(db) : 0;
    if (deleted == 0) continue;
    spdlog::warn("the history has deleted {} rows of its table {}, which had more than its part of "
                 "the file: see --history-size",
                 deleted, share.table);
  }
  return status;
}

int64_t ReadInteger(sqlite3* db, const std::string& text) {
  Sql sql(db, text);
  return sql.Next() ? sql.Integer(0) : 0;
}

int64_t UsedBytes(sqlite3* db) {
  const int64_t page = std::max<int64_t>(ReadInteger(db, "PRAGMA page_size"), 1);
  return (ReadInteger(db, "PRAGMA page_count") - ReadInteger(db, "PRAGMA freelist_count")) * page;
}

// The rows that belong to incidents that were deleted.
absl::Status DeleteOrphans(sqlite3* db) {
  absl::Status status;
  for (const char* table : {"culprits", "incident_keys", "incident_signatures"}) {
    if (!status.ok()) break;
    status = Sql(db, absl::StrCat("DELETE FROM ", table,
                                  " WHERE incident NOT IN (SELECT id FROM incidents)"))
                 .Run();
  }
  return status;
}

}  // namespace

absl::Status History::Trim(int64_t now_ns) {
  const absl::MutexLock lock(&mutex_);
  absl::Status status =
      Sql(db_, "DELETE FROM incidents WHERE opened_ns < ?", now_ns - limits_.keep_ns).Run();
  if (status.ok()) status = TrimContinuation(now_ns);
  if (status.ok()) status = TrimIncidents();
  if (status.ok()) status = Sql(db_, "PRAGMA incremental_vacuum").Run();
  return status;
}

// Deletes the oldest incidents while the file is too large. Incidents have at least a half of the
// file, whatever the other tables take: those have limits of their own.
absl::Status History::TrimIncidents() {
  absl::Status status = DeleteOrphans(db_);
  while (status.ok() && UsedBytes(db_) > limits_.keep_bytes &&
         ReadInteger(db_, kBytesOfIncidents) > limits_.keep_bytes / 2 &&
         ReadInteger(db_, "SELECT count(*) FROM incidents") > 1) {
    status = Sql(db_, "DELETE FROM incidents WHERE id IN (SELECT id FROM incidents ORDER BY "
                      "opened_ns LIMIT (SELECT count(*) / 10 + 1 FROM incidents))")
                 .Run();
    if (status.ok()) status = DeleteOrphans(db_);
  }
  return status;
}

absl::Status History::TrimContinuation(int64_t now_ns) {
  absl::Status status =
      Sql(db_, "DELETE FROM job_hosts WHERE seen_ns < ?", now_ns - kKeepHostsNs).Run();
  if (status.ok()) {
    status = Sql(db_,
                 "DELETE FROM outbox WHERE incident NOT IN (SELECT id FROM incidents WHERE "
                 "closed_ns = 0) AND made_ns < CASE sent WHEN 1 THEN ? ELSE ? END",
                 now_ns - kKeepSentNs, now_ns - kKeepUnsentNs)
                 .Run();
  }
  if (status.ok()) {
    status = Sql(db_, "DELETE FROM outbox_receivers WHERE (incident, sequence) NOT IN (SELECT "
                      "incident, sequence FROM outbox WHERE sent = 0)")
                 .Run();
  }
  // The hosts of a living job are recorded again and again.
  if (status.ok()) {
    status = Sql(db_, "DELETE FROM job_attempts WHERE seen_ns < ? AND (tenant, job, attempt) NOT "
                      "IN (SELECT tenant, job, attempt FROM job_hosts)",
                 now_ns - kKeepHostsNs)
                 .Run();
  }
  if (status.ok()) {
    status = Sql(db_, "DELETE FROM actions WHERE at_ns < ?", now_ns - kKeepActionsNs).Run();
  }
  if (status.ok()) {
    status = Sql(db_, "DELETE FROM silences WHERE until_ns < ?", now_ns - kKeepSilencesNs).Run();
  }
  if (status.ok()) status = KeepShares(db_, limits_.keep_bytes);
  if (status.ok()) {
    status = Sql(db_, "DELETE FROM attempt_members WHERE (tenant, job, attempt) NOT IN (SELECT "
                      "tenant, job, attempt FROM job_attempts)")
                 .Run();
  }
  return status;
}

}  // namespace rollcall
