// SPDX-License-Identifier: Apache-2.0
// All incidents of this daemon, and of those before it: kept in SQLite, bounded by age and size.
//
// Thread-safe. Each call may wait for the disk as long as the disk likes: history_keeper.h is for
// those who must not. What goes wrong with the file is returned or logged, and never stops the
// daemon: a file that is damaged is put aside, and a new one begun. The file is open to its owner
// and the group only.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "rollcall/v1/query.pb.h"

struct sqlite3;

namespace rollcall {

inline constexpr int kUsualIncidents = 100;  // that a list has if nobody says
inline constexpr int kMostIncidents = 1000;

struct HistoryLimits {
  int64_t keep_ns = int64_t{180} * 86400 * 1'000'000'000;
  int64_t keep_bytes = int64_t{1} << 30;
};

class History {
 public:
  // "" for one in memory. kUnavailable: the file cannot be used; says why.
  static absl::StatusOr<std::unique_ptr<History>> Open(const std::string& path,
                                                       const HistoryLimits& limits);
  // A second connection to a file that is open, for List() and Get(): they do not wait for Save().
  static absl::StatusOr<std::unique_ptr<History>> OpenToRead(const std::string& path);
  // Renames a damaged file, and what SQLite has beside it. False: that failed.
  static bool PutAside(const std::string& path);
  ~History();
  History(const History&) = delete;
  History& operator=(const History&) = delete;

  // Whether the path still leads to the file that was opened.
  bool IsInPlace() const;

  // Adds the incident, or puts it in the place of what was kept under its id. kDataLoss: the file is
  // damaged.
  absl::Status Save(const v1::Incident& incident) ABSL_LOCKS_EXCLUDED(mutex_);

  // Newest first.
  absl::StatusOr<v1::ListIncidentsResponse> List(const v1::ListIncidentsRequest& request) const;
  // As if these ids were not there; a page of its own instead of the request's.
  absl::StatusOr<v1::ListIncidentsResponse> ListWithout(const std::vector<std::string>& ids,
                                                        const v1::ListIncidentsRequest& request,
                                                        int64_t offset, int64_t limit) const
      ABSL_LOCKS_EXCLUDED(mutex_);

  std::optional<v1::Incident> Get(const std::string& id) const ABSL_LOCKS_EXCLUDED(mutex_);

  // The highest n of the job's "<job>-<n>"; 0: it has had none.
  int LastNumber(const std::string& job) const ABSL_LOCKS_EXCLUDED(mutex_);
  // Of all jobs.
  std::map<std::string, int> LastNumbers() const ABSL_LOCKS_EXCLUDED(mutex_);

  // Forgets what is too old or too much.
  absl::Status Trim(int64_t now_ns) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  History(sqlite3* db, std::string path, const HistoryLimits& limits)
      : limits_(limits), path_(std::move(path)), db_(db) {}
  absl::Status Prepare();

  const HistoryLimits limits_;
  const std::string path_;
  std::pair<uint64_t, uint64_t> file_;  // device and inode
  mutable absl::Mutex mutex_;
  sqlite3* const db_ ABSL_PT_GUARDED_BY(mutex_);
};

}  // namespace rollcall
