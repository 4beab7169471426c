// SPDX-License-Identifier: Apache-2.0
#include "agent/link/stack_allowance.h"

#include <algorithm>

namespace rollcall {
namespace {

constexpr int64_t kMinuteNs = 60'000'000'000;

}  // namespace

StackAllowance::StackAllowance(int64_t per_minute)
    : interval_ns_(per_minute <= 0 ? 0 : std::max<int64_t>(kMinuteNs / per_minute, 1)),
      burst_(std::min(kBurst, std::max<int64_t>(per_minute, 1))),
      tokens_(burst_) {}

bool StackAllowance::Take(int64_t now_ns) {
  if (interval_ns_ == 0) return true;
  const MutexLock lock(mutex_);
  Refill(now_ns);
  if (tokens_ == 0) return false;
  --tokens_;
  return true;
}

void StackAllowance::Refill(int64_t now_ns) {
  if (refilled_ns_ == 0 || now_ns < refilled_ns_) refilled_ns_ = now_ns;
  const int64_t due = (now_ns - refilled_ns_) / interval_ns_;
  if (due >= burst_ - tokens_) {
    tokens_ = burst_;
    refilled_ns_ = now_ns;  // a full bucket saves no time
    return;
  }
  tokens_ += due;
  refilled_ns_ += due * interval_ns_;
}

}  // namespace rollcall
