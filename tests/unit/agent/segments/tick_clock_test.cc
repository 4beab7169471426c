// SPDX-License-Identifier: Apache-2.0
#include "agent/segments/tick_clock.h"

#include <gtest/gtest.h>

#include "base/steady_clock.h"
#include "interpose/clock.h"

namespace rollcall {
namespace {

constexpr double kTicksPerNs = 2.5;
constexpr int64_t kSecond = 1'000'000'000;
constexpr int64_t kClose = 1'000'000;

// A host whose clocks the test sets.
class TickClockTest : public testing::Test {
 protected:
  // Advances all clocks, and the counter at `rate` times its normal rate.
  void Pass(double seconds, double rate = 1) {
    const double ns = seconds * 1e9;
    host_.ticks += static_cast<uint64_t>(ns * kTicksPerNs * rate);
    host_.monotonic_ns += static_cast<uint64_t>(ns);
    host_.reported_ns += static_cast<int64_t>(ns);
  }
  // Advances the clocks and samples them each second, as an agent does.
  void PassWithSamples(int seconds, double rate = 1) {
    for (int i = 0; i < seconds; ++i) {
      Pass(1, rate);
      clock_.Update(host_);
    }
  }
  // The age of the tick by the reported clock.
  int64_t Ago(uint64_t ticks) const { return host_.reported_ns - clock_.ToNs(ticks); }

  ClockSample host_ = {7'000'000'000'000, 3000 * uint64_t{kSecond}, 1'700'000'000 * kSecond};
  TickClock clock_{segment::ClockSource::kCounter, host_};
};

TEST_F(TickClockTest, ConvertsATickToItsTime) {
  PassWithSamples(10);
  const uint64_t then = host_.ticks;
  PassWithSamples(5);
  Pass(0.5);
  EXPECT_NEAR(Ago(then), 5.5 * kSecond, kClose);
  EXPECT_EQ(clock_.ToNs(0), 0);
}

TEST_F(TickClockTest, ATickKeepsItsTime) {
  PassWithSamples(16);
  const uint64_t then = host_.ticks;
  const int64_t first = clock_.ToNs(then);
  for (int i = 0; i < 10; ++i) {
    Pass(1);
    ClockSample late = host_;  // another process ran between the readings
    late.reported_ns += i % 2 == 0 ? 9'000'000 : -9'000'000;
    clock_.Update(late);
    EXPECT_EQ(clock_.ToNs(then), first);
  }
}

TEST_F(TickClockTest, ASuspendIsNotAWait) {
  PassWithSamples(20);
  const uint64_t before = host_.ticks;
  PassWithSamples(3);
  host_.reported_ns += 3600 * kSecond;
  PassWithSamples(2);
  EXPECT_NEAR(Ago(before), 5 * kSecond, 30'000'000);
}

TEST_F(TickClockTest, ACounterThatRanDuringASuspendKeepsItsRate) {
  PassWithSamples(20);
  host_.reported_ns += 3600 * kSecond;
  host_.ticks += static_cast<uint64_t>(3600 * kSecond * kTicksPerNs);
  PassWithSamples(1);
  const uint64_t then = host_.ticks;
  PassWithSamples(100);
  EXPECT_NEAR(Ago(then), 100 * kSecond, kClose);
}

TEST_F(TickClockTest, ACounterMayRestart) {
  PassWithSamples(20);
  host_.reported_ns += 60 * kSecond;
  host_.ticks = 1000;
  PassWithSamples(2);
  const uint64_t then = host_.ticks;
  PassWithSamples(10);
  EXPECT_NEAR(Ago(then), 10 * kSecond, kClose);
}

TEST_F(TickClockTest, SettingTheClockMovesAllTimes) {
  PassWithSamples(20);
  const uint64_t then = host_.ticks;
  PassWithSamples(2);
  for (const int64_t set : {-5 * kSecond, 7 * kSecond}) {
    host_.reported_ns += set;
    clock_.Update(host_);
    EXPECT_NEAR(Ago(then), 2 * kSecond, kClose) << set;
  }
}

TEST_F(TickClockTest, AMigratedMachineHasACounterOfAnotherRate) {
  PassWithSamples(20);
  PassWithSamples(3, 1.3);
  const uint64_t then = host_.ticks;
  PassWithSamples(50, 1.3);
  EXPECT_NEAR(Ago(then), 50 * kSecond, 20'000'000);
}

TEST_F(TickClockTest, TheFirstSampleAfterASuspendIsRight) {
  Pass(1000);
  host_.reported_ns += 7200 * kSecond;
  host_.ticks += static_cast<uint64_t>(7200 * kSecond * kTicksPerNs);
  Pass(1000);
  clock_.Update(host_);
  EXPECT_NEAR(Ago(host_.ticks), 0, kClose);
  const uint64_t then = host_.ticks;
  PassWithSamples(10);
  EXPECT_NEAR(Ago(then), 10 * kSecond, kClose);
}

TEST_F(TickClockTest, WithoutACounterTicksAreNanoseconds) {
  TickClock clock(segment::ClockSource::kMonotonic,
                  {host_.monotonic_ns, host_.monotonic_ns, host_.reported_ns});
  const uint64_t then = host_.monotonic_ns;
  Pass(30);
  host_.reported_ns += 3600 * kSecond;  // a suspend
  clock.Update(host_);
  EXPECT_NEAR(static_cast<double>(host_.reported_ns - clock.ToNs(then)), 30 * kSecond, kClose);
}

TEST_F(TickClockTest, SubtractsTheOffsetOfATimeNamespace) {
  TickClock clock(segment::ClockSource::kMonotonic, host_);
  constexpr int64_t kAhead = 100'000 * kSecond;
  const uint64_t then = host_.monotonic_ns + kAhead;
  Pass(30);
  clock.Update(host_);
  EXPECT_NEAR(static_cast<double>(host_.reported_ns - clock.Ahead(kAhead).ToNs(then)), 30 * kSecond,
              kClose);
  EXPECT_EQ(clock.Ahead(kAhead).ToNs(0), 0) << "never stays never";
}

TEST(HostClockTest, ConvertsTheCounterToSteadyTimeAtOnce) {
  const HostClock clock;
  const int64_t before_ns = SteadyNs();
  const uint64_t ticks = CounterTicks();
  const int64_t after_ns = SteadyNs();
  const int64_t steady_ns = clock.ClockFor(segment::ClockSource::kCounter, 0).ToNs(ticks);
  EXPECT_GT(steady_ns, before_ns - 50'000'000);
  EXPECT_LT(steady_ns, after_ns + 50'000'000);
}

TEST(SampleClocksTest, SamplesAgreeWithTheClocksOfThisHost) {
  const uint64_t before = ClockNs(CLOCK_MONOTONIC);
  const ClockSample sample = SampleClocks();
  EXPECT_GE(sample.monotonic_ns, before);
  EXPECT_LE(sample.monotonic_ns, ClockNs(CLOCK_MONOTONIC));
  EXPECT_LE(sample.reported_ns, static_cast<int64_t>(ClockNs(CLOCK_REALTIME)));
}

}  // namespace
}  // namespace rollcall
