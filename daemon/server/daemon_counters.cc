// SPDX-License-Identifier: Apache-2.0
#include "daemon/server/daemon_counters.h"

#include <spdlog/spdlog.h>

#include <algorithm>

#include "proto/durations.h"
#include "proto/steady_clock.h"

namespace rollcall {
namespace {

constexpr int64_t kLogEveryNs = 60 * kSecond;

}  // namespace

void DaemonCounters::AddTick(double seconds) {
  const absl::MutexLock lock(&mutex_);
  ++values_.ticks;
  values_.tick_seconds += seconds;
}

void DaemonCounters::SetDropped(const std::string& host, uint64_t ticks, uint64_t segments) {
  if (ticks == 0 && segments == 0) return;  // the usual case
  uint64_t more_segments = 0;
  {
    const absl::MutexLock lock(&mutex_);
    if (hosts_.size() >= limits::kHosts && hosts_.count(host) == 0) {
      ++values_.dropped[static_cast<size_t>(Dropped::kHosts)];
      return;
    }
    OfHost& known = hosts_[host];
    // A restarted agent counts from 0.
    values_.dropped_agent_ticks += ticks - (ticks >= known.ticks ? known.ticks : 0);
    known.ticks = ticks;
    more_segments = segments - std::min(segments, known.segments);
    known.segments = segments;
  }
  if (more_segments != 0) CountDropped(Dropped::kSegments, more_segments);
}

void DaemonCounters::CountDropped(Dropped what, uint64_t count) {
  const auto kind = static_cast<size_t>(what);
  uint64_t total = 0;
  {
    const absl::MutexLock lock(&mutex_);
    total = values_.dropped[kind] += count;
    const int64_t now_ns = SteadyNs();
    if (logged_ns_[kind] != 0 && now_ns - logged_ns_[kind] < kLogEveryNs) return;
    logged_ns_[kind] = now_ns;
  }
  if (what == Dropped::kTenants) {
    spdlog::warn("dropped processes of tenants that their agent may not write ({} since the start): "
                 "see ROLLCALL_TENANT in docs/operating.md", total);
    return;
  }
  spdlog::warn("dropped {} that exceed a limit ({} since the start): see \"Limits\" in "
               "docs/operating.md",
               DroppedName(what), total);
}

void DaemonCounters::CountDropped(const DroppedCounts& counts) {
  for (size_t kind = 0; kind < counts.size(); ++kind) {
    if (counts[kind] != 0) CountDropped(static_cast<Dropped>(kind), counts[kind]);
  }
}

DaemonCounters::Values DaemonCounters::Get() const {
  const absl::MutexLock lock(&mutex_);
  return values_;
}

}  // namespace rollcall
