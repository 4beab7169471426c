// SPDX-License-Identifier: Apache-2.0
// The wait floor: no reported wait starts before this time. After a pause of the agent or of the
// whole host (a stopped process, a suspend, a stopped virtual machine) the agent cannot distinguish
// a job that waited from a job that was paused too. So all waits restart at the end of the pause.
#pragma once

#include <cstdint>

#include "base/mutex.h"
#include "base/worker.h"

namespace rollcall {

// One instant, on the clocks of this host.
struct HostInstant {
  int64_t steady_ns = 0;
  int64_t boot_ns = 0;   // CLOCK_BOOTTIME: advances during a suspend
  uint64_t counter = 0;  // the CPU's; 0 if the rate of the counter is not constant
};

HostInstant ReadHostInstant();

// Computes the wait floor from samples of the clocks. Pure.
class WaitFloor {
 public:
  // `tick_ns`: the interval between two calls of Update().
  explicit WaitFloor(int64_t tick_ns);

  // Call with ascending instants. Returns the wait floor; 0 if there was no pause.
  int64_t Update(const HostInstant& now);

 private:
  bool WasPaused(const HostInstant& now) const;
  void MeasureCounter(const HostInstant& now);

  const int64_t pause_ns_;  // a longer gap is a pause
  HostInstant newest_, last_pause_;
  double ns_per_tick_ = 0;  // of the counter; 0 if not measured yet
  int64_t floor_ns_ = 0;
};

// Samples the clocks on a separate thread, so that a pause of the whole process counts and a slow
// daemon does not. Thread-safe.
class PauseWatch {
 public:
  // `tick_ns`: the interval between two calls of WaitFloorNs().
  explicit PauseWatch(int64_t tick_ns);
  PauseWatch(const PauseWatch&) = delete;
  PauseWatch& operator=(const PauseWatch&) = delete;

  // Samples the clocks and returns the wait floor. The first call after a pause reports the pause.
  int64_t WaitFloorNs();

 private:
  Mutex mutex_;
  WaitFloor floor_ ABSL_GUARDED_BY(mutex_);
  Worker worker_;
};

}  // namespace rollcall
