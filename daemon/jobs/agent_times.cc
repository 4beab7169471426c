// SPDX-License-Identifier: Apache-2.0
#include "daemon/jobs/agent_times.h"

#include <algorithm>

#include "base/durations.h"
#include "rollcall/v1/agent.pb.h"

namespace rollcall {
namespace {

// The times of a segment and the start of a process come from different clocks of the kernel.
constexpr int64_t kClocksDiffer = kSecond;
// A tick has the time at which the agent began to read segments. On a busy host it reads for long.
constexpr int64_t kReadsFor = 10 * kSecond;

}  // namespace

AgentTimes::AgentTimes(const AgentBook::Origin& origin, int64_t since_ns)
    : offset_ns_(origin.offset_ns),
      shift_ns_(
          static_cast<int32_t>(std::clamp<int64_t>(origin.shift_ns, -2 * kSecond, 2 * kSecond))) {
  if (origin.came_ns == 0) return;
  const int64_t made_ns = origin.now_ns - origin.offset_ns;
  latest_ns_ = made_ns;
  earliest_ns_ = made_ns - limits::kOldestNs;
  if (since_ns != 0) earliest_ns_ = std::clamp(since_ns, earliest_ns_, latest_ns_);
}

int64_t AgentTimes::OnDaemonClock(int64_t time_ns, DroppedCounts* dropped) const {
  if (time_ns == 0) return 0;
  const bool can_be = time_ns >= earliest_ns_ - kClocksDiffer && time_ns <= latest_ns_ + kReadsFor;
  if (can_be) return time_ns + offset_ns_;
  if (dropped != nullptr) ++(*dropped)[static_cast<size_t>(Dropped::kTimes)];
  return std::clamp(time_ns, earliest_ns_, latest_ns_) + offset_ns_;
}

int64_t AgentTimes::EarliestNs(const v1::Identity& identity) {
  return identity.started_ns() != 0 ? identity.started_ns() : identity.booted_ns();
}

}  // namespace rollcall
