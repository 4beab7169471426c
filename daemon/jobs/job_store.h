// SPDX-License-Identifier: Apache-2.0
// The states of all jobs: agents' ticks go in, JobStates can be read.
//
// A tick is taken in two steps. Route() finds the jobs that it concerns; it takes no job's mutex,
// so gRPC's threads may call it. Apply() changes one job under that job's mutex. Applying a tick
// twice, or after others that hold the same facts, changes nothing: agents re-send.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "base/mutex.h"
#include "daemon/jobs/agent_book.h"
#include "daemon/jobs/agent_times.h"
#include "daemon/jobs/job_room.h"
#include "daemon/jobs/ownership.h"
#include "daemon/model/attempts.h"
#include "daemon/model/client_limits.h"
#include "daemon/model/fleet_budget.h"
#include "daemon/model/job_key.h"
#include "daemon/model/job_model.h"
#include "daemon/model/tenants.h"

namespace rollcall {

namespace v1 {
class Identity;
class ProcessUpdate;
class Tick;
}  // namespace v1

class DaemonCounters;

// What operators may set; client_limits.h has the other limits.
struct JobStoreLimits {
  size_t jobs = limits::kJobs;  // attempts of jobs
  size_t processes = limits::kProcesses;
  size_t record_bytes = limits::kRecordBytes;
};

// Changes of the attempts that a restarted daemon needs.
struct AttemptChanges {
  std::set<JobKey> forgotten;              // before the others
  std::map<JobKey, AttemptFacts> changed;  // with their new members
};

// Attempts of which the history may lack even what has not changed.
struct AttemptsToSave {
  bool all = false;
  std::set<JobId> jobs;
};

class JobStore {
 public:
  struct Job;

  // What a tick says of one job.
  struct Part {
    JobKey key;
    std::shared_ptr<Job> job;
    struct Update {
      int index = 0;  // in Tick::processes
      AgentTimes times;
    };
    std::vector<Update> updates;
  };
  struct Routed {
    std::string host;
    AgentBook::Origin origin;
    std::vector<Part> parts;
    bool must_restart = false;  // the agent must connect again and send everything
    // Jobs that this daemon does not own: their processes were left out. By name, with the tenant
    // and job as the agent reports them.
    std::map<JobId, std::pair<std::string, std::string>> not_owned;
  };

  // One attempt of a job, as a list shows it.
  struct AttemptRef {
    JobKey key;
    bool has_twin = false;  // it began while another attempt of its name was alive
  };

  // `default_job` names the job of processes whose environment gives none. `counters` counts what
  // exceeds a limit, and must outlive this object; nullptr: nothing counts it.
  explicit JobStore(std::string default_job, const JobStoreLimits& most = {},
                    DaemonCounters* counters = nullptr)
      : default_job_(std::move(default_job)),
        most_(most),
        counters_(counters),
        fleet_(std::make_shared<FleetBudget>(most.record_bytes)) {}

  // Leaves out the jobs that are not owned; outlives the store. nullptr: takes all. Before the
  // first tick.
  void SetOwnership(const JobOwnership* ownership) { ownership_ = ownership; }

  AgentBook* agents() { return &agents_; }

  // So many hosts had jobs before the daemon restarted. Call before the first tick.
  void ExpectHosts(size_t hosts) { expected_hosts_ = hosts; }
  // The attempts that an earlier daemon recorded. Jobs that have already come are left as they are.
  void RestoreAttempts(const std::map<JobKey, AttemptFacts>& attempts) ABSL_LOCKS_EXCLUDED(mutex_);
  // What has changed since the last call, and all that is known now of these.
  AttemptChanges TakeAttemptChanges(const AttemptsToSave& whole) ABSL_LOCKS_EXCLUDED(mutex_);
  // The newest records of a communicator that a whole tick should have: the store would drop more.
  uint32_t RecordsInWholeTicks() const;

  // `came_ns`: when the tick came, on the daemon's clock; the times in the tick are moved onto that
  // clock. 0: they are left as they are, and the report never becomes old. The first agent that
  // reports a process speaks for it while it is connected and heard; reports of others are left
  // out.
  Routed Route(const AgentName& agent, const v1::Tick& tick, int64_t came_ns)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Changes one job. For a part of Route() with the same tick.
  void Apply(const v1::Tick& tick, const Routed& routed, const Part& part)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Both at once, for all parts. False: the agent must connect again and send everything.
  bool Apply(const AgentName& agent, const v1::Tick& tick, int64_t came_ns)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // By the only agent of the host.
  void Apply(const std::string& host, const v1::Tick& tick, int64_t came_ns) {
    Apply(AgentName{host, host, 0, true}, tick, came_ns);
  }

  // Copies how the job's agents are heard into its state, and drops records if the job's share of
  // their memory has shrunk. No wait counts from before `counts_from_ns`.
  void UpdateHeard(const JobKey& key, int64_t counts_from_ns) ABSL_LOCKS_EXCLUDED(mutex_);

  // The agents of these jobs shall tick faster than the others. Leaves out the jobs with the most
  // agents if together they have more than `most_agents`.
  void SetUrgent(const std::set<JobKey>& jobs, size_t most_agents) ABSL_LOCKS_EXCLUDED(mutex_);

  // What the newest stacks of a process (index into JobState::processes) show.
  void SetStacks(const JobKey& key, int32_t process, const StackFacts& facts)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // What the transfers of a process over the network wait for.
  void SetNetwork(const JobKey& key, int32_t process, std::vector<NetworkSample> samples,
                  int64_t now_ns) ABSL_LOCKS_EXCLUDED(mutex_);

  // What a host of the job shows.
  void SetHostFacts(const JobKey& key, const std::string& host, HostFacts facts)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // All attempts of all jobs.
  std::vector<JobKey> Keys() const ABSL_LOCKS_EXCLUDED(mutex_);
  // The newest attempt of each job, by name: of `most` jobs at most.
  std::vector<JobKey> NewestKeys(size_t most = SIZE_MAX,
                                 const Tenants& tenants = Tenants::All()) const
      ABSL_LOCKS_EXCLUDED(mutex_);
  // The number of jobs, whatever their attempts.
  size_t CountJobs(const Tenants& tenants = Tenants::All()) const ABSL_LOCKS_EXCLUDED(mutex_);
  // All attempts of all jobs with this name, of any tenant.
  std::vector<JobKey> AllKeys(const std::string& job) const ABSL_LOCKS_EXCLUDED(mutex_);
  // Hosts with a process of any job. Looks at all processes.
  std::set<std::string> HostsWithProcesses() const ABSL_LOCKS_EXCLUDED(mutex_);
  // Whether one of the job's agents is heard.
  bool IsHeard(const JobId& name) const ABSL_LOCKS_EXCLUDED(mutex_);
  // The ids of the agents that report the job.
  std::vector<std::string> AgentsOf(const JobId& name) const ABSL_LOCKS_EXCLUDED(mutex_);
  // All attempts of one job.
  std::vector<JobKey> KeysOf(const JobId& name) const ABSL_LOCKS_EXCLUDED(mutex_);
  // An attempt of another job.
  struct Sharer {
    JobKey key;
    bool is_of_launch = false;  // the same launcher has started it, else it has a communicator
  };
  // The attempts of other jobs of the tenant that have one of these communicators; with
  // `by_launch` also those with the same rendezvous and step of a scheduler, which may share its
  // store. Takes the mutexes of the tenant's jobs, one at a time.
  std::vector<Sharer> FindSharers(const JobKey& job, const std::vector<uint64_t>& communicators,
                                  bool by_launch) const ABSL_LOCKS_EXCLUDED(mutex_);
  // All attempts of one job, newest first.
  std::vector<AttemptRef> AttemptsFor(const JobId& name) const ABSL_LOCKS_EXCLUDED(mutex_);
  // The job of that name: the tenant's; for "" the default tenant's, else the first of any
  // tenant; the newest attempt, if none is named.
  std::optional<JobKey> Find(const std::string& tenant, const std::string& job,
                             std::optional<int32_t> attempt,
                             const Tenants& tenants = Tenants::All()) const
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Calls `reader` with the job's state, which it must not keep; ticks wait meanwhile. Does nothing
  // if the job is unknown.
  void Read(const JobKey& key, const std::function<void(const JobState&)>& reader) const
      ABSL_LOCKS_EXCLUDED(mutex_);
  // When its first process began, on the daemon's clock. 0: one began earlier than is known.
  int64_t BeganNs(const JobKey& key) const ABSL_LOCKS_EXCLUDED(mutex_);
  // False once the job was forgotten, also because newer attempts took its room.
  bool Has(const JobKey& key) const ABSL_LOCKS_EXCLUDED(mutex_);
  // A copy: for small jobs. An empty state for a job that is not known.
  JobState Get(const JobKey& key) const ABSL_LOCKS_EXCLUDED(mutex_);
  // Rises with every call that may have changed the job.
  uint64_t Version(const JobKey& key) const ABSL_LOCKS_EXCLUDED(mutex_);
  // Rises whenever any job has changed. Costs the same however many jobs there are.
  uint64_t Changes() const { return changes_; }

  // Returns false, and keeps the job, while a tick is on its way to the job: a process that the
  // tick brings would be lost.
  bool Forget(const JobKey& key) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Owned {
    JobKey job;
    AgentBook::AgentPtr agent;  // that reported the process; nullptr: read from files
    bool has_ended = false;
    bool has_joined = false;  // a communicator, which its attempt knows
    int64_t since_ns = 0;     // see AgentTimes::EarliestNs()
  };
  struct Newcomer {  // a process that asks for a place
    Owner owner;
    bool is_alive = true;
  };
  struct Family {  // all attempts of one job
    Attempts attempts;
    std::map<int32_t, std::shared_ptr<Job>> jobs;  // by attempt
  };

  std::shared_ptr<Job> RouteUpdate(const AgentName& agent, const AgentBook::Origin& origin,
                                   const v1::ProcessUpdate& update, JobKey* key, AgentTimes* times,
                                   Routed* routed) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::optional<JobId> NameOf(const v1::Identity& identity, const AgentName& agent);
  Owned* TakeIn(const AgentName& agent, const AgentBook::Origin& origin, const ProcessKey& process,
                const v1::ProcessUpdate& update, const AgentTimes& times, Routed* routed)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::optional<JobKey> Place(const ProcessKey& process, const JobId& name,
                              const Newcomer& newcomer, const v1::ProcessUpdate& update,
                              const AgentBook::Origin& origin, const AgentTimes& times)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void NoteJoined(const ProcessKey& process, const v1::ProcessUpdate& update, Owned* owned)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void RecordMember(const JobKey& key, const ProcessKey& process, int32_t rank)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Family* FindOrAddFamily(const JobId& name) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Newcomer NewcomerOf(const AgentName& agent, const JobId& name,
                      const v1::ProcessUpdate& update) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool MakeRoomForJob(const JobId& name, const Newcomer& newcomer)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool MakeRoomForProcess(const Newcomer& newcomer) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void MakeRoom(const JobKey& key, Dropped what) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  size_t CountGuests(const JobId& name, const std::string& user) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void SetEnded(Owned* owned, bool has_ended) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void SetProcesses(const JobKey& key) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void EraseEmptyFamily(const JobId& name) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void HandOver(const JobKey& key, const Owner& owner) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Evict(const JobKey& newest, size_t attempts) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void ForgetLocked(const JobKey& key) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Count(Dropped what);
  void CountOverShare(Dropped what, const Owner& owner);
  // The beginning of a text that is longer than `most` bytes; counts the cut.
  std::string LimitText(const std::string& text, size_t most);
  void Changed(Job* job);
  bool MayReport(const AgentBook::AgentPtr& agent, bool with_identity, Owned* owned);
  void ApplyUpdate(const ProcessKey& process, const v1::ProcessUpdate& update,
                   const AgentTimes& times, int64_t now_ns, int32_t agent, Job* job);
  int32_t AddAgent(const AgentBook::AgentPtr& agent, Job* job);
  std::shared_ptr<Job> FindJob(const JobKey& key) const ABSL_LOCKS_EXCLUDED(mutex_);
  std::vector<AgentBook::AgentPtr> BookedAgentsOf(const JobId& name) const
      ABSL_LOCKS_EXCLUDED(mutex_);

  const std::string default_job_;
  const JobStoreLimits most_;
  DaemonCounters* const counters_;
  const std::shared_ptr<FleetBudget> fleet_;
  const JobOwnership* ownership_ = nullptr;
  AgentBook agents_;
  size_t expected_hosts_ = 0;
  std::atomic<uint64_t> changes_{0};
  mutable Mutex mutex_;  // never taken while a job's is held
  std::map<JobId, Family> families_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, std::set<JobId>> names_ ABSL_GUARDED_BY(mutex_);  // by JobId::job
  std::map<JobId, Attempts> restored_ ABSL_GUARDED_BY(mutex_);  // of jobs that have not come yet
  AttemptChanges attempt_changes_ ABSL_GUARDED_BY(mutex_);
  size_t jobs_ ABSL_GUARDED_BY(mutex_) = 0;  // attempts
  JobRoom room_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_map<ProcessKey, Owned> owned_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace rollcall
