// SPDX-License-Identifier: Apache-2.0
#include "agent/link/wait_floor.h"

#include <time.h>

#include <algorithm>
#include <chrono>
#include <cmath>

#include "base/durations.h"
#include "base/monotonic_clock.h"
#include "base/steady_clock.h"
#include "interpose/clock.h"

namespace rollcall {
namespace {

constexpr int64_t kPauseTicks = 10;
constexpr int64_t kShortestPause = 2 * kSecond;
// CLOCK_BOOTTIME and CLOCK_MONOTONIC differ only by the time of suspends. A smaller difference is
// the time between the two readings.
constexpr int64_t kSuspended = kSecond / 10;
// Often enough to detect the shortest pause. The uplink looks at the clocks in each tick.
constexpr int64_t kWatchEvery = kShortestPause / 4;

}  // namespace

HostInstant ReadHostInstant() {
  static const bool trusted = CounterIsInvariant();
  HostInstant now;
  now.steady_ns = SteadyNs();
  now.boot_ns = BootNs();
  now.counter = trusted ? CounterTicks() : 0;
  return now;
}

WaitFloor::WaitFloor(int64_t tick_ns)
    : pause_ns_(std::max(kPauseTicks * tick_ns, kShortestPause)) {}

bool WaitFloor::WasPaused(const HostInstant& now) const {
  const int64_t passed = now.steady_ns - newest_.steady_ns;
  if (passed > pause_ns_) return true;
  if (now.boot_ns - newest_.boot_ns - passed > kSuspended) return true;
  if (ns_per_tick_ == 0 || now.counter < newest_.counter) return false;
  const double by_counter = static_cast<double>(now.counter - newest_.counter) * ns_per_tick_;
  return std::abs(by_counter - static_cast<double>(passed)) > static_cast<double>(pause_ns_);
}

// One second is enough to measure the rate so well that a jump of seconds is visible.
void WaitFloor::MeasureCounter(const HostInstant& now) {
  const int64_t passed = now.steady_ns - last_pause_.steady_ns;
  if (passed < kSecond || now.counter <= last_pause_.counter || last_pause_.counter == 0) return;
  const uint64_t ticks = now.counter - last_pause_.counter;
  ns_per_tick_ = static_cast<double>(passed) / static_cast<double>(ticks);
}

int64_t WaitFloor::Update(const HostInstant& now) {
  const bool first = newest_.steady_ns == 0;
  if (!first && WasPaused(now)) {
    floor_ns_ = now.steady_ns;
    ns_per_tick_ = 0;
    last_pause_ = now;
  } else if (first || now.counter < newest_.counter) {
    ns_per_tick_ = 0;
    last_pause_ = now;
  } else {
    MeasureCounter(now);
  }
  newest_ = now;
  return floor_ns_;
}

PauseWatch::PauseWatch(int64_t tick_ns) : floor_(tick_ns) {
  floor_.Update(ReadHostInstant());
  worker_.Repeat([this] {
    WaitFloorNs();
    return std::chrono::nanoseconds(kWatchEvery);
  });
}

int64_t PauseWatch::WaitFloorNs() {
  const MutexLock lock(mutex_);
  return floor_.Update(ReadHostInstant());
}

}  // namespace rollcall
