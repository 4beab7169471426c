// SPDX-License-Identifier: Apache-2.0
// The daemon's own time: time in which the daemon is suspended does not count.
#include "daemon/jobs/timeline.h"

#include <gtest/gtest.h>

namespace rollcall {
namespace {

constexpr int64_t kSecond = 1'000'000'000;
constexpr int64_t kStart = 1'700'000'000 * kSecond;

TEST(TimelineTest, FollowsTheSteadyClock) {
  Timeline timeline;
  EXPECT_EQ(timeline.At(kStart), kStart);
  EXPECT_EQ(timeline.At(kStart + kSecond / 10), kStart + kSecond / 10);
  EXPECT_EQ(timeline.At(kStart + 2 * kSecond), kStart + 2 * kSecond);
  EXPECT_EQ(timeline.counts_from_ns(), 0);
}

TEST(TimelineTest, StopsWhileTheDaemonIsSuspended) {
  Timeline timeline;
  timeline.At(kStart);
  const int64_t after = timeline.At(kStart + 20 * kSecond);
  EXPECT_EQ(after, kStart + Timeline::kLongestPauseNs);
  EXPECT_EQ(timeline.counts_from_ns(), after);
  EXPECT_EQ(timeline.At(kStart + 21 * kSecond), after + kSecond);
  EXPECT_EQ(timeline.counts_from_ns(), after);
}

TEST(TimelineTest, NeverGoesBack) {
  Timeline timeline;
  timeline.At(kStart);
  timeline.At(kStart + kSecond);
  EXPECT_EQ(timeline.At(kStart + kSecond / 2), kStart + kSecond);
  EXPECT_EQ(timeline.At(kStart + 2 * kSecond), kStart + 2 * kSecond);
}

TEST(TimelineTest, ZeroStaysZeroOnTheWallClock) { EXPECT_EQ(Timeline().ToWallTime(0), 0); }

}  // namespace
}  // namespace rollcall
