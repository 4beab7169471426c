// SPDX-License-Identifier: Apache-2.0
// The clock of the wire. Agents and the daemon measure every wait with it.
//
// The clock shows values like Unix time, because it takes the wall clock once, at its first use in
// the process. From then on it follows CLOCK_MONOTONIC: it does not change when the wall clock is
// set, and it stands still while the host is suspended. The steady clocks of two processes differ
// by a constant.
#pragma once

#include <time.h>

#include <cstdint>

namespace rollcall {

// The steady time, in nanoseconds.
inline int64_t SteadyNs() {
  const auto read = [](clockid_t clock) {
    timespec time;
    clock_gettime(clock, &time);
    return time.tv_sec * int64_t{1'000'000'000} + time.tv_nsec;
  };
  static const int64_t offset_ns = read(CLOCK_REALTIME) - read(CLOCK_MONOTONIC);
  return read(CLOCK_MONOTONIC) + offset_ns;
}

// Converts a steady time to wall clock time, for people only. 0 (never) stays 0.
inline int64_t WallNs(int64_t steady_ns) {
  if (steady_ns == 0) return 0;
  timespec time;
  clock_gettime(CLOCK_REALTIME, &time);
  const int64_t wall_ns = time.tv_sec * int64_t{1'000'000'000} + time.tv_nsec;
  return steady_ns + (wall_ns - SteadyNs());
}

}  // namespace rollcall
