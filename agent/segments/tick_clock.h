// SPDX-License-Identifier: Apache-2.0
// Converts the clock ticks in a segment to times: on the steady clock (base/steady_clock.h) for a
// process of this host, on the wall clock for a file that is read later.
//
// A tick count keeps its time from one sample to the next. Otherwise every communicator would
// change with every tick of the agent. Where the clocks no longer agree (the host was suspended,
// its wall clock was set, the counter restarted), the newest sample counts, so that the age of a
// wait is right by the reader's clock.
#pragma once

#include <cstdint>

#include "interpose/segment.h"

namespace rollcall {

// One instant on three clocks.
struct ClockSample {
  uint64_t ticks = 0;
  uint64_t monotonic_ns = 0;  // CLOCK_MONOTONIC: stands still during a suspend
  int64_t reported_ns = 0;    // the clock of the times that the agent reports
};

// Samples this host's clocks, with the wall clock as `reported_ns`. Another process may run between
// the readings, so the function samples several times and returns the sample that took least time.
ClockSample SampleClocks();

// Times lie between 1 and this limit (the year 2096), so that a difference of two cannot overflow.
inline constexpr int64_t kLatestNs = 4'000'000'000'000'000'000;

class TickClock {
 public:
  TickClock(segment::ClockSource source, const ClockSample& first);

  // Adjusts the conversion to a new sample. Call it with ascending samples.
  void Update(const ClockSample& sample);

  // Converts ticks to a time; 0 (never) stays 0.
  int64_t ToNs(uint64_t ticks) const;

  // Returns the clock of a process that is `ticks` ahead of this host's clock.
  TickClock Ahead(int64_t ticks) const;

 private:
  void Measure(const ClockSample& now);

  bool is_counter_;
  double ns_per_tick_;      // 0 if not measured yet
  double measured_ns_ = 0;  // duration of that measurement
  int64_t ahead_ = 0;       // offset of the process's clock, in ticks
  ClockSample base_;        // the origin of all times
  ClockSample last_jump_;   // the sample of the last jump of a clock
  ClockSample newest_;
};

// The clocks behind the ticks of this host's processes. Measures the rate of the counter by its own
// samples only, because a process in a time namespace has another CLOCK_MONOTONIC.
class HostClock {
 public:
  HostClock();  // blocks for about 5 ms, to measure the counter

  // Call it once for each tick.
  void Sample();

  // `ahead_ns`: offset of the process's CLOCK_MONOTONIC over the agent's.
  TickClock ClockFor(segment::ClockSource source, int64_t ahead_ns) const;

 private:
  TickClock counter_, monotonic_;
};

}  // namespace rollcall
