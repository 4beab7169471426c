// SPDX-License-Identifier: Apache-2.0
// Which attempts of which jobs there are, by tenant, name and number.
//
// Thread-safe. Its mutex is held shortly and taken last.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "daemon/jobs/stored_job.h"
#include "daemon/model/job_key.h"
#include "daemon/model/tenants.h"

namespace rollcall {

class JobIndex {
 public:
  // One attempt of a job, as a list shows it.
  struct AttemptRef {
    JobKey key;
    bool has_twin = false;  // it began while another attempt of its name was alive
  };

  void Add(const JobKey& key, std::shared_ptr<StoredJob> job) ABSL_LOCKS_EXCLUDED(mutex_);
  // False if there was no such job.
  bool Remove(const JobKey& key) ABSL_LOCKS_EXCLUDED(mutex_);
  // Whether anybody has got the job from here, and still has it.
  bool IsInUse(const JobKey& key) const ABSL_LOCKS_EXCLUDED(mutex_);

  // nullptr if there is no such job.
  std::shared_ptr<StoredJob> At(const JobKey& key) const ABSL_LOCKS_EXCLUDED(mutex_);
  bool Has(const JobKey& key) const { return At(key) != nullptr; }
  size_t CountAttempts() const ABSL_LOCKS_EXCLUDED(mutex_);
  // Returns the number of jobs, whatever their attempts.
  size_t CountJobs(const Tenants& tenants = Tenants::All()) const ABSL_LOCKS_EXCLUDED(mutex_);

  // Returns all attempts of all jobs.
  std::vector<JobKey> Keys() const ABSL_LOCKS_EXCLUDED(mutex_);
  // The newest attempt of each job, by name: of `most` jobs at most.
  std::vector<JobKey> NewestKeys(size_t most = SIZE_MAX,
                                 const Tenants& tenants = Tenants::All()) const
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Returns all attempts of one job, oldest first.
  std::vector<JobKey> KeysOf(const JobId& name) const ABSL_LOCKS_EXCLUDED(mutex_);
  // All attempts of all jobs with this name, of any tenant.
  std::vector<JobKey> AllKeys(const std::string& job) const ABSL_LOCKS_EXCLUDED(mutex_);
  // Returns all attempts of all jobs of the tenant.
  std::vector<JobKey> KeysOfTenant(const std::string& tenant) const ABSL_LOCKS_EXCLUDED(mutex_);
  // Returns all attempts of one job, newest first.
  std::vector<AttemptRef> AttemptsFor(const JobId& name) const ABSL_LOCKS_EXCLUDED(mutex_);
  // The job of that name: the tenant's; for "" the default tenant's, else the first of any tenant;
  // the newest attempt, if the selector names no attempt.
  std::optional<JobKey> Find(const std::string& tenant, const std::string& job,
                             std::optional<int32_t> attempt,
                             const Tenants& tenants = Tenants::All()) const
      ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  using Attempts = std::map<int32_t, std::shared_ptr<StoredJob>>;

  static void AddKeys(const JobId& name, const Attempts& attempts, std::vector<JobKey>* keys);

  mutable Mutex mutex_;
  std::map<JobId, Attempts> jobs_ ABSL_GUARDED_BY(mutex_);                // each with an attempt
  std::map<std::string, std::set<JobId>> names_ ABSL_GUARDED_BY(mutex_);  // by JobId::job
  size_t attempts_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace rollcall
