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
#include <tuple>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "daemon/model/host_clocks.h"
#include "daemon/model/job_model.h"

namespace rollcall {

namespace v1 {
class ProcessUpdate;
class Tick;
}  // namespace v1

// A process, wherever it runs.
struct ProcessKey {
  std::string host;
  int32_t pid = 0;
  uint64_t start_time = 0;
  bool operator<(const ProcessKey& other) const {
    return std::tie(host, pid, start_time) < std::tie(other.host, other.pid, other.start_time);
  }
};

class JobStore {
 public:
  // `default_job` names the job of processes whose environment gives none.
  explicit JobStore(std::string default_job) : default_job_(std::move(default_job)) {}

  // `came_ns`: our clock when the tick came; the times in it are brought onto
  // our clock. 0: leave them as they are.
  void Apply(const std::string& host, const v1::Tick& tick, int64_t came_ns)
      ABSL_LOCKS_EXCLUDED(mutex_);

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
  struct Job {
    explicit Job(std::string name) : model(std::move(name)) {}
    absl::Mutex mutex;
    JobModel model ABSL_GUARDED_BY(mutex);
    std::map<std::string, std::set<int32_t>> processes ABSL_GUARDED_BY(mutex);  // by host
  };

  std::shared_ptr<Job> JobOf(const ProcessKey& key, const v1::ProcessUpdate& update)
      ABSL_LOCKS_EXCLUDED(mutex_);
  static void ApplyProcess(const ProcessKey& key, const v1::ProcessUpdate& update, int64_t now_ns,
                           int64_t offset_ns, Job* job) ABSL_LOCKS_EXCLUDED(job->mutex);
  std::vector<std::shared_ptr<Job>> AllJobs() const ABSL_LOCKS_EXCLUDED(mutex_);
  std::shared_ptr<Job> Find(const std::string& job) const ABSL_LOCKS_EXCLUDED(mutex_);

  const std::string default_job_;
  mutable absl::Mutex mutex_;  // never taken while a job's is held
  std::map<std::string, std::shared_ptr<Job>> jobs_ ABSL_GUARDED_BY(mutex_);
  std::map<ProcessKey, std::string> job_of_ ABSL_GUARDED_BY(mutex_);
  HostClocks clocks_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace rollcall
