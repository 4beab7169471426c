// SPDX-License-Identifier: Apache-2.0
#include "agent/segments/tick_clock.h"

#include <algorithm>
#include <cmath>

#include "base/steady_clock.h"
#include "interpose/clock.h"

namespace rollcall {
namespace {

// A larger difference between two clocks is a jump. A process that runs between two readings causes
// a smaller one.
constexpr double kJumpNs = 20e6;
constexpr double kMuchBetter = 16;
constexpr long kFirstMeasureNs = 5'000'000;

double Between(uint64_t from, uint64_t to) {
  return to >= from ? static_cast<double>(to - from) : -static_cast<double>(from - to);
}

double Between(int64_t from, int64_t to) {
  return static_cast<double>(to) - static_cast<double>(from);
}

ClockSample SampleSteadyClocks() {
  static const int64_t offset_ns = SteadyNs() - static_cast<int64_t>(ClockNs(CLOCK_MONOTONIC));
  ClockSample sample = SampleClocks();
  sample.reported_ns = static_cast<int64_t>(sample.monotonic_ns) + offset_ns;
  return sample;
}

}  // namespace

ClockSample SampleClocks() {
  constexpr int kTries = 5;
  constexpr uint64_t kCloseNs = 20'000;
  ClockSample best;
  uint64_t best_ns = UINT64_MAX;
  for (int i = 0; i < kTries && best_ns > kCloseNs; ++i) {
    const uint64_t before = ClockNs(CLOCK_MONOTONIC);
    const uint64_t ticks = CounterTicks();
    const uint64_t reported_ns = ClockNs(CLOCK_REALTIME);
    const uint64_t took = ClockNs(CLOCK_MONOTONIC) - before;
    if (took >= best_ns) continue;
    best_ns = took;
    best = {ticks, before, static_cast<int64_t>(reported_ns)};
  }
  return best;
}

TickClock::TickClock(segment::ClockSource source, const ClockSample& first)
    : is_counter_(source == segment::ClockSource::kCounter),
      ns_per_tick_(is_counter_ ? 0 : 1),
      base_(first),
      last_jump_(first),
      newest_(first) {
  if (!is_counter_) base_.ticks = last_jump_.ticks = newest_.ticks = first.monotonic_ns;
}

void TickClock::Update(const ClockSample& sample) {
  ClockSample now = sample;
  if (!is_counter_) now.ticks = now.monotonic_ns;
  const double passed = Between(newest_.monotonic_ns, now.monotonic_ns);
  const double by_ticks = ns_per_tick_ * Between(newest_.ticks, now.ticks);
  const bool set_or_slept =
      std::abs(Between(newest_.reported_ns, now.reported_ns) - passed) > kJumpNs;
  const bool other_rate = measured_ns_ > 0 && std::abs(by_ticks - passed) > kJumpNs;
  const bool jumped = set_or_slept || other_rate;
  if (is_counter_ && (!jumped || ns_per_tick_ == 0)) Measure(now);
  if (jumped) {
    last_jump_ = now;
    measured_ns_ = 0;  // the next sample measures again
  }
  newest_ = now;
  const double reported = static_cast<double>(ToNs(now.ticks));
  if (std::abs(reported - static_cast<double>(now.reported_ns)) > kJumpNs) base_ = now;
}

// Measures again only over a much longer time, because each measurement moves all times a little.
void TickClock::Measure(const ClockSample& now) {
  const double passed = Between(last_jump_.monotonic_ns, now.monotonic_ns);
  const double ticks = Between(last_jump_.ticks, now.ticks);
  if (passed <= 0 || ticks <= 0 || passed / kMuchBetter < measured_ns_) return;
  const double rate = passed / ticks;
  if (rate < 1e-3 || rate > 1e3) return;
  ns_per_tick_ = rate;
  measured_ns_ = passed;
}

int64_t TickClock::ToNs(uint64_t ticks) const {
  if (ticks == 0) return 0;
  ticks -= static_cast<uint64_t>(ahead_);
  const double delta = Between(base_.ticks, ticks) * ns_per_tick_;
  constexpr auto kMost = static_cast<double>(kLatestNs);
  const int64_t whole = delta > kMost || delta < -kMost ? 0 : static_cast<int64_t>(delta);
  return std::clamp<int64_t>(base_.reported_ns + whole, 1, kLatestNs);
}

TickClock TickClock::Ahead(int64_t ticks) const {
  TickClock other = *this;
  other.ahead_ += ticks;
  return other;
}

HostClock::HostClock()
    : counter_(segment::ClockSource::kCounter, SampleSteadyClocks()),
      monotonic_(segment::ClockSource::kMonotonic, SampleSteadyClocks()) {
  const timespec pause = {0, kFirstMeasureNs};
  nanosleep(&pause, nullptr);
  Sample();
}

void HostClock::Sample() {
  const ClockSample sample = SampleSteadyClocks();
  counter_.Update(sample);
  monotonic_.Update(sample);
}

TickClock HostClock::ClockFor(segment::ClockSource source, int64_t ahead_ns) const {
  return source == segment::ClockSource::kCounter ? counter_ : monotonic_.Ahead(ahead_ns);
}

}  // namespace rollcall
