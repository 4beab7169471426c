// SPDX-License-Identifier: Apache-2.0
#include "interpose/recorder.h"

namespace rollcall {

Recorder recorder;

void SetClock(segment::ClockPair* pair) {
  pair->ticks.store(Now(), std::memory_order_relaxed);
  pair->realtime_ns.store(ClockNs(CLOCK_REALTIME), std::memory_order_relaxed);
  pair->monotonic_ns.store(ClockNs(CLOCK_MONOTONIC), std::memory_order_release);
}

void RenewClock() {
  segment::SegmentHeader* header = recorder.header.load(std::memory_order_acquire);
  if (header == nullptr) return;
  const uint64_t now = ClockNs(CLOCK_MONOTONIC);
  if (now - header->last_clock.monotonic_ns.load(std::memory_order_relaxed) < 1000000000u) return;
  SetClock(&header->last_clock);
}

}  // namespace rollcall
