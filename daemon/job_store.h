// What is known of all jobs: the daemon's only mutable state, behind its only
// mutex. Agents' ticks go in, plain JobState values come out.
//
// Applying a tick twice, or after others that hold the same facts, changes
// nothing: agents re-send.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "daemon/model/job_state.h"

namespace rollcall {

namespace v1 {
class CommUpdate;
class Evidence;
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

  void Apply(const std::string& host, const v1::Tick& tick) ABSL_LOCKS_EXCLUDED(mutex_);

  // The host's agent has not been heard of for too long: of its processes that
  // were alive nothing is known any more. A later tick takes this back.
  void SetSilent(const std::string& host) ABSL_LOCKS_EXCLUDED(mutex_);

  std::vector<std::string> JobNames() const ABSL_LOCKS_EXCLUDED(mutex_);

  // A copy. An empty state for a job that is not known.
  JobState Get(const std::string& job) const ABSL_LOCKS_EXCLUDED(mutex_);

  // Raised whenever Apply or SetSilent may have changed the job.
  uint64_t Version(const std::string& job) const ABSL_LOCKS_EXCLUDED(mutex_);

  void Forget(const std::string& job) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  // Where a block of a process's segment stands in the state.
  struct Seat {
    uint64_t communicator = 0;
    int32_t rank = -1;
  };
  struct Job {
    JobState state;
    std::map<ProcessKey, int32_t> processes;             // -> index in state.processes
    std::map<std::pair<int32_t, uint32_t>, Seat> seats;  // (process, block)
    std::set<uint64_t> splits;  // communicators that stand for a split under way
    uint64_t version = 0;
  };

  void ApplyProcess(const std::string& host, const v1::ProcessUpdate& update)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void ApplyComm(Job* job, int32_t process, const v1::CommUpdate& update)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  static void LeaveSeat(Job* job, const Seat& seat, int32_t process);
  static void DropIfOver(Job* job, uint64_t communicator);

  const std::string default_job_;
  mutable absl::Mutex mutex_;
  std::map<std::string, Job> jobs_ ABSL_GUARDED_BY(mutex_);
  std::map<ProcessKey, std::string> job_of_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace rollcall
