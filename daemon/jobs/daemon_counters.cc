// SPDX-License-Identifier: Apache-2.0
#include "daemon/jobs/daemon_counters.h"

#include <spdlog/spdlog.h>

#include <utility>

#include "base/steady_clock.h"

namespace rollcall {

void DaemonCounters::AddTick(double seconds) {
  const MutexLock lock(mutex_);
  ++values_.ticks;
  values_.tick_seconds += seconds;
}

void DaemonCounters::CountBrokenStreams(uint64_t count) {
  const MutexLock lock(mutex_);
  values_.broken_agent_streams += count;
}

void DaemonCounters::CountDropped(Dropped what, uint64_t count) {
  const auto kind = static_cast<size_t>(what);
  uint64_t total = 0;
  {
    const MutexLock lock(mutex_);
    total = values_.dropped[kind] += count;
    if (!dropped_lines_[kind].Take(SteadyNs()).has_value()) return;
  }
  if (what == Dropped::kTenants) {
    spdlog::warn(
        "dropped processes of tenants that their agent may not write ({} since the "
        "start): see ROLLCALL_TENANT in docs/configuration.md",
        total);
    return;
  }
  spdlog::warn(
      "dropped {} that exceed a limit ({} since the start): see \"Limits\" in "
      "docs/limits.md",
      DroppedName(what), total);
}

void DaemonCounters::CountDropped(const DroppedCounts& counts) {
  for (size_t kind = 0; kind < counts.size(); ++kind) {
    if (counts[kind] != 0) CountDropped(static_cast<Dropped>(kind), counts[kind]);
  }
}

void DaemonCounters::CountOverShare(Dropped what, const Owner& owner) {
  {
    const MutexLock lock(mutex_);
    ++values_.dropped[static_cast<size_t>(what)];
    std::tuple<Dropped, std::string, std::string> who(what, owner.user, owner.host);
    if (values_.over_share.size() >= kMostOverShare && values_.over_share.count(who) == 0) {
      who = {what, "", ""};
    }
    ++values_.over_share[who];
    if (!over_share_lines_[static_cast<size_t>(what)].Take(SteadyNs()).has_value()) return;
  }
  spdlog::warn(
      "dropped {} of user {} on host {}: this user has the largest share while others need some; "
      "see rollcall_over_share_total, and \"Shares\" in docs/limits.md",
      DroppedName(what), owner.user, owner.host);
}

DaemonCounters::Values DaemonCounters::Get() const {
  const MutexLock lock(mutex_);
  return values_;
}

}  // namespace rollcall
