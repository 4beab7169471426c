// SPDX-License-Identifier: Apache-2.0
// The incidents of all jobs: their life, their stacks, what was told of them, and the lists of them
// that people see.
//
// The diagnosing thread brings what it found (Apply) and has it told to others (Publish). Any
// thread may bring stacks and read. Owns the incidents, and the writers of reports, history and
// alerts, each with a thread of its own: whatever waits for a disk or the network waits there, and
// nobody here does.
//
// Locks: one mutex. A job's mutex in JobStore may be held when it is taken (Apply), never the other
// way round; those of ReportQueue, HistoryKeeper, AlertSender and Timeline are taken under it.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "daemon/diagnosis/incidents.h"
#include "daemon/report/stacks/stack_tree.h"
#include "daemon/server/alerts.h"
#include "daemon/server/history_keeper.h"
#include "daemon/server/incident_counts.h"
#include "daemon/server/report_queue.h"
#include "daemon/server/stack_request.h"
#include "daemon/server/timeline.h"
#include "rollcall/v1/incident.pb.h"
#include "rollcall/v1/query.pb.h"

namespace rollcall {

struct IncidentBookOptions {
  Limits limits;
  std::string report_dir;  // "" for no reports on disk
  HistoryKeeperOptions history;
  AlertOptions alerts;
  bool log_incidents = true;
};

// A job's incidents in short.
struct JobBrief {
  struct Live {
    std::string id;
    bool is_confirmed = false;
    std::string summary;
    std::vector<int32_t> culprits;  // ranks
  };
  std::vector<std::string> warnings;  // sentences; nothing hangs
  std::optional<v1::IncidentSummary> last;
  std::optional<Live> live;
};

class IncidentBook {
 public:
  // `timeline` outlives this object.
  IncidentBook(IncidentBookOptions options, Timeline* timeline);

  // Opens the history. kUnavailable: it cannot be used; says why. Once, before all below.
  absl::Status Start();

  // What a diagnosis of the job found. Returns the stacks to be asked for.
  std::vector<StackRequest> Apply(const JobState& state, std::vector<Verdict> verdicts,
                                  int64_t now_ns) ABSL_LOCKS_EXCLUDED(mutex_);
  bool HasLive(const std::string& job) const ABSL_LOCKS_EXCLUDED(mutex_);
  // What was told of the job stays in the history.
  void Forget(const std::string& job) ABSL_LOCKS_EXCLUDED(mutex_);
  // Hands what is new to the writers of reports and history, and learns what they have written.
  void Publish() ABSL_LOCKS_EXCLUDED(mutex_);

  // From now on no report waits for stacks: no more will come.
  void BeginStop() ABSL_LOCKS_EXCLUDED(mutex_);
  // Gives the last of reports, history and alerts some seconds from `begun` on, all at once, and
  // ends their threads. Nothing where Start() failed or was not called.
  void Finish(SteadyTime begun) ABSL_LOCKS_EXCLUDED(mutex_);

  // The stacks of a process that an incident has asked for, or why there are none. How the process
  // has moved since its sample before; nullopt: that is not to be judged.
  std::optional<Motion> AddStack(const StackAnswer& answer) ABSL_LOCKS_EXCLUDED(mutex_);

  // Of the job, or all jobs for "": those since the start, oldest first.
  std::vector<v1::Incident> All(const std::string& job) const ABSL_LOCKS_EXCLUDED(mutex_);
  // Of the history too. Where that cannot be read, a note says so.
  absl::StatusOr<v1::ListIncidentsResponse> List(const v1::ListIncidentsRequest& request) const
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Of the history too. kNotFound: says how to see what there is.
  absl::StatusOr<v1::Incident> Get(const std::string& id) const ABSL_LOCKS_EXCLUDED(mutex_);

  JobBrief Brief(const std::string& job) const ABSL_LOCKS_EXCLUDED(mutex_);
  IncidentCounts CountIncidents(const std::string& job, int64_t now_ns) const
      ABSL_LOCKS_EXCLUDED(mutex_);
  DeliveryCounts Delivered() const;
  // Grows with every change to the job's incidents; for "": to any, and when a job is forgotten.
  uint64_t Changes(const std::string& job) const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Record {  // an incident as people see it
    v1::Incident incident;
    std::string folder;           // of its report; "" while there is none
    bool dirty = false;           // the report is older than the incident
    bool unsaved = false;         // so is the history
    int stacks_open = 0;          // asked for and not yet there
    int64_t stacks_asked_ns = 0;  // when the newest of them were
    StackTree rest;               // of processes whose stacks are merged at once, not kept
  };
  struct JobIncidents {
    JobIncidents(const std::string& job, int incidents_before) : life(job, incidents_before) {}
    IncidentLife life;
    std::set<uint64_t> fallen;          // communicators whose end was judged
    std::vector<std::string> warnings;  // sentences
    std::vector<Record> records;
    uint64_t changes = 0;
    std::map<std::string, int> by_cause;
    std::map<std::string, double> hung_seconds;  // of confirmed ones that are closed, by cause
  };

  JobIncidents* Open(const std::string& job) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  static std::vector<Verdict> SetWarnings(std::vector<Verdict> verdicts, JobIncidents* job);
  static void Count(const IncidentEvent& event, JobIncidents* job);
  void Act(const IncidentEvent& event, JobIncidents* job) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  static Record* FindRecord(const std::string& incident, JobIncidents* job);
  void Rewrite(const IncidentEvent& event, Record* record);
  void Alert(const IncidentEvent& event, const v1::Incident& incident);
  Incident OnTheWall(Incident incident);
  bool AwaitsStacks(const Record& record) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void WriteReports() ABSL_LOCKS_EXCLUDED(mutex_);
  void WriteReport(Record* record) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void RecordReports() ABSL_LOCKS_EXCLUDED(mutex_);
  void RecordReport(const ReportQueue::Written& written) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void RecordProblem(Record* record) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void SaveHistory() ABSL_LOCKS_EXCLUDED(mutex_);
  static v1::Incident AsOfNow(const JobIncidents& job, const v1::Incident& incident);
  std::vector<v1::Incident> InMemory(bool open_only, bool with_stacks) const
      ABSL_LOCKS_EXCLUDED(mutex_);

  const IncidentBookOptions options_;
  Timeline* const timeline_;
  std::unique_ptr<HistoryKeeper> history_;
  std::unique_ptr<ReportQueue> reports_;
  std::unique_ptr<AlertSender> alerts_;

  mutable absl::Mutex mutex_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::map<std::string, JobIncidents> jobs_ ABSL_GUARDED_BY(mutex_);
  uint64_t changes_ ABSL_GUARDED_BY(mutex_) = 0;  // of incidents, and jobs that were forgotten
};

}  // namespace rollcall
