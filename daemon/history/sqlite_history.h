// SPDX-License-Identifier: Apache-2.0
// The history in a file of SQLite: the store of one daemon.
//
// Open() renames a damaged file and begins a new one. Only the owner and the group can read the
// file.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/mutex.h"
#include "daemon/history/sql_history.h"

namespace rollcall {

class SqliteHistory : public SqlHistory {
 public:
  // "" opens a history in memory. Returns kUnavailable, with the reason, if the file is unusable.
  static absl::StatusOr<std::unique_ptr<SqliteHistory>> Open(const std::string& path,
                                                             const HistoryLimits& limits);
  // Opens a history that exists, and brings it to this release's layout. Never makes or renames a
  // file. Errors name why it cannot be used: it is missing, no history, damaged, or of a later
  // release.
  static absl::StatusOr<std::unique_ptr<SqliteHistory>> OpenExisting(const std::string& path);
  // Opens a second connection to an open file, for List() and Get(), so that they do not wait for
  // Apply().
  static absl::StatusOr<std::unique_ptr<SqliteHistory>> OpenToRead(const std::string& path);
  // Renames a damaged file, and SQLite's files beside it. Returns false if that failed.
  static bool RenameDamaged(const std::string& path);

  // Returns whether the path still leads to the opened file.
  bool IsInPlace() const override;

 protected:
  using Make = std::function<std::unique_ptr<SqliteHistory>(std::unique_ptr<SqlDatabase>)>;
  // Open() of a subclass, which `make` makes.
  static absl::StatusOr<std::unique_ptr<SqliteHistory>> OpenAs(const std::string& path,
                                                               const Make& make);

  SqliteHistory(std::unique_ptr<SqlDatabase> db, std::string path, const HistoryLimits& limits);
  // One daemon has the file.
  absl::Status CheckOwner(const JobId& /*job*/, int64_t /*token*/)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) override {
    return absl::OkStatus();
  }
  absl::Status SaveIncident(const IncidentRow& row) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) override;
  absl::Status SaveAction(const v1::HistoryWrite::Action& action)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) override;
  absl::Status ReplaceFacts(const IncidentRow& row) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) override;
  absl::Status LockTables() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) override;
  absl::Status LockWeeks(Others others) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) override;
  absl::Status TrimIncidents(int64_t now_ns) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) override;
  absl::Status Vacuum() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) override;

 private:
  absl::Status Prepare();
  absl::Status PrepareExisting();
  absl::Status CreateTables() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::string path_;
  std::pair<uint64_t, uint64_t> file_;  // device and inode
};

}  // namespace rollcall
