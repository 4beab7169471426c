// All incidents of this daemon, and of those before it: kept in SQLite, bounded by age and size.
//
// Thread-safe. What goes wrong with the file is returned or logged, and never stops the daemon: a
// file that is damaged is put aside, and a new one begun.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "rollcall/v1/query.pb.h"

struct sqlite3;

namespace rollcall {

struct HistoryLimits {
  int64_t keep_ns = int64_t{180} * 86400 * 1'000'000'000;
  int64_t keep_bytes = int64_t{1} << 30;
};

class History {
 public:
  // "" for one in memory. kUnavailable: the file cannot be used; says why.
  static absl::StatusOr<std::unique_ptr<History>> Open(const std::string& path,
                                                       const HistoryLimits& limits);
  ~History();
  History(const History&) = delete;
  History& operator=(const History&) = delete;

  // Adds the incident, or puts it in the place of what was kept under its id.
  absl::Status Save(const v1::Incident& incident) ABSL_LOCKS_EXCLUDED(mutex_);

  // Newest first.
  absl::StatusOr<v1::ListIncidentsResponse> List(const v1::ListIncidentsRequest& request) const
      ABSL_LOCKS_EXCLUDED(mutex_);

  std::optional<v1::Incident> Get(const std::string& id) const ABSL_LOCKS_EXCLUDED(mutex_);

  // The highest n of the job's "<job>-<n>"; 0: it has had none.
  int LastNumber(const std::string& job) const ABSL_LOCKS_EXCLUDED(mutex_);

  // Forgets what is too old or too much.
  absl::Status Trim(int64_t now_ns) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  History(sqlite3* db, const HistoryLimits& limits) : limits_(limits), db_(db) {}
  absl::Status Prepare();

  const HistoryLimits limits_;
  mutable absl::Mutex mutex_;
  sqlite3* const db_ ABSL_PT_GUARDED_BY(mutex_);
};

}  // namespace rollcall
