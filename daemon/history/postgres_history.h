// SPDX-License-Identifier: Apache-2.0
// The history in a schema of PostgreSQL 13 or later, for one daemon or several.
//
// Each daemon writes its name into the rows that it continues after a restart, and loads only
// those. An incident that another daemon wrote is taken over by the daemon that saves it again. Two
// incidents of one id (a daemon that lost its numbers) stay two rows, because their opening times
// differ.
//
// Retention goes by weeks (postgres_partitions.h): a week goes once all of it is too old, or the
// whole is too large. Of the newest week the oldest incidents go one by one.
#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/mutex.h"
#include "daemon/history/postgres_options.h"
#include "daemon/history/sql_history.h"

namespace rollcall {

class PostgresHistory : public SqlHistory {
 public:
  // Connects, and brings the tables to the layout of this release. kUnavailable: try again.
  // kFailedPrecondition: an operator must do something first. kUnimplemented: the tables are those
  // of a later release. All name what to do.
  static absl::StatusOr<std::unique_ptr<PostgresHistory>> Open(const PostgresOptions& options,
                                                               const HistoryLimits& limits);

  // Whether the server answers.
  absl::Status Ping();

  // All writes between the two are one transaction, for a history that only one thread uses. End()
  // commits if `status` is fine, and returns the first failure.
  absl::Status Begin();
  absl::Status End(const absl::Status& status);

 protected:
  // No daemon takes the job before the end of the transaction.
  absl::Status CheckOwner(const JobId& job, int64_t token)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) override;
  absl::Status SaveIncident(const IncidentRow& row) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) override;
  absl::Status SaveAction(const v1::HistoryWrite::Action& action)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) override;
  absl::Status ReplaceFacts(const IncidentRow& row) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) override;
  absl::Status LockTables() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) override;
  absl::Status LockWeeks(Others others) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) override;
  absl::Status TrimIncidents(int64_t now_ns) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) override;
  absl::Status Vacuum() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) override;
  void NoteUndone() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) override;

 private:
  PostgresHistory(std::unique_ptr<SqlDatabase> db, const HistoryLimits& limits,
                  const PostgresOptions& options);
  absl::Status Ensure(const std::string& table, int64_t wall_ns)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status DropOld(int64_t now_ns) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::StatusOr<int64_t> DropExcess(int64_t now_ns) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status DeleteExcess() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::string incarnation_;
  std::unique_ptr<SqlTransaction> together_ ABSL_GUARDED_BY(mutex_);
  // Checked in the transaction, so no daemon takes them before its end.
  std::set<std::pair<JobId, int64_t>> checked_ ABSL_GUARDED_BY(mutex_);
  // Partitions that were there a moment ago. Another daemon may have dropped one since.
  std::set<std::pair<std::string, int64_t>> known_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace rollcall
