// SPDX-License-Identifier: Apache-2.0
// The number of calls per second of each job, now and over the last minutes.
//
// CallRate serves one job and is pure: time is an argument; one owner, no lock. CallRates serves
// all jobs and is thread-safe: the diagnosing thread counts, any thread reads. Its mutex comes last
// in the lock order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>

#include "base/mutex.h"
#include "daemon/model/job_key.h"

namespace rollcall {

class CallRate {
 public:
  static constexpr int64_t kEveryNs = 2'000'000'000;
  static constexpr size_t kKept = 300;  // ten minutes

  // Whether Count() would start a new value. Counting costs a walk over all members.
  bool IsDue(int64_t now_ns) const { return last_ns_ == 0 || now_ns - last_ns_ >= kEveryNs; }

  // `calls` is the number that all ranks have entered since the job began.
  void Count(int64_t now_ns, uint64_t calls, int32_t ranks);

  // Calls per second of an average rank, between the last two calls of Count(). 0 if no rank moves,
  // or there are not two values yet.
  double now() const { return history_.empty() ? 0 : history_.back(); }
  // Returns one value for each interval, oldest first.
  const std::deque<double>& history() const { return history_; }

 private:
  int64_t last_ns_ = 0;
  uint64_t last_calls_ = 0;
  std::deque<double> history_;
};

class CallRates {
 public:
  bool IsDue(const JobKey& key, int64_t now_ns) const ABSL_LOCKS_EXCLUDED(mutex_);
  void Count(const JobKey& key, int64_t now_ns, uint64_t calls, int32_t ranks)
      ABSL_LOCKS_EXCLUDED(mutex_);
  void Forget(const JobKey& key) ABSL_LOCKS_EXCLUDED(mutex_);

  // A copy. Empty for an unknown job.
  CallRate Get(const JobKey& key) const ABSL_LOCKS_EXCLUDED(mutex_);
  double Now(const JobKey& key) const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  mutable Mutex mutex_;
  std::map<JobKey, CallRate> rates_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace rollcall
