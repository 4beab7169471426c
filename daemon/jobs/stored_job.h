// SPDX-License-Identifier: Apache-2.0
// One attempt of a job in memory: its model behind a mutex, and the agents that report it.
//
// Thread-safe. The mutex of the model may be held for long, by a diagnosis; the others are not.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "base/shares.h"
#include "daemon/jobs/agent_book.h"
#include "daemon/jobs/daemon_counters.h"
#include "daemon/jobs/routed_tick.h"
#include "daemon/model/client_limits.h"
#include "daemon/model/fleet_budget.h"
#include "daemon/model/interned_shapes.h"
#include "daemon/model/job_key.h"
#include "daemon/model/job_model.h"
#include "daemon/model/process_key.h"

namespace rollcall {

namespace v1 {
class ProcessUpdate;
class Tick;
}  // namespace v1

// What all jobs of a store share. Outlives them.
struct SharedByJobs {
  std::shared_ptr<FleetBudget> fleet;
  DaemonCounters* counters = nullptr;  // nullptr if nothing counts what exceeds a limit
  AgentBook agents;
  std::atomic<uint64_t> changes{0};  // rises whenever any job has changed

  void Count(Dropped what) const {
    if (counters != nullptr) counters->CountDropped(what, 1);
  }
  void CountOverShare(Dropped what, const Owner& owner) const {
    if (counters != nullptr) counters->CountOverShare(what, owner);
  }
};

class StoredJob {
 public:
  // `user`: who has begun it. `has_twin`: it began while another attempt of its name was alive.
  StoredJob(JobKey key, const std::string& user, bool has_twin, SharedByJobs* shared);

  // Applies the part of the tick that belongs to this job.
  void Apply(const v1::Tick& tick, const RoutedTick& routed, const RoutedTick::Part& part)
      ABSL_LOCKS_EXCLUDED(mutex_, agents_mutex_);
  void Change(const std::function<void(JobModel*)>& change) ABSL_LOCKS_EXCLUDED(mutex_);
  // Copies how the job's agents are heard into its state, and drops records if the job's share of
  // their memory has shrunk. No wait counts from before `counts_from_ns`.
  void UpdateHeard(int64_t counts_from_ns) ABSL_LOCKS_EXCLUDED(mutex_);

  // Calls `reader` with the job's state, which it must not keep; ticks wait meanwhile.
  void Read(const std::function<void(const JobState&)>& reader) const ABSL_LOCKS_EXCLUDED(mutex_);
  std::vector<AgentBook::AgentPtr> Agents() const ABSL_LOCKS_EXCLUDED(agents_mutex_);
  uint64_t version() const { return version_; }  // of the model
  bool has_twin() const { return has_twin_; }

  // Returns when its first process began, on the daemon's clock. 0 if one began earlier than is
  // known.
  int64_t began_ns() const { return began_ns_; }
  // The callers call it one at a time.
  void SetBegan(int64_t process_began_ns);

 private:
  void ApplyUpdate(const ProcessKey& process, const v1::ProcessUpdate& update,
                   const AgentTimes& times, int64_t now_ns, int32_t agent)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  int32_t AddAgent(const AgentBook::AgentPtr& agent) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_)
      ABSL_LOCKS_EXCLUDED(agents_mutex_);
  void Changed() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  SharedByJobs* const shared_;
  const bool has_twin_;
  std::atomic<uint64_t> version_{0};
  std::atomic<int64_t> began_ns_{INT64_MAX};
  mutable Mutex mutex_;
  JobModel model_ ABSL_GUARDED_BY(mutex_);
  ShapeShare shapes_ ABSL_GUARDED_BY(mutex_);
  // When each agent made its newest tick for this job, by its own clock.
  std::vector<int64_t> made_ns_ ABSL_GUARDED_BY(mutex_);
  // Ordered as in the model's state. Changed under both mutexes, so each of them suffices to read.
  std::vector<AgentBook::AgentPtr> agents_;
  mutable Mutex agents_mutex_ ABSL_ACQUIRED_AFTER(mutex_);
};

}  // namespace rollcall
