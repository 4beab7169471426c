// SPDX-License-Identifier: Apache-2.0
// All incidents of this daemon and of earlier ones, bounded by age and size: the interface. In
// SQLite (sqlite_history.h), or in PostgreSQL for several daemons (postgres_history.h).
//
// Thread-safe. Each call may wait for the disk or the server without a short limit; threads that
// must not wait use history_keeper.h. Errors are returned or logged, and never stop the daemon:
//   kUnavailable      it may succeed later
//   kInvalidArgument  the store refuses this row, now and later
//   kDataLoss         the file is damaged
//
// The history also has what a restarted daemon needs to continue: the alerts and to whom they were
// delivered, the hosts of each job, and its attempts with their processes. docs/decisions/daemon.md
// describes its layouts.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "daemon/history/history_query.h"
#include "daemon/model/attempts.h"
#include "daemon/model/job_key.h"
#include "rollcall/v1/query.pb.h"
#include "rollcall/v1/store.pb.h"

namespace rollcall {

inline constexpr int kUsualIncidents = 100;  // default length of a list
inline constexpr int kMostIncidents = 1000;

// Returns the job of the incident. Incidents of earlier releases have neither tenant nor attempt.
JobKey ReadJobKey(const v1::Incident& incident);

// Returns the n of an id (daemon/model/incident_id.h); 0 if the id has none.
int IncidentNumber(const v1::Incident& incident);

struct HistoryLimits {
  int64_t keep_ns = int64_t{180} * 86400 * 1'000'000'000;
  int64_t keep_bytes = int64_t{1} << 30;
};

// One alert of an incident.
struct AlertRow {
  std::string incident;
  int32_t sequence = 0;             // number among the incident's alerts, from 1
  std::string kind;                 // "confirmed", "updated", ...; a later release has others
  int64_t made_ns = 0;              // wall clock
  v1::Incident body;                // the incident at that time, without stacks
  bool sent = false;                // delivered to all receivers, or given up
  std::set<std::string> receivers;  // those that got it, until all have
};

// What a restarted daemon needs to continue.
struct Continuation {
  std::vector<v1::Incident> open;    // with stacks, oldest first
  std::vector<v1::Incident> closed;  // confirmed ones of the jobs in `hosts`, without stacks
  // Alerts of incidents that are open, lack an alert of their end, or have an unsent alert; by
  // incident and sequence.
  std::vector<AlertRow> alerts;
  std::map<JobKey, std::set<std::string>> hosts;
  std::map<JobKey, AttemptFacts> attempts;
  std::vector<v1::Silence> silences;  // those that ended lately as well
  int last_number = 0;                // LoadJob() only: the highest n of the job's ids
};

// What an operator did.
struct ActionRow {
  int64_t at_ns = 0;  // wall clock
  std::string who, action, object, peer;
};

class History {
 public:
  History() = default;
  virtual ~History() = default;
  History(const History&) = delete;
  History& operator=(const History&) = delete;

  // Whether the store is still the opened one: the path leads to the file, or the connection lives.
  virtual bool IsInPlace() const = 0;

  // Makes one write (history_write.h), all of it or nothing. kAborted: the write is of a daemon
  // that owned its job, and another daemon has had the job since; a store of one daemon takes every
  // write. kInvalidArgument also for a write of a later release.
  virtual absl::Status Apply(const v1::HistoryWrite& write) = 0;

  // Answers one query of a person. kInvalidArgument also for a query of a later release.
  virtual absl::StatusOr<v1::HistoryAnswer> Answer(const v1::HistoryQuery& query) const = 0;

  // Answers one request of history_query.h in the same way.
  template <typename Request>
  absl::StatusOr<HistoryAnswerTo<Request>> Ask(const Request& request) const {
    return AnswerIn<Request>(Answer(QueryOf(request)));
  }
  absl::StatusOr<v1::ListIncidentsResponse> List(const v1::ListIncidentsRequest& request) const;
  absl::StatusOr<v1::Incident> Get(const std::string& id) const;

  // Returns the highest n of the ids "<job>-<n>" of each job, of all its attempts.
  virtual absl::StatusOr<std::map<JobId, int>> LastNumbers() const = 0;

  // Where several daemons share the store: of this one's jobs, and the silences of all. A job is
  // that of its owner (daemon/fleet/fleet_store.h); without one, of the daemon that wrote.
  virtual absl::StatusOr<Continuation> Load() const = 0;
  // Loads one job with all its attempts, whichever daemon wrote it. Without silences.
  virtual absl::StatusOr<Continuation> LoadJob(const JobId& job) const = 0;

  // Deletes old incidents, and the oldest ones while the store is too large. Deletes alerts that no
  // daemon will need, and hosts and attempts of jobs unseen for a week. Actions, alerts, hosts and
  // attempts have each a share of the size, and lose their oldest beyond it; living attempts last.
  // Also prepares what the query `count` is answered from.
  virtual absl::Status Trim(int64_t now_ns) = 0;
};

}  // namespace rollcall
