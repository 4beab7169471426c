// SPDX-License-Identifier: Apache-2.0
// The history of one daemon on its own disk, beside a database that gets every write of it later,
// in the same order. It survives kill -9, and it is what the daemon continues from, and shows,
// while the database is away.
//
// A file of SQLite as any other history, with one more table: what the database lacks. Each write
// is a part of the transaction that changes the history, so there is never one without the other.
// Thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/mutex.h"
#include "daemon/history/sqlite_history.h"

namespace rollcall {

struct SpoolLimits {
  int64_t bytes = int64_t{512} << 20;  // of what waits; beyond it the oldest is lost
};

class HistorySpool : public SqliteHistory {
 public:
  struct Waiting {
    int64_t count = 0;
    int64_t bytes = 0;
    int64_t lost = 0;  // dropped since the start, because too much waited
  };
  struct Entry {
    int64_t order = 0;
    std::string write;  // a v1::HistoryWrite
  };

  static absl::StatusOr<std::unique_ptr<HistorySpool>> Open(const std::string& path,
                                                            const HistoryLimits& limits,
                                                            const SpoolLimits& spool);

  // Makes the write, and keeps it for the database. A newer state of an incident takes the place of
  // the one that waits.
  absl::Status Apply(const v1::HistoryWrite& write) override;

  // The oldest of what waits.
  absl::StatusOr<std::vector<Entry>> Next(int most) const;
  // The database has these. Nothing happens to one whose place a newer state has taken.
  absl::Status Remove(const std::vector<Entry>& entries);
  Waiting waiting() const;
  // The place of the last write so far, and whether the database has all up to a place. Neither
  // waits for the disk.
  int64_t NewestPlace() const;
  bool HasBrought(int64_t place) const;
  // The newest states of the incidents that the database lacks.
  absl::StatusOr<std::vector<v1::Incident>> WaitingIncidents() const;

  // Which database has had all of this history once: as the daemon named it. Empty if there is
  // none.
  absl::StatusOr<std::string> KnownDatabase() const;
  absl::Status SetKnownDatabase(const std::string& name);

 private:
  HistorySpool(std::unique_ptr<SqlDatabase> db, std::string path, const HistoryLimits& limits,
               const SpoolLimits& spool)
      : SqliteHistory(std::move(db), std::move(path), limits), spool_limits_(spool) {}
  absl::Status PrepareSpool();
  absl::Status Append(const std::string& message, const std::string& replaces)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(spool_mutex_);
  absl::Status DropOldest() ABSL_EXCLUSIVE_LOCKS_REQUIRED(spool_mutex_);
  void Count() ABSL_EXCLUSIVE_LOCKS_REQUIRED(spool_mutex_);

  const SpoolLimits spool_limits_;
  // Held around a whole write. Locked before the mutex of the history.
  mutable Mutex spool_mutex_;
  mutable Mutex counts_mutex_;  // never held while something waits for the disk
  Waiting waiting_ ABSL_GUARDED_BY(counts_mutex_);
  int64_t newest_ ABSL_GUARDED_BY(counts_mutex_) = 0;
  int64_t brought_ ABSL_GUARDED_BY(counts_mutex_) = 0;     // all up to this place
  bool is_full_ ABSL_GUARDED_BY(spool_mutex_) = false;     // said so
  bool must_count_ ABSL_GUARDED_BY(spool_mutex_) = false;  // rows have gone, of unknown size
};

}  // namespace rollcall
