// SPDX-License-Identifier: Apache-2.0
// Finds the jobs that share a communicator or a store with a job that hangs, and notifies the one
// that must report the hang.
//
// Thread-safe. Call it while no job's mutex is held: it takes those of other jobs, one at a time.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "daemon/diagnosis/pairs/joined_jobs.h"
#include "daemon/jobs/job_store.h"

namespace rollcall {

// Another job's incident shows why a job waits.
struct Referral {
  JobKey teller;
  std::string summary;  // what that incident is about, until it is open

  bool operator==(const Referral& other) const {
    return teller == other.teller && summary == other.summary;
  }
};

class JobPairs {
 public:
  // `store` outlives this object.
  explicit JobPairs(JobStore* store) : store_(store) {}

  // The job and those that share something with it, or with one of these; nullopt if no other job
  // does.
  std::optional<JoinedJobs> Find(const JobKey& job, int64_t now_ns) ABSL_LOCKS_EXCLUDED(mutex_);

  // `teller` is to look at itself together with `by`, which waits for it.
  void Summon(const JobKey& teller, const JobKey& by, int64_t now_ns) ABSL_LOCKS_EXCLUDED(mutex_);
  // Whether a job has summoned this one lately.
  bool IsSummoned(const JobKey& job, int64_t now_ns) const ABSL_LOCKS_EXCLUDED(mutex_);

  // What the last look at the job found; nullopt if it waits for no other job.
  void SetReferral(const JobKey& job, std::optional<Referral> referral) ABSL_LOCKS_EXCLUDED(mutex_);
  std::optional<Referral> ReferralOf(const JobKey& job) const ABSL_LOCKS_EXCLUDED(mutex_);
  // How often the referral of the job has changed; of all jobs. Only grows until Forget().
  uint64_t Changes(const JobKey& job) const ABSL_LOCKS_EXCLUDED(mutex_);
  uint64_t Changes() const ABSL_LOCKS_EXCLUDED(mutex_);
  // Removes its data on the job.
  void Forget(const JobKey& job) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  class Search;
  struct Told {
    std::optional<Referral> by;
    uint64_t changes = 0;
  };

  std::vector<JobKey> SummonersOf(const JobKey& job, int64_t now_ns) const
      ABSL_LOCKS_EXCLUDED(mutex_);

  JobStore* const store_;
  mutable Mutex mutex_;
  // When each job was last summoned, and by which.
  std::map<JobKey, std::map<JobKey, int64_t>> summons_ ABSL_GUARDED_BY(mutex_);
  std::map<JobKey, Told> told_ ABSL_GUARDED_BY(mutex_);  // of the jobs that wait or have waited
  uint64_t changes_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace rollcall
