// SPDX-License-Identifier: Apache-2.0
// Turns the ticks in a segment into times: of the steady clock for a process that lives on this
// host (proto/steady_clock.h), of the wall clock for a file that somebody reads later.
//
// The same tick stays the same time from one sample to the next, or every tick of the agent would
// find every communicator changed. But where the clocks do not agree any more (the host slept, its
// time was set, the counter began anew), the newest sample counts: the agent then reports since
// when people wait by the clock of the reader.
#pragma once

#include <cstdint>

#include "interpose/segment.h"

namespace rollcall {

// One instant on three clocks.
struct ClockSample {
  uint64_t ticks = 0;
  uint64_t monotonic_ns = 0;  // stands while the host sleeps
  int64_t reported_ns = 0;    // the clock of the times that the agent reports
};

// This host's clocks now, the wall clock or the steady one as the third. Other work may come between
// the readings: the closest of a few is taken.
ClockSample SampleClocks();

// Times are kept between 1 and this (the year 2096), so that nobody who subtracts two can overflow.
inline constexpr int64_t kLatestNs = 4'000'000'000'000'000'000;

class TickClock {
 public:
  TickClock(segment::ClockSource source, const ClockSample& first);

  // The clocks stand like this now; samples come in order.
  void Update(const ClockSample& sample);

  // 0: never, on both.
  int64_t ToNs(uint64_t ticks) const;

  // The same for a process whose ticks are ahead of this host's by so many.
  TickClock Ahead(int64_t ticks) const;

 private:
  void Measure(const ClockSample& now);

  bool is_counter_;
  double ns_per_tick_;      // 0: not known yet
  double measured_ns_ = 0;  // the time over which that was measured
  int64_t ahead_ = 0;       // ticks that the process's clock is ahead
  ClockSample base_;        // what times are counted from
  ClockSample calm_;        // since then no clock has jumped
  ClockSample newest_;
};

// The clocks of this host, as the ticks of its processes are counted by. Knows the counter's rate
// from its own samples alone: a process in a time namespace has another CLOCK_MONOTONIC.
class HostClock {
 public:
  HostClock();  // takes some milliseconds

  // Call it once in each tick.
  void Sample();

  // `ahead_ns`: how far the process's CLOCK_MONOTONIC is ahead of this one's.
  TickClock ClockFor(segment::ClockSource source, int64_t ahead_ns) const;

 private:
  TickClock counter_, monotonic_;
};

}  // namespace rollcall
