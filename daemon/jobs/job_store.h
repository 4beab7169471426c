// SPDX-License-Identifier: Apache-2.0
// The states of all jobs: agents' ticks go in, JobStates can be read.
//
// A tick is taken in two steps. ProcessPlaces::Route() finds the jobs that it concerns; it takes no
// job's mutex, so gRPC's threads may call it. StoredJob::Apply() changes one job under that job's
// mutex. Applying a tick twice, or after others that hold the same facts, changes nothing: agents
// re-send.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "daemon/jobs/agent_book.h"
#include "daemon/jobs/daemon_counters.h"
#include "daemon/jobs/job_index.h"
#include "daemon/jobs/process_places.h"
#include "daemon/jobs/routed_tick.h"
#include "daemon/jobs/stored_job.h"
#include "daemon/model/job_key.h"
#include "daemon/model/job_state.h"

namespace rollcall {

class JobStore {
 public:
  // `default_job` names the job of processes whose environment gives none. `counters` counts what
  // exceeds a limit, and must outlive this object; nullptr if nothing counts it.
  explicit JobStore(std::string default_job, const JobStoreLimits& most = {},
                    DaemonCounters* counters = nullptr)
      : most_(most),
        shared_{std::make_shared<FleetBudget>(most.record_bytes), counters, {}, {}},
        places_(std::move(default_job), most, &shared_, &jobs_) {}

  AgentBook* agents() { return &shared_.agents; }
  const AgentBook* agents() const { return &shared_.agents; }
  const JobIndex& jobs() const { return jobs_; }
  ProcessPlaces* places() { return &places_; }
  const ProcessPlaces* places() const { return &places_; }

  // So many hosts had jobs before the daemon restarted. Call before the first tick.
  void ExpectHosts(size_t hosts) { expected_hosts_ = hosts; }
  // The newest records of a communicator that a whole tick should have: the store would drop more.
  uint32_t RecordsInWholeTicks() const;

  // Routes and applies a tick, for all jobs at once. If false, the agent must connect again and
  // send everything. `came_ns`: as ProcessPlaces::Route().
  bool Apply(const AgentName& agent, const v1::Tick& tick, int64_t came_ns);
  // The tick comes from the only agent of the host.
  void Apply(const std::string& host, const v1::Tick& tick, int64_t came_ns) {
    Apply(AgentName{host, host, 0, true}, tick, came_ns);
  }

  // Changes the job's model: what stacks, networks and hosts show. Does nothing if the job is
  // unknown.
  void Change(const JobKey& key, const std::function<void(JobModel*)>& change);
  // See StoredJob::UpdateHeard().
  void UpdateHeard(const JobKey& key, int64_t counts_from_ns);
  // The agents of these jobs shall tick faster than the others. Leaves out the jobs with the most
  // agents if together they have more than `most_agents`.
  void SetUrgent(const std::set<JobKey>& jobs, size_t most_agents);

  // Whether one of the job's agents is heard.
  bool IsHeard(const JobId& name) const;
  // The ids of the agents that report the job.
  std::vector<std::string> AgentsOf(const JobId& name) const;
  // An attempt of another job.
  struct Sharer {
    JobKey key;
    bool is_of_launch = false;  // the same launcher has started it, else it has a communicator
  };
  // The attempts of other jobs of the tenant that have one of these communicators; with
  // `by_launch` also those with the same rendezvous and step of a scheduler, which may share its
  // store. Takes the mutexes of the tenant's jobs, one at a time.
  std::vector<Sharer> FindSharers(const JobKey& job, const std::vector<uint64_t>& communicators,
                                  bool by_launch) const;

  // See StoredJob::Read(). Does nothing if the job is unknown.
  void Read(const JobKey& key, const std::function<void(const JobState&)>& reader) const;
  // A copy: for small jobs. An empty state for a job that is not known.
  JobState Get(const JobKey& key) const;
  // Returns when its first process began, on the daemon's clock. 0 if one began earlier than is
  // known.
  int64_t BeganNs(const JobKey& key) const;
  // Rises with every call that may have changed the job.
  uint64_t Version(const JobKey& key) const;
  // Rises whenever any job has changed. Costs the same however many jobs there are.
  uint64_t Changes() const { return shared_.changes; }

 private:
  std::vector<AgentBook::AgentPtr> BookedAgentsOf(const JobId& name) const;

  const JobStoreLimits most_;
  SharedByJobs shared_;
  JobIndex jobs_;
  ProcessPlaces places_;
  size_t expected_hosts_ = 0;
};

}  // namespace rollcall
