// SPDX-License-Identifier: Apache-2.0
// Clocks of the kernel, in nanoseconds.
#pragma once

#include <time.h>

#include <cstdint>

namespace rollcall {

inline int64_t NsOf(const timespec& time) {
  return time.tv_sec * int64_t{1'000'000'000} + time.tv_nsec;
}

inline int64_t ReadClockNs(clockid_t clock) {
  timespec time;
  clock_gettime(clock, &time);
  return NsOf(time);
}

inline int64_t MonotonicNs() { return ReadClockNs(CLOCK_MONOTONIC); }
inline int64_t UnixNs() { return ReadClockNs(CLOCK_REALTIME); }
// Since the host has started. It counts while the host is suspended, as the clock of a database
// does.
inline int64_t BootNs() { return ReadClockNs(CLOCK_BOOTTIME); }

}  // namespace rollcall
