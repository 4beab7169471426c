// SPDX-License-Identifier: Apache-2.0
// All incidents of this daemon and of earlier ones, in SQLite, bounded by age and size.
//
// Thread-safe. Each call may wait for the disk without a limit; threads that must not wait use
// history_keeper.h. Errors of the file are returned or logged, and never stop the daemon: Open()
// renames a damaged file and begins a new one. Only the owner and the group can read the file.
//
// The file also has what a restarted daemon needs to continue: the alerts and to whom they were
// delivered, the hosts of each job, and its attempts with their processes. docs/decisions/daemon.md describes its layouts.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "daemon/model/attempts.h"
#include "daemon/model/job_key.h"
#include "rollcall/v1/query.pb.h"

struct sqlite3;

namespace rollcall {

inline constexpr int kUsualIncidents = 100;  // default length of a list
inline constexpr int kMostIncidents = 1000;

// The job of the incident. Incidents of earlier releases have neither tenant nor attempt.
JobKey ReadJobKey(const v1::Incident& incident);

// The n of an id (daemon/model/incident_id.h); 0 if the id has none.
int IncidentNumber(const v1::Incident& incident);

struct HistoryLimits {
  int64_t keep_ns = int64_t{180} * 86400 * 1'000'000'000;
  int64_t keep_bytes = int64_t{1} << 30;
};

// One alert of an incident.
struct AlertRow {
  std::string incident;
  int32_t sequence = 0;  // number among the incident's alerts, from 1
  std::string kind;      // "confirmed", "updated", "resolved"
  int64_t made_ns = 0;   // wall clock
  v1::Incident body;     // the incident at that time, without stacks
  bool sent = false;     // delivered to all receivers, or given up
  std::set<std::string> receivers;  // those that got it, until all have
};

// What a restarted daemon needs to continue.
struct Continuation {
  std::vector<v1::Incident> open;    // with stacks, oldest first
  std::vector<v1::Incident> closed;  // confirmed ones of the jobs in `hosts`, without stacks
  // Of incidents that are open, that lack an alert of their end, or that have an unsent alert; by
  // incident and sequence.
  std::vector<AlertRow> alerts;
  std::map<JobKey, std::set<std::string>> hosts;
  std::map<JobKey, AttemptFacts> attempts;
  std::vector<v1::Silence> silences;  // those that ended lately as well
};

// What an operator did.
struct ActionRow {
  int64_t at_ns = 0;  // wall clock
  std::string who, action, object, peer;
};

class History {
 public:
  // "" opens a history in memory. Returns kUnavailable, with the reason, if the file is unusable.
  static absl::StatusOr<std::unique_ptr<History>> Open(const std::string& path,
                                                       const HistoryLimits& limits);
  // Opens a second connection to an open file, for List() and Get(), so that they do not wait for
  // Save().
  static absl::StatusOr<std::unique_ptr<History>> OpenToRead(const std::string& path);
  // Renames a damaged file, and SQLite's files beside it. Returns false if that failed.
  static bool RenameDamaged(const std::string& path);
  ~History();
  History(const History&) = delete;
  History& operator=(const History&) = delete;

  // Whether the path still leads to the opened file.
  bool IsInPlace() const;

  // Adds the incident, or replaces the one with its id. Returns kDataLoss if the file is damaged.
  absl::Status Save(const v1::Incident& incident) ABSL_LOCKS_EXCLUDED(mutex_);

  // Newest first.
  absl::StatusOr<v1::ListIncidentsResponse> List(const v1::ListIncidentsRequest& request) const;
  // Omits these ids, and uses `offset` and `limit` instead of the request's.
  absl::StatusOr<v1::ListIncidentsResponse> ListWithout(const std::vector<std::string>& ids,
                                                        const v1::ListIncidentsRequest& request,
                                                        int64_t offset, int64_t limit) const
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Groups of the confirmed incidents that the request selects, the most frequent first. Leaves out
  // this hang (incident_groups.h); "": none. `total`: the number of all groups.
  absl::StatusOr<v1::ListIncidentsResponse> Groups(const v1::ListIncidentsRequest& request,
                                                   const std::string& without = "") const
      ABSL_LOCKS_EXCLUDED(mutex_);

  // kNotFound: there is none. kDataLoss: the file is damaged.
  absl::StatusOr<v1::Incident> Get(const std::string& id) const ABSL_LOCKS_EXCLUDED(mutex_);

  // The highest n of the ids "<job>-<n>" of each job, of all its attempts.
  absl::StatusOr<std::map<JobId, int>> LastNumbers() const ABSL_LOCKS_EXCLUDED(mutex_);

  // Adds the alert, or replaces the one with its incident and sequence. Ignores `receivers`.
  absl::Status SaveAlert(const AlertRow& alert) ABSL_LOCKS_EXCLUDED(mutex_);
  // Records that the alert was delivered to one receiver; for "": to all, or given up.
  absl::Status MarkAlert(const std::string& incident, int32_t sequence,
                         const std::string& receiver) ABSL_LOCKS_EXCLUDED(mutex_);

  // Records that the job has processes on these hosts.
  absl::Status SaveHosts(const JobKey& job, const std::vector<std::string>& hosts, int64_t seen_ns)
      ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status ForgetHosts(const JobKey& job) ABSL_LOCKS_EXCLUDED(mutex_);

  // Records the attempts, and adds their members to those recorded before.
  absl::Status SaveAttempts(const std::map<JobKey, AttemptFacts>& attempts, int64_t seen_ns)
      ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status ForgetAttempt(const JobKey& job) ABSL_LOCKS_EXCLUDED(mutex_);

  // Rows are kept for 180 days, or less if there are very many.
  absl::Status SaveAction(const ActionRow& action) ABSL_LOCKS_EXCLUDED(mutex_);

  // Adds the silence, or replaces the one with its id. Kept for a month after its end.
  absl::Status SaveSilence(const v1::Silence& silence) ABSL_LOCKS_EXCLUDED(mutex_);

  absl::StatusOr<Continuation> Load() const ABSL_LOCKS_EXCLUDED(mutex_);

  // Deletes old incidents, and the oldest ones while the file is too large. Deletes alerts that no
  // daemon will need, and hosts and attempts of jobs unseen for a week. Actions, alerts, hosts and
  // attempts have each a share of the size, and lose their oldest beyond it; living attempts last.
  absl::Status Trim(int64_t now_ns) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  History(sqlite3* db, std::string path, const HistoryLimits& limits)
      : limits_(limits), path_(std::move(path)), db_(db) {}
  absl::Status Prepare();
  absl::Status CreateTables() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status TrimIncidents() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status TrimContinuation(int64_t now_ns) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const HistoryLimits limits_;
  const std::string path_;
  std::pair<uint64_t, uint64_t> file_;  // device and inode
  mutable absl::Mutex mutex_;
  sqlite3* const db_ ABSL_PT_GUARDED_BY(mutex_);
};

}  // namespace rollcall
