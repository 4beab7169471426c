// SPDX-License-Identifier: Apache-2.0
// What the history deletes, so that it keeps to its size and nothing stays for ever. Incidents are
// the part of each store.
#include <spdlog/spdlog.h>

#include "base/durations.h"
#include "base/mutex.h"
#include "daemon/history/sql_history.h"

namespace rollcall {
namespace {

constexpr int64_t kHour = 3600 * kSecond;
constexpr int64_t kKeepHostsNs = 7 * 24 * kHour;
constexpr int64_t kKeepActionsNs = 180 * 24 * kHour;
constexpr int64_t kKeepSilencesNs = 30 * 24 * kHour;  // after their end
constexpr int64_t kKeepSentNs = kHour;                // a receiver may ask who sent it
constexpr int64_t kKeepUnsentNs = 24 * kHour;

// A table that may take a part of the file.
struct Share {
  const char* table;
  const char* trim;  // deletes what exceeds so many bytes, about; nullptr means that of the dialect
  int64_t parts;     // of the file's size: one in so many
};

// A half of the file in all.
constexpr Share kShares[] = {
    {"actions", nullptr, 8},
    // Those of open incidents come first: without them an alert would be sent again.
    {"outbox", R"sql(
DELETE FROM outbox WHERE (incident, sequence) IN (
  SELECT incident, sequence FROM (
    SELECT incident, sequence, sum(64 + length(incident) + length(body)) OVER (
      ORDER BY incident NOT IN (SELECT id FROM incidents WHERE closed_ns = 0), sent % 2, made_ns DESC
      ROWS UNBOUNDED PRECEDING) AS kept
    FROM outbox) AS summed
  WHERE kept > ?))sql",
     16},
    // The attempt of a job that lives may have begun long ago. Only the hosts of such a job are
    // recorded again and again.
    {"job_attempts", R"sql(
DELETE FROM job_attempts WHERE (tenant, job, attempt) IN (
  SELECT tenant, job, attempt FROM (
    SELECT tenant, job, attempt, sum(64 + length(restarts) + length(launch) + (
      SELECT coalesce(sum(96 + length(host)), 0) FROM attempt_members AS m
      WHERE m.tenant = job_attempts.tenant AND m.job = job_attempts.job
        AND m.attempt = job_attempts.attempt)) OVER (
      ORDER BY (tenant, job, attempt) NOT IN (SELECT tenant, job, attempt FROM job_hosts),
        seen_ns DESC
      ROWS UNBOUNDED PRECEDING) AS kept
    FROM job_attempts) AS summed
  WHERE kept > ?))sql",
     4},
    {"job_hosts", R"sql(
DELETE FROM job_hosts WHERE (tenant, job, attempt, host) IN (
  SELECT tenant, job, attempt, host FROM (
    SELECT tenant, job, attempt, host, sum(32 + length(tenant) + length(job) + length(host)) OVER (
      ORDER BY seen_ns DESC ROWS UNBOUNDED PRECEDING) AS kept
    FROM job_hosts) AS summed
  WHERE kept > ?))sql",
     16},
};

}  // namespace

absl::Status SqlHistory::KeepShares() {
  for (const Share& share : kShares) {
    Sql sql(db(), share.trim == nullptr ? dialect_.trim_actions : share.trim,
            limits_.keep_bytes / share.parts);
    const absl::Status status = sql.Run();
    if (!status.ok()) return status;
    if (sql.changed() == 0) continue;
    spdlog::warn(
        "deleted {} rows of the table {}, which exceeds its share of the history: see "
        "--history-size",
        sql.changed(), share.table);
  }
  return absl::OkStatus();
}

absl::Status SqlHistory::Trim(int64_t now_ns) {
  absl::Status status = InTransaction(
      [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return TrimContinuation(now_ns); });
  if (status.ok()) {
    status = InTransaction([&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
      const int64_t oldest_ns = OldestIncident();
      const absl::Status trimmed = TrimIncidents(now_ns);
      return trimmed.ok() ? TrimWeeks(oldest_ns) : trimmed;
    });
  }
  if (status.ok()) status = FillFacts(now_ns);
  if (status.ok()) status = CountWeeks(now_ns);
  const MutexLock lock(mutex_);
  return status.ok() ? Vacuum() : status;
}

absl::Status SqlHistory::TrimContinuation(int64_t now_ns) {
  absl::Status status =
      Sql(db(), "DELETE FROM job_hosts WHERE seen_ns < ?", now_ns - kKeepHostsNs).Run();
  if (status.ok()) {
    status = Sql(db(),
                 "DELETE FROM outbox WHERE incident NOT IN (SELECT id FROM incidents WHERE "
                 "closed_ns = 0) AND made_ns < CASE sent WHEN 1 THEN ? ELSE ? END",
                 now_ns - kKeepSentNs, now_ns - kKeepUnsentNs)
                 .Run();
  }
  if (status.ok()) {
    status = Sql(db(),
                 "DELETE FROM outbox_receivers WHERE (incident, sequence) NOT IN (SELECT "
                 "incident, sequence FROM outbox WHERE sent != 1)")
                 .Run();
  }
  // The hosts of a living job are recorded again and again.
  if (status.ok()) {
    status = Sql(db(),
                 "DELETE FROM job_attempts WHERE seen_ns < ? AND (tenant, job, attempt) NOT "
                 "IN (SELECT tenant, job, attempt FROM job_hosts)",
                 now_ns - kKeepHostsNs)
                 .Run();
  }
  if (status.ok()) {
    status = Sql(db(), "DELETE FROM actions WHERE at_ns < ?", now_ns - kKeepActionsNs).Run();
  }
  if (status.ok()) {
    status = Sql(db(), "DELETE FROM silences WHERE until_ns < ?", now_ns - kKeepSilencesNs).Run();
  }
  if (status.ok()) status = KeepShares();
  if (status.ok()) {
    status = Sql(db(),
                 "DELETE FROM attempt_members WHERE (tenant, job, attempt) NOT IN (SELECT "
                 "tenant, job, attempt FROM job_attempts)")
                 .Run();
  }
  return status;
}

}  // namespace rollcall
