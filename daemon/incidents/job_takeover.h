// SPDX-License-Identifier: Apache-2.0
// Takes jobs over, with their incidents and attempts, from an earlier daemon or from another one,
// and gives them away. Thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <set>

#include "daemon/history/history.h"
#include "daemon/incidents/incident_store.h"
#include "daemon/jobs/job_store.h"
#include "daemon/jobs/ownership.h"

namespace rollcall {

class JobTakeover {
 public:
  // All outlive this object. `ownership`: nullptr means all jobs are this daemon's.
  JobTakeover(IncidentStore* store, const IncidentWriters* writers, Timeline* timeline,
              const JobOwnership* ownership)
      : store_(store), writers_(writers), timeline_(timeline), ownership_(ownership) {}

  // Takes what the history had when it was opened, once it is open.
  void Restore();
  // Saves all again if a new file has replaced the history.
  void SaveAgain();

  // Takes over a job from another daemon, with what that one has stored. It goes on as after a
  // restart. An incident of this daemon that no other daemon has seen, because the job was
  // unproven, gives way to the stored one: both are about the same hang.
  void Adopt(const JobId& job, Continuation from_earlier);
  // Takes the job although it is unknown which numbers its incidents have: uses the time instead.
  void AvoidNumbersOfOthers(const JobId& job);
  // The job is proven to be this daemon's: what it found out before may be stored.
  void StoreProven(const JobId& job);
  // Another daemon has the job: removes all of it from memory. Nothing ends, and no alert goes out.
  void Release(const JobId& job);
  // The same, unless the job has come back meanwhile: for a thread that finds out late.
  void ReleaseUnowned(const JobId& job);

  // Returns the attempts that an earlier daemon recorded; once, as soon as the history is open.
  std::map<JobKey, AttemptFacts> ConsumeAttempts();
  // SaveAttempts() must get these: all once after a new file replaced the history, and those of a
  // job that was adopted.
  AttemptsToSave ConsumeAttemptsToSave();
  void SaveAttempts(const AttemptChanges& changes);

 private:
  void Drop(const JobId& job) ABSL_EXCLUSIVE_LOCKS_REQUIRED(store_->mutex);
  void RestoreJobs(Continuation* stored, int64_t restored_ns)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(store_->mutex);
  void RestoreClosed(const v1::Incident& incident) ABSL_EXCLUSIVE_LOCKS_REQUIRED(store_->mutex);
  void RestoreOpen(v1::Incident incident) ABSL_EXCLUSIVE_LOCKS_REQUIRED(store_->mutex);

  IncidentStore* const store_;
  const IncidentWriters* const writers_;
  Timeline* const timeline_;
  const JobOwnership* const ownership_;
  std::set<JobId> adopted_ ABSL_GUARDED_BY(store_->mutex);  // and not yet this daemon's
  std::map<JobKey, AttemptFacts> attempts_ ABSL_GUARDED_BY(store_->mutex);  // restored
  AttemptsToSave attempts_to_save_ ABSL_GUARDED_BY(store_->mutex);
};

}  // namespace rollcall
