// SPDX-License-Identifier: Apache-2.0
// What the history had before this daemon: the numbers of its incidents, and what a restarted
// daemon continues from. Thread-safe.
#pragma once

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "base/mutex.h"
#include "base/worker.h"
#include "daemon/history/history.h"

namespace rollcall {

class EarlierHistory {
 public:
  // The code that gives an id, here or elsewhere, raises the number of its job.
  void Raise(const std::map<JobId, int>& numbers) {
    const MutexLock lock(mutex_);
    for (const auto& [job, number] : numbers) numbers_[job] = std::max(numbers_[job], number);
  }
  // 0 if the job has no incident.
  int LastNumber(const JobId& job) const {
    const MutexLock lock(mutex_);
    const auto at = numbers_.find(job);
    return at == numbers_.end() ? 0 : at->second;
  }

  // The first one counts.
  void SetLoaded(Continuation loaded) {
    const MutexLock lock(mutex_);
    if (!std::exchange(has_loaded_, true)) continuation_ = std::move(loaded);
    has_come_.NotifyAll();
  }
  // Whether it is loaded, or will be by this time.
  bool AwaitLoaded(SteadyTime deadline) const {
    const MutexLock lock(mutex_);
    while (!has_loaded_ && has_come_.WaitUntil(mutex_, deadline)) {
    }
    return has_loaded_;
  }
  bool has_loaded() const {
    const MutexLock lock(mutex_);
    return has_loaded_;
  }
  // Once, as soon as it is loaded.
  std::optional<Continuation> Consume() {
    const MutexLock lock(mutex_);
    return std::exchange(continuation_, std::nullopt);
  }

 private:
  mutable Mutex mutex_;
  mutable Condition has_come_;
  std::map<JobId, int> numbers_ ABSL_GUARDED_BY(mutex_);  // the highest, by job
  std::optional<Continuation> continuation_ ABSL_GUARDED_BY(mutex_);
  bool has_loaded_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace rollcall
