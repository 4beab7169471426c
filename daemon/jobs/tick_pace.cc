// SPDX-License-Identifier: Apache-2.0
#include "daemon/jobs/tick_pace.h"

#include <algorithm>
#include <iterator>

namespace rollcall {
namespace {

constexpr int64_t kSteps[] = {
    TickPace::kShortestNs,     200'000'000,   500'000'000,         1'000'000'000,
    TickPace::kLongestUsualNs, 3'000'000'000, TickPace::kLongestNs};
constexpr double kWeight = 0.3;  // of the newest measurement
constexpr int kCallsUntilFaster = 10;
// An interval that only ticks which waited have brought about was needed: the next shorter one is
// tried seldom.
constexpr int kCallsUntilUsual = 60;
// An agent that waits for the daemon cannot send more often than the daemon applies.
constexpr int64_t kLagAllowedNs = 500'000'000;

int64_t StepFor(double wanted_ns) {
  for (const int64_t step : kSteps) {
    if (static_cast<double>(step) >= wanted_ns) return step;
  }
  return TickPace::kLongestNs;
}

}  // namespace

int64_t TickPace::Update(const Load& load) {
  if (load.ticks > 0) {
    const double measured = load.cpu_seconds / static_cast<double>(load.ticks);
    seconds_per_tick_ = seconds_per_tick_ == 0
                            ? measured
                            : seconds_per_tick_ + kWeight * (measured - seconds_per_tick_);
  }
  double wanted_ns = std::min(load.agents * seconds_per_tick_ / cores_ * 1e9,
                              static_cast<double>(kLongestUsualNs));
  if (load.lag_ns > kLagAllowedNs) {
    wanted_ns = std::max(wanted_ns, static_cast<double>(tick_ns_) * 1.5);
  }
  const int64_t step = StepFor(wanted_ns);
  if (step >= tick_ns_) {
    calm_ = 0;
    tick_ns_ = step;
  } else if (++calm_ >= (tick_ns_ > kLongestUsualNs ? kCallsUntilUsual : kCallsUntilFaster)) {
    calm_ = 0;
    // One step at a time: the cost of a tick grows with what it carries.
    tick_ns_ = *(std::lower_bound(std::begin(kSteps), std::end(kSteps), tick_ns_) - 1);
  }
  return tick_ns_;
}

}  // namespace rollcall
