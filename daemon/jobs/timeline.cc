// SPDX-License-Identifier: Apache-2.0
#include "daemon/jobs/timeline.h"

#include <algorithm>

#include "base/steady_clock.h"

namespace rollcall {

int64_t Timeline::Now() { return At(SteadyNs()); }

int64_t Timeline::At(int64_t steady_ns) {
  const MutexLock lock(mutex_);
  if (steady_ns_ == 0) {
    now_ns_ = steady_ns_ = steady_ns;
    return now_ns_;
  }
  // Two threads may read the clock in one order and arrive here in the other.
  const int64_t passed_ns = std::max<int64_t>(steady_ns - steady_ns_, 0);
  steady_ns_ += passed_ns;
  now_ns_ += std::min(passed_ns, kLongestPauseNs);
  if (passed_ns > kLongestPauseNs) counts_from_ns_ = now_ns_;
  return now_ns_;
}

int64_t Timeline::counts_from_ns() const {
  const MutexLock lock(mutex_);
  return counts_from_ns_;
}

int64_t Timeline::ToWallTime(int64_t time_ns) {
  if (time_ns == 0) return 0;
  return WallNs(SteadyNs()) - (Now() - time_ns);
}

}  // namespace rollcall
