// SPDX-License-Identifier: Apache-2.0
// The clock of the wire. Agents and the daemon measure every wait with it.
//
// The clock shows values like Unix time, because it takes the wall clock once, at its first use in
// the process. From then on it follows CLOCK_MONOTONIC: it does not change when the wall clock is
// set, and it stands still while the host is suspended. The steady clocks of two processes differ
// by a constant.
#pragma once

#include <cstdint>

#include "base/monotonic_clock.h"

namespace rollcall {

// The steady time, in nanoseconds.
inline int64_t SteadyNs() {
  static const int64_t offset_ns = UnixNs() - MonotonicNs();
  return MonotonicNs() + offset_ns;
}

// Converts a steady time to wall clock time, for people only. 0 (never) stays 0.
inline int64_t WallNs(int64_t steady_ns) {
  return steady_ns == 0 ? 0 : steady_ns + (UnixNs() - SteadyNs());
}

}  // namespace rollcall
