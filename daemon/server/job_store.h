// SPDX-License-Identifier: Apache-2.0
// What is known of all jobs: agents' ticks go in, JobStates can be read.
//
// Each job has a lock of its own, so that a diagnosis of a large one holds up
// its own agents only. Applying a tick twice, or after others that hold the
// same facts, changes nothing: agents re-send.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "daemon/model/host_clocks.h"
#include "daemon/model/job_model.h"
#include "daemon/server/agent_name.h"

namespace rollcall {

namespace v1 {
class ProcessUpdate;
class Tick;
}  // namespace v1

class JobStore {
 public:
  // `default_job` names the job of processes whose environment gives none.
  explicit JobStore(std::string default_job) : default_job_(std::move(default_job)) {}

  // A stream of the agent has begun, or ended. Agents that must begin anew, since
  // what they told of the ended one's processes was not taken in: their ids.
  void Connected(const AgentName& agent) ABSL_LOCKS_EXCLUDED(mutex_, heard_mutex_);
  std::vector<std::string> Gone(const AgentName& agent) ABSL_LOCKS_EXCLUDED(mutex_, heard_mutex_);

  // `came_ns`: our clock when the tick came; the times in it are brought onto
  // our clock. 0: leave them as they are, and what they tell never becomes old.
  // A process is its first agent's, as long as that one is connected and heard:
  // what others tell of it is left out. False: the agent must begin anew.
  bool Apply(const AgentName& agent, const v1::Tick& tick, int64_t came_ns)
      ABSL_LOCKS_EXCLUDED(mutex_, heard_mutex_);
  // By the only agent of the host.
  void Apply(const std::string& host, const v1::Tick& tick, int64_t came_ns) {
    Apply(AgentName{host, host, 0, true}, tick, came_ns);
  }

  // Looks at the clock: whose ticks are missing is stale, and after a while
  // silent. Returns the hosts of those that have fallen silent since the last look.
  std::vector<std::string> MarkSilentAgents(int64_t now_ns, int64_t silent_after_ns)
      ABSL_LOCKS_EXCLUDED(heard_mutex_);
  // Brings what MarkSilentAgents() found to the job. No wait counts from before `counts_from_ns`.
  void UpdateHeard(const std::string& job, int64_t counts_from_ns)
      ABSL_LOCKS_EXCLUDED(mutex_, heard_mutex_);

  // The host's agent has not been heard of since then: of its processes that
  // were alive nothing is known any more. A later tick takes this back.
  void SetSilent(const std::string& host, int64_t since_ns) ABSL_LOCKS_EXCLUDED(mutex_);

  // What the newest stacks of a process (index into JobState::processes) show.
  void SetStacks(const std::string& job, int32_t process, const StackFacts& facts)
      ABSL_LOCKS_EXCLUDED(mutex_);

  std::vector<std::string> JobNames() const ABSL_LOCKS_EXCLUDED(mutex_);

  // Calls `reader` with the job's state, which it must not keep; ticks wait
  // meanwhile. Not called for a job that is not known.
  void Read(const std::string& job, const std::function<void(const JobState&)>& reader) const
      ABSL_LOCKS_EXCLUDED(mutex_);

  // A copy: for small jobs. An empty state for a job that is not known.
  JobState Get(const std::string& job) const ABSL_LOCKS_EXCLUDED(mutex_);

  // Raised whenever Apply or SetSilent may have changed the job.
  uint64_t Version(const std::string& job) const ABSL_LOCKS_EXCLUDED(mutex_);

  void Forget(const std::string& job) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  // All but its name is guarded by `heard_mutex_`.
  struct Agent {
    explicit Agent(AgentName n) : name(std::move(n)) {}
    const AgentName name;
    AgentHeard heard;
    int streams = 0;
    int64_t made_ns = 0;  // the newest tick, by its own clock
    int ticks = 0;        // that have come, as far as they are counted
    bool refused = false;  // told of processes that are another's
  };
  struct Job {
    explicit Job(std::string name) : model(std::move(name)) {}
    absl::Mutex mutex;
    JobModel model ABSL_GUARDED_BY(mutex);
    std::map<std::string, std::set<int32_t>> processes ABSL_GUARDED_BY(mutex);  // by host
    std::vector<std::shared_ptr<Agent>> agents ABSL_GUARDED_BY(mutex);  // as in the model's state
  };
  struct Owned {
    std::string job;
    std::shared_ptr<Agent> agent;  // that told of the process; nullptr: read from files
  };
  struct Origin {  // of an update
    std::shared_ptr<Agent> agent;
    int64_t now_ns = 0;     // when it was made, by our clock
    int64_t offset_ns = 0;  // from the agent's clock to ours
  };

  std::shared_ptr<Agent> FindOrAddAgent(const AgentName& name)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(heard_mutex_);
  int64_t Hear(int64_t made_ns, int64_t came_ns, Agent* agent)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(heard_mutex_);
  bool MaySpeak(const std::shared_ptr<Agent>& agent, bool with_identity, Owned* owned)
      ABSL_LOCKS_EXCLUDED(heard_mutex_);
  std::shared_ptr<Job> FindOrAddJob(const ProcessKey& key, const std::shared_ptr<Agent>& agent,
                             const v1::ProcessUpdate& update, bool* refused)
      ABSL_LOCKS_EXCLUDED(mutex_);
  void ApplyProcess(const ProcessKey& key, const v1::ProcessUpdate& update, const Origin& origin,
                    Job* job) ABSL_LOCKS_EXCLUDED(job->mutex, heard_mutex_);
  void SetAgent(int32_t process, const std::shared_ptr<Agent>& agent, Job* job)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(job->mutex) ABSL_LOCKS_EXCLUDED(heard_mutex_);
  std::vector<std::shared_ptr<Job>> AllJobs() const ABSL_LOCKS_EXCLUDED(mutex_);
  std::shared_ptr<Job> Find(const std::string& job) const ABSL_LOCKS_EXCLUDED(mutex_);

  const std::string default_job_;
  mutable absl::Mutex mutex_;  // never taken while a job's is held
  std::map<std::string, std::shared_ptr<Job>> jobs_ ABSL_GUARDED_BY(mutex_);
  std::map<ProcessKey, Owned> owned_ ABSL_GUARDED_BY(mutex_);
  mutable absl::Mutex heard_mutex_;  // taken last
  std::map<std::string, std::shared_ptr<Agent>> agents_ ABSL_GUARDED_BY(heard_mutex_);  // by id
  HostClocks clocks_ ABSL_GUARDED_BY(heard_mutex_);  // by agent: each has a clock of its own
};

}  // namespace rollcall
