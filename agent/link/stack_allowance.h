// SPDX-License-Identifier: Apache-2.0
// How many stacks the agent takes: a token bucket. A daemon that asks without end cannot keep the
// processes of this host stopped.
//
// Pure: the caller gives the time. Thread-safe: the streams to several daemons share one.
#pragma once

#include <cstdint>

#include "base/mutex.h"

namespace rollcall {

class StackAllowance {
 public:
  static constexpr int64_t kBurst = 256;  // processes, after a calm time

  // `per_minute`: processes; 0: no limit.
  explicit StackAllowance(int64_t per_minute);

  // Whether the agent may take the stacks of one more process. Call it with ascending times.
  bool Take(int64_t now_ns);

 private:
  void Refill(int64_t now_ns) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const int64_t interval_ns_;  // from one token to the next; 0: no limit
  const int64_t burst_;
  Mutex mutex_;
  int64_t tokens_ ABSL_GUARDED_BY(mutex_);
  int64_t refilled_ns_ ABSL_GUARDED_BY(mutex_) = 0;  // up to this time; 0: never
};

}  // namespace rollcall
