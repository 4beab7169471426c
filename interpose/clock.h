// SPDX-License-Identifier: Apache-2.0
// Time stamps for records: the CPU's counter if it is invariant, else CLOCK_MONOTONIC. Two calls of
// clock_gettime would double the cost of a record.
//
// The whole library and the agent use this, in any context, also in signal handlers.
#pragma once

#include <stdint.h>
#include <time.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include "interpose/segment.h"

namespace rollcall {

inline uint64_t ClockNs(clockid_t clock) {
  struct timespec now;
  clock_gettime(clock, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1000000000u + static_cast<uint64_t>(now.tv_nsec);
}

inline uint64_t CounterTicks() {
#if defined(__x86_64__)
  return __builtin_ia32_rdtsc();
#elif defined(__aarch64__)
  uint64_t ticks;
  __asm__ volatile("mrs %0, cntvct_el0" : "=r"(ticks));
  return ticks;
#endif
}

// Whether the counter runs at one rate through frequency changes and sleep states, and alike on all
// cores (Intel SDM 18.17.1). On aarch64 it always does.
inline bool CounterIsInvariant() {
#if defined(__x86_64__)
  unsigned eax, ebx, ecx, edx;
  return __get_cpuid(0x80000007, &eax, &ebx, &ecx, &edx) != 0 && (edx & (1u << 8)) != 0;
#else
  return true;
#endif
}

inline uint64_t Ticks(segment::ClockSource source) {
  return __builtin_expect(source == segment::ClockSource::kCounter, 1) ? CounterTicks()
                                                                       : ClockNs(CLOCK_MONOTONIC);
}

}  // namespace rollcall
