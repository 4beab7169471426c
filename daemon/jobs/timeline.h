// SPDX-License-Identifier: Apache-2.0
// The daemon's own time, by which it measures every wait and silence.
//
// It follows the steady clock (base/steady_clock.h), so it cannot be set. It stops while the
// daemon itself is suspended: by SIGSTOP, a debugger, a suspend of the host, or a pause of its
// virtual machine. A suspended daemon receives nothing, so that time makes no agent silent and no
// wait longer.
#pragma once

#include <cstdint>

#include "base/mutex.h"

namespace rollcall {

class Timeline {
 public:
  // A running daemon reads the time many times a second: in every round of its loop, and with every
  // tick of an agent. After a longer gap, the daemon was suspended.
  static constexpr int64_t kLongestPauseNs = 2'000'000'000;

  // Nanoseconds, comparable to Unix time. Thread-safe; never goes back.
  int64_t Now() ABSL_LOCKS_EXCLUDED(mutex_);

  // Does what Now() does, with the steady clock's value as an argument.
  int64_t At(int64_t steady_ns) ABSL_LOCKS_EXCLUDED(mutex_);

  // Start of the time since the last suspension, or 0. Waits count from there, because an older
  // wait may be due to the suspension.
  int64_t counts_from_ns() const ABSL_LOCKS_EXCLUDED(mutex_);

  // Converts a time to the wall clock. Wrong if someone has set that clock since. For people only.
  int64_t ToWallTime(int64_t time_ns) ABSL_LOCKS_EXCLUDED(mutex_);
  int64_t WallNow() ABSL_LOCKS_EXCLUDED(mutex_) { return ToWallTime(Now()); }

 private:
  mutable Mutex mutex_;
  int64_t steady_ns_ ABSL_GUARDED_BY(mutex_) = 0;  // at the last call; 0 if there is no call yet
  int64_t now_ns_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t counts_from_ns_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace rollcall
