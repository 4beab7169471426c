// SPDX-License-Identifier: Apache-2.0
// How many calls a second jobs make, now and over the last minutes.
//
// CallRate, of one job, is pure: time is an argument; one owner, no lock. CallRates, of all jobs,
// is thread-safe: the diagnosing thread counts, any thread reads. Its mutex is taken last.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace rollcall {

class CallRate {
 public:
  static constexpr int64_t kEveryNs = 2'000'000'000;
  static constexpr size_t kKept = 300;  // ten minutes

  // Due when a look would begin a new value; counting calls costs a walk over all members.
  bool IsDue(int64_t now_ns) const { return last_ns_ == 0 || now_ns - last_ns_ >= kEveryNs; }

  // `calls`: entered by all ranks since the job began.
  void Count(int64_t now_ns, uint64_t calls, int32_t ranks);

  // Of an average rank, between the last two looks. 0: nothing moves, or nothing is known yet.
  double now() const { return history_.empty() ? 0 : history_.back(); }
  // One value for each look, oldest first.
  const std::deque<double>& history() const { return history_; }

 private:
  int64_t last_ns_ = 0;
  uint64_t last_calls_ = 0;
  std::deque<double> history_;
};

class CallRates {
 public:
  bool IsDue(const std::string& job, int64_t now_ns) const ABSL_LOCKS_EXCLUDED(mutex_);
  void Count(const std::string& job, int64_t now_ns, uint64_t calls, int32_t ranks)
      ABSL_LOCKS_EXCLUDED(mutex_);
  void Forget(const std::string& job) ABSL_LOCKS_EXCLUDED(mutex_);

  // A copy; an empty one for a job that is not known.
  CallRate Get(const std::string& job) const ABSL_LOCKS_EXCLUDED(mutex_);
  double Now(const std::string& job) const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  mutable absl::Mutex mutex_;
  std::map<std::string, CallRate> rates_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace rollcall
