// SPDX-License-Identifier: Apache-2.0
// How many stacks the agent takes: a token bucket. A daemon that asks without end cannot keep the
// processes of this host stopped.
//
// Pure: the caller gives the time. Thread-safe: the streams to several daemons share one.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/mutex.h"
#include "base/throttle.h"

namespace rollcall {

class StackAllowance {
 public:
  static constexpr int64_t kBurst = 256;  // processes, after a calm time

  // `per_minute`: processes; 0: no limit.
  explicit StackAllowance(int64_t per_minute)
      : throttle_(per_minute <= 0 ? 0 : std::max<int64_t>(Throttle::kMinuteNs / per_minute, 1),
                  std::min(kBurst, std::max<int64_t>(per_minute, 1))) {}

  // Whether the agent may take the stacks of one more process.
  bool Take(int64_t now_ns) {
    const MutexLock lock(mutex_);
    return throttle_.Take(now_ns).has_value();
  }

 private:
  Mutex mutex_;
  Throttle throttle_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace rollcall
