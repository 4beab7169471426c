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
  const bool is_call = kind == FrameKind::kStreams;
  if ((is_call && calls_ >= kMostCalls) || !throttles_.Take(kind, now_ns)) return false;
  if (is_call) ++calls_;
  return true;
}

void StrangerBudget::GiveBackCalls(int64_t calls) {
  const MutexLock lock(mutex_);
  calls_ -= calls;
}

}  // namespace rollcall
