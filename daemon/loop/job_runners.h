// SPDX-License-Identifier: Apache-2.0
// The runners of all jobs, on a pool of workers.
//
// Thread-safe. Post() may be called by gRPC's threads: it takes no job's mutex.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "base/mutex.h"
#include "base/steady_clock.h"
#include "base/worker_pool.h"
#include "daemon/loop/job_runner.h"

namespace rollcall {

class JobRunners {
 public:
  // What `parts` names outlives this object.
  JobRunners(JobRunner::Parts parts, const JobRunner::Options& options, int threads);
  ~JobRunners();

  // Brings the tick to the jobs that it concerns.
  void Post(const std::shared_ptr<TickInTransit>& tick) ABSL_LOCKS_EXCLUDED(mutex_);
  // Lets the runners of these jobs look at them soon.
  void Wake(const std::vector<JobKey>& keys) ABSL_LOCKS_EXCLUDED(mutex_);
  // Lets a worker show that it works; does not wait for it.
  void Pulse() { pool_.Wake(pulse_); }
  // When a worker did so last, on the steady clock; first the time of the construction.
  int64_t PulsedAt() const { return pulse_->at_ns; }
  // Lets go of the runners of jobs that are forgotten.
  void DropForgotten() ABSL_LOCKS_EXCLUDED(mutex_);
  // Diagnoses all jobs once more, after all that was posted; returns when that is done, or at the
  // deadline.
  void Finish(std::chrono::steady_clock::time_point deadline) ABSL_LOCKS_EXCLUDED(mutex_);
  // Nothing runs afterwards. Ticks that are not applied are dropped, and so are those that come
  // later: the end of one makes room for the next one, which a stream then posts.
  void Stop() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  using RunnerPtr = std::shared_ptr<JobRunner>;
  struct PulseTask : public WorkerPool::Task {
    int64_t Run() override {
      at_ns = SteadyNs();
      return WorkerPool::kNever;
    }
    std::atomic<int64_t> at_ns{SteadyNs()};
  };

  RunnerPtr FindOrAdd(const JobKey& key) ABSL_LOCKS_EXCLUDED(mutex_);
  std::vector<RunnerPtr> All() const ABSL_LOCKS_EXCLUDED(mutex_);

  const JobRunner::Parts parts_;
  const JobRunner::Options options_;
  mutable Mutex mutex_;
  bool is_stopped_ ABSL_GUARDED_BY(mutex_) = false;
  std::map<JobKey, RunnerPtr> runners_ ABSL_GUARDED_BY(mutex_);
  const std::shared_ptr<PulseTask> pulse_ = std::make_shared<PulseTask>();
  WorkerPool pool_;
};

}  // namespace rollcall
