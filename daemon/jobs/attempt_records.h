// SPDX-License-Identifier: Apache-2.0
// The attempts of each job, and what of them a restarted daemon needs to continue them.
//
// One owner, no lock.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>

#include "daemon/model/attempts.h"
#include "daemon/model/job_key.h"
#include "daemon/model/process_key.h"

namespace rollcall {

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

class AttemptRecords {
 public:
  // The attempts that an earlier daemon recorded. Jobs that have already come are left as they are.
  void Restore(const std::map<JobKey, AttemptFacts>& attempts);
  // What has changed since the last call, and all that is known now of these.
  AttemptChanges TakeChanges(const AttemptsToSave& whole);

  bool Has(const JobId& name) const { return attempts_.count(name) != 0; }
  // Begins, or goes on with what was restored, if the job is new.
  Attempts& Of(const JobId& name);
  // Attempts of all jobs of the tenant that have the same launch as this one.
  std::set<JobKey> OfSameLaunch(const JobKey& key) const;

  // A process that uses NCCL.
  void RecordMember(const JobKey& key, const ProcessKey& process, int32_t rank);
  void Forget(const JobKey& key);
  // The next owner of the job continues from what is stored of the attempt, which is forgotten
  // here.
  void KeepStored(const JobKey& key) { changes_.forgotten.erase(key); }
  // The job has no attempts any more.
  void Erase(const JobId& name) { attempts_.erase(name); }

 private:
  std::map<JobId, Attempts> attempts_;
  std::map<JobId, Attempts> restored_;  // of jobs that have not come yet
  AttemptChanges changes_;
};

}  // namespace rollcall
