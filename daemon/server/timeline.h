// SPDX-License-Identifier: Apache-2.0
// The daemon's own time, by which it measures every wait and silence.
//
// It follows the steady clock (proto/steady_clock.h), so that nobody can set it, and stands still
// while the daemon itself is held: by SIGSTOP, a debugger, a suspend, a pause of its virtual
// machine. What nobody could hear in that time makes nobody silent, and no wait longer.
#pragma once

#include <cstdint>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace rollcall {

class Timeline {
 public:
  // A daemon that lives asks for the time many times a second: in every round of its loop, and with
  // every tick of an agent. If nobody has asked for longer than this, the daemon was held.
  static constexpr int64_t kLongestPauseNs = 2'000'000'000;

  // Nanoseconds that read like Unix time. Thread-safe; never goes back.
  int64_t Now() ABSL_LOCKS_EXCLUDED(mutex_);

  // Now(), with what the steady clock shows as an argument.
  int64_t At(int64_t steady_ns) ABSL_LOCKS_EXCLUDED(mutex_);

  // Since when the time runs without a stop; 0: it never stood still. Waits count from there: what
  // is older may have been held together with the daemon.
  int64_t counts_from_ns() const ABSL_LOCKS_EXCLUDED(mutex_);

  // What the wall clock showed at that time, as far as it was not set since. For people only.
  int64_t ToWallTime(int64_t time_ns) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  mutable absl::Mutex mutex_;
  int64_t steady_ns_ ABSL_GUARDED_BY(mutex_) = 0;  // as of the last look; 0: there was none
  int64_t now_ns_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t counts_from_ns_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace rollcall
