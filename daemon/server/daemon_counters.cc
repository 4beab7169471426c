// SPDX-License-Identifier: Apache-2.0
#include "daemon/server/daemon_counters.h"

namespace rollcall {

void DaemonCounters::AddTick(double seconds) {
  const absl::MutexLock lock(&mutex_);
  ++values_.ticks;
  values_.tick_seconds += seconds;
}

void DaemonCounters::SetDropped(const std::string& host, uint64_t dropped) {
  if (dropped == 0) return;  // as nearly always
  const absl::MutexLock lock(&mutex_);
  uint64_t& known = dropped_[host];
  // An agent that was started anew counts from 0.
  values_.dropped_agent_ticks += dropped - (dropped >= known ? known : 0);
  known = dropped;
}

DaemonCounters::Values DaemonCounters::Get() const {
  const absl::MutexLock lock(&mutex_);
  return values_;
}

}  // namespace rollcall
