// SPDX-License-Identifier: Apache-2.0
// What each job looked like in the last hour: compressed overviews, a few seconds apart. Beyond a
// limit of memory, older states become coarser, those of the jobs with most of them first.
//
// Thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "base/mutex.h"
#include "daemon/model/job_key.h"
#include "rollcall/v1/query.pb.h"

namespace rollcall {

class PastViews {
 public:
  static constexpr int64_t kKeepNs = int64_t{3600} * 1'000'000'000;
  static constexpr size_t kMostBytes = size_t{64} << 20;

  explicit PastViews(int64_t keep_ns = kKeepNs, size_t most_bytes = kMostBytes)
      : keep_ns_(keep_ns), most_bytes_(most_bytes) {}

  // Keeps the job's state at this time, on the wall clock. Ignores a time before the newest one,
  // and a second state of a job that has ended.
  void Add(const JobKey& job, int64_t at_ns, const v1::JobView& view) ABSL_LOCKS_EXCLUDED(mutex_);

  // Returns the newest state at `at_ns` or before. kNotFound: no state is that old.
  absl::StatusOr<v1::JobView> Find(const JobKey& job, int64_t at_ns) const
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Returns the time of the oldest state.
  std::optional<int64_t> Oldest(const JobKey& job) const ABSL_LOCKS_EXCLUDED(mutex_);

  // Drops what is older than an hour at `now_ns`, and jobs without any state.
  void DropOld(int64_t now_ns) ABSL_LOCKS_EXCLUDED(mutex_);

  size_t bytes() const ABSL_LOCKS_EXCLUDED(mutex_);
  size_t states() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct State {
    int64_t at_ns;
    std::string compressed;
  };
  struct Past {
    std::deque<State> states;  // oldest first
    size_t bytes = 0;
    bool has_ended = false;  // the newest state is of an ended job
  };

  void Thin(Past* past) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void KeepWithinLimit() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const int64_t keep_ns_;
  const size_t most_bytes_;
  mutable Mutex mutex_;
  std::map<JobKey, Past> jobs_ ABSL_GUARDED_BY(mutex_);
  size_t bytes_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace rollcall
