// SPDX-License-Identifier: Apache-2.0
// Counters of the daemon itself since its start. Thread-safe; its mutex comes last in the lock
// order.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <tuple>

#include "base/mutex.h"
#include "base/shares.h"
#include "base/throttle.h"
#include "daemon/model/client_limits.h"

namespace rollcall {

class DaemonCounters {
 public:
  struct Values {
    uint64_t ticks = 0;  // diagnoses of all jobs
    double tick_seconds = 0;
    uint64_t broken_agent_streams = 0;  // and those that agents could not open
    DroppedCounts dropped = {};         // what exceeded a limit
    // The part of these that exceeded the share of one user of the daemon: by what, user and host.
    std::map<std::tuple<Dropped, std::string, std::string>, uint64_t> over_share;
  };
  // Users who exceed their share beyond this number are counted together, as user "" on host "".
  static constexpr size_t kMostOverShare = 100;

  void AddTick(double seconds) ABSL_LOCKS_EXCLUDED(mutex_);
  void CountBrokenStreams(uint64_t count) ABSL_LOCKS_EXCLUDED(mutex_);
  // Counts what exceeded a limit, and logs it at most once a minute for each kind.
  void CountDropped(Dropped what, uint64_t count) ABSL_LOCKS_EXCLUDED(mutex_);
  void CountDropped(const DroppedCounts& counts) ABSL_LOCKS_EXCLUDED(mutex_);
  // Counts one that is beyond the share of its owner, and logs who that is.
  void CountOverShare(Dropped what, const Owner& owner) ABSL_LOCKS_EXCLUDED(mutex_);
  Values Get() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  mutable Mutex mutex_;
  Values values_ ABSL_GUARDED_BY(mutex_);
  std::array<Throttle, kDroppedKinds> dropped_lines_ ABSL_GUARDED_BY(mutex_);
  std::array<Throttle, kDroppedKinds> over_share_lines_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace rollcall
