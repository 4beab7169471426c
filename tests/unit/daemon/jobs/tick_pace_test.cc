// SPDX-License-Identifier: Apache-2.0
// How often agents shall send ticks, and how late the daemon itself is.
#include "daemon/jobs/tick_pace.h"

#include <gtest/gtest.h>

#include "base/durations.h"
#include "daemon/jobs/own_lateness.h"

namespace rollcall {
namespace {

constexpr int64_t kMillisecond = kSecond / 1000;

// A second in which every agent sends at the pace, and a tick costs that much.
int64_t Second(int agents, double microseconds, TickPace* pace, int64_t lag_ns = 0) {
  const auto ticks = static_cast<uint64_t>(agents * (1e9 / static_cast<double>(pace->tick_ns())));
  return pace->Update({agents, ticks, static_cast<double>(ticks) * microseconds / 1e6, lag_ns});
}

int64_t After(int seconds, int agents, double microseconds, TickPace* pace) {
  for (int i = 0; i < seconds; ++i) Second(agents, microseconds, pace);
  return pace->tick_ns();
}

TEST(TickPaceTest, AFewAgentsTickTenTimesASecond) {
  TickPace pace(1);
  EXPECT_EQ(After(20, 100, 80, &pace), 100 * kMillisecond);
}

TEST(TickPaceTest, ManyAgentsTickSeldomer) {
  TickPace pace(1);
  EXPECT_EQ(After(20, 12'500, 70, &pace), kSecond);
}

TEST(TickPaceTest, CostlyTicksComeSeldomer) {
  TickPace pace(1);
  EXPECT_EQ(After(20, 1'000, 150, &pace), 200 * kMillisecond);
}

TEST(TickPaceTest, TheIntervalHasALimit) {
  TickPace pace(1);
  EXPECT_EQ(After(20, 1'000'000, 1000, &pace), TickPace::kLongestUsualNs);
}

TEST(TickPaceTest, WhileTicksWaitTheIntervalGrowsBeyondTheUsualLimit) {
  TickPace pace(1);
  After(20, 1'000'000, 1000, &pace);
  for (int i = 0; i < 20; ++i) Second(1'000'000, 1000, &pace, 2 * kSecond);
  EXPECT_EQ(pace.tick_ns(), TickPace::kLongestNs);
}

TEST(TickPaceTest, APaceThatWaitingTicksBroughtAboutStaysForAMinute) {
  TickPace pace(1);
  After(20, 1'000'000, 1000, &pace);
  for (int i = 0; i < 20; ++i) Second(1'000'000, 1000, &pace, 2 * kSecond);
  EXPECT_EQ(After(59, 1'000'000, 1000, &pace), TickPace::kLongestNs);
  EXPECT_LT(After(1, 1'000'000, 1000, &pace), TickPace::kLongestNs);
}

TEST(TickPaceTest, ADaemonThatFallsBehindAsksForFewerTicks) {
  TickPace pace(1);
  After(5, 100, 80, &pace);
  EXPECT_GT(Second(100, 80, &pace, 2 * kSecond), 100 * kMillisecond);
}

TEST(TickPaceTest, OneQuietSecondDoesNotQuickenThePace) {
  TickPace pace(1);
  After(5, 12'500, 70, &pace);
  EXPECT_EQ(Second(10, 70, &pace), kSecond);
  EXPECT_EQ(After(60, 10, 70, &pace), 100 * kMillisecond);
}

TEST(TickPaceTest, SecondsWithoutTicksChangeNothing) {
  TickPace pace(1);
  EXPECT_EQ(pace.Update({0, 0, 0.5, 0}), 100 * kMillisecond);
  EXPECT_EQ(pace.Update({100, 0, 0.5, 0}), 100 * kMillisecond);
}

TEST(OwnLatenessTest, ADaemonThatWakesInTimeIsNotLate) {
  OwnLateness lateness(10 * kSecond);
  for (int64_t i = 0; i < 100; ++i) {
    lateness.Add(i * 100 * kMillisecond, i * 100 * kMillisecond + kMillisecond);
  }
  EXPECT_EQ(lateness.Total(), 0);
}

TEST(OwnLatenessTest, AddsUpLatenessAndForgetsIt) {
  OwnLateness lateness(10 * kSecond);
  lateness.Add(1 * kSecond, 3 * kSecond);
  lateness.Add(4 * kSecond, 5 * kSecond);
  EXPECT_EQ(lateness.Total(), 3 * kSecond);
  lateness.Add(14 * kSecond, 14 * kSecond);
  EXPECT_EQ(lateness.Total(), kSecond);
}

}  // namespace
}  // namespace rollcall
