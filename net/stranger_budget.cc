// SPDX-License-Identifier: Apache-2.0
#include "net/stranger_budget.h"

#include "base/durations.h"

namespace rollcall {

FrameThrottles::FrameThrottles(const FrameRates& rates) {
  for (size_t i = 0; i < kFrameKinds; ++i) {
    throttles_[i] = Throttle(kSecond / rates[i].per_second, rates[i].at_once);
  }
}

bool StrangerBudget::Take(FrameKind kind, int64_t now_ns) {
  const MutexLock lock(mutex_);
  return throttles_.Take(kind, now_ns);
}

}  // namespace rollcall
