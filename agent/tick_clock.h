// Turns the ticks in a segment into times since the Unix epoch.
//
// The same tick stays the same time from one look to the next, or every tick of the agent would
// find every communicator changed. But where the clocks do not agree any more (the host slept, its
// time was set, the counter began anew), the newest look counts: then what is told is since when
// people wait by the clock that asks.
#pragma once

#include <cstdint>

#include "interpose/segment.h"

namespace rollcall {

// One instant on three clocks.
struct ClockLook {
  uint64_t ticks = 0;
  uint64_t monotonic_ns = 0;  // stands while the host sleeps
  int64_t unix_ns = 0;        // does not
};

// This host's clocks now. Other work may come between the readings: the closest of a few is taken.
ClockLook LookAtClocks();

// Times are kept between 1 and this (the year 2096), so that nobody who subtracts two can overflow.
inline constexpr int64_t kLatestNs = 4'000'000'000'000'000'000;

class TickClock {
 public:
  TickClock(segment::ClockSource source, const ClockLook& first);

  // The clocks stand like this now; looks come in order.
  void Note(const ClockLook& look);

  // 0: never, on both.
  int64_t ToUnixNs(uint64_t ticks) const;

 private:
  void Measure(const ClockLook& now);

  bool is_counter_;
  double ns_per_tick_;      // 0: not known yet
  double measured_ns_ = 0;  // the time over which that was measured
  ClockLook base_;          // what times are counted from
  ClockLook calm_;          // since then no clock has jumped
  ClockLook newest_;
};

}  // namespace rollcall
