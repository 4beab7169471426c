// SPDX-License-Identifier: Apache-2.0
// Which job and attempt each process belongs to, and which agent speaks for it: finds the place of
// a process that is new, and makes room for it where there are limits.
//
// Thread-safe. Its mutex is held shortly, and never taken while a job's is held, so gRPC's threads
// may call it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "base/mutex.h"
#include "daemon/jobs/agent_book.h"
#include "daemon/jobs/agent_times.h"
#include "daemon/jobs/attempt_records.h"
#include "daemon/jobs/job_index.h"
#include "daemon/jobs/job_room.h"
#include "daemon/jobs/ownership.h"
#include "daemon/jobs/routed_tick.h"
#include "daemon/jobs/stored_job.h"
#include "daemon/model/client_limits.h"
#include "daemon/model/process_key.h"

namespace rollcall {

namespace v1 {
class Identity;
}

// What operators may set; client_limits.h has the other limits.
struct JobStoreLimits {
  size_t jobs = limits::kJobs;  // attempts of jobs
  size_t processes = limits::kProcesses;
  size_t record_bytes = limits::kRecordBytes;
};

class ProcessPlaces {
 public:
  // `default_job` names the job of processes whose environment gives none. `shared` and `jobs`
  // outlive this object, which alone adds jobs and removes them.
  ProcessPlaces(std::string default_job, const JobStoreLimits& most, SharedByJobs* shared,
                JobIndex* jobs);

  // Leaves out the jobs that are not owned; outlives this object. With nullptr, it takes all.
  // Before the first tick.
  void SetOwnership(const JobOwnership* ownership) { ownership_ = ownership; }

  // See AttemptRecords.
  void RestoreAttempts(const std::map<JobKey, AttemptFacts>& attempts) ABSL_LOCKS_EXCLUDED(mutex_);
  AttemptChanges TakeAttemptChanges(const AttemptsToSave& whole) ABSL_LOCKS_EXCLUDED(mutex_);
  std::set<JobKey> OfSameLaunch(const JobKey& key) const ABSL_LOCKS_EXCLUDED(mutex_);

  // Finds the jobs that a tick concerns. `came_ns`: when the tick came, on the daemon's clock; the
  // times in the tick are moved onto that clock. 0 means they are left as they are, and the report
  // never becomes old. The first agent that reports a process speaks for it while it is connected
  // and heard; reports of others are left out.
  RoutedTick Route(const AgentName& agent, const v1::Tick& tick, int64_t came_ns)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Hosts with a process of any job. Looks at all processes.
  std::set<std::string> Hosts() const ABSL_LOCKS_EXCLUDED(mutex_);
  // Adds the ids of the agents that speak for processes of the job, also those whose first ticks
  // wait to be applied.
  void AddAgentsOf(const JobId& name, std::set<std::string>* ids) const ABSL_LOCKS_EXCLUDED(mutex_);

  // Returns false, and keeps the job, while a tick is on its way to the job: a process that the
  // tick brings would be lost.
  bool Forget(const JobKey& key) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Placed {
    JobKey job;
    AgentBook::AgentPtr agent;  // that reported the process; nullptr if read from files
    bool has_ended = false;
    bool has_joined = false;  // a communicator, which its attempt has
    int64_t since_ns = 0;     // see AgentTimes::EarliestNs()
  };
  // An update of a tick, and what is known of all updates of the tick.
  struct Report;
  struct Newcomer;

  std::shared_ptr<StoredJob> RouteUpdate(Report* report, JobKey* key)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool MayReport(const Report& report, Placed* placed) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Note(const Report& report, Placed* placed) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Placed* TakeIn(const Report& report) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::optional<JobId> NameOf(const v1::Identity& identity, const AgentName& agent) const;
  Newcomer NewcomerOf(const Report& report, const JobId& name) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::optional<JobKey> Place(const Report& report, const JobId& name, const Newcomer& newcomer)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool MakeRoomForJob(const JobId& name, const Newcomer& newcomer)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool MakeRoomForProcess(const Newcomer& newcomer) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void MakeRoom(const JobKey& key, Dropped what) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Evict(const JobKey& newest, size_t attempts) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void ForgetAttempt(const JobKey& key) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::string LimitText(const std::string& text, size_t most) const;

  const std::string default_job_;
  const JobStoreLimits most_;
  SharedByJobs* const shared_;
  JobIndex* const jobs_;
  const JobOwnership* ownership_ = nullptr;
  mutable Mutex mutex_;
  AttemptRecords attempts_ ABSL_GUARDED_BY(mutex_);
  JobRoom room_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_map<ProcessKey, Placed> placed_ ABSL_GUARDED_BY(mutex_);
  std::map<JobKey, std::vector<ProcessKey>> of_job_ ABSL_GUARDED_BY(mutex_);  // keys of placed_
};

}  // namespace rollcall
