// SPDX-License-Identifier: Apache-2.0
#include "base/throttle.h"

#include <gtest/gtest.h>

namespace rollcall {
namespace {

constexpr int64_t kSecond = 1'000'000'000;
constexpr int64_t kMinute = 60 * kSecond;
constexpr int64_t kStart = 3600 * kSecond;

// How many of `asked` it lets through at that time.
int64_t TakeAt(int64_t now_ns, int64_t asked, Throttle* throttle) {
  int64_t taken = 0;
  for (int64_t i = 0; i < asked; ++i) taken += throttle->Take(now_ns).has_value() ? 1 : 0;
  return taken;
}

TEST(ThrottleTest, LetsTheFirstThroughAtOnce) {
  EXPECT_EQ(Throttle().Take(0), 0u);
  EXPECT_EQ(Throttle().Take(kStart), 0u);
}

TEST(ThrottleTest, LetsOneThroughEachMinuteAndCountsTheOthers) {
  Throttle throttle;
  EXPECT_EQ(throttle.Take(5), 0u);
  EXPECT_EQ(throttle.Take(6), std::nullopt);
  EXPECT_EQ(throttle.Take(kMinute), std::nullopt);
  EXPECT_TRUE(throttle.IsClosed(kMinute + 4));
  EXPECT_FALSE(throttle.IsClosed(kMinute + 5));
  EXPECT_EQ(throttle.Take(kMinute + 5), 2u);
  EXPECT_EQ(throttle.Take(2 * kMinute + 4), std::nullopt);
  EXPECT_EQ(throttle.Take(2 * kMinute + 5), 1u);
  EXPECT_EQ(throttle.Take(9 * kMinute), 0u);
  EXPECT_EQ(throttle.total(), 7u);
}

TEST(ThrottleTest, LetsSomeThroughAtOnceAndNoMore) {
  Throttle throttle(kSecond / 10, 100);
  EXPECT_EQ(TakeAt(kStart, 1000, &throttle), 100);
  EXPECT_EQ(TakeAt(kStart, 1000, &throttle), 0);
}

TEST(ThrottleTest, FractionsOfAnIntervalAddUp) {
  Throttle throttle(kSecond / 10, 100);
  TakeAt(kStart, 1000, &throttle);
  int64_t taken = 0;
  for (int64_t step = 1; step <= 40; ++step) {
    taken += TakeAt(kStart + step * 30'000'000, 1000, &throttle);
  }
  EXPECT_EQ(taken, 12);
}

TEST(ThrottleTest, AnEarlierTimeNeitherSavesNorLoses) {
  Throttle throttle(kSecond, 2);
  TakeAt(kStart, 2, &throttle);
  EXPECT_EQ(throttle.Take(kStart - kSecond), std::nullopt);
  EXPECT_EQ(throttle.Take(kStart + kSecond - 1), std::nullopt);
  EXPECT_EQ(throttle.Take(kStart + kSecond), 2u);
}

TEST(ThrottleTest, ACalmDaySavesNoMoreThanTheFirstOnes) {
  Throttle throttle(kSecond / 10, 100);
  TakeAt(kStart, 1000, &throttle);
  EXPECT_EQ(TakeAt(kStart + 86'400 * kSecond, 1000, &throttle), 100);
}

TEST(ThrottleTest, AnIntervalOfZeroMeansNoLimit) {
  Throttle throttle(0);
  EXPECT_EQ(TakeAt(kStart, 100'000, &throttle), 100'000);
  EXPECT_EQ(TakeAt(kStart - 1, 10, &throttle), 10) << "two threads looked at the clock";
}

}  // namespace
}  // namespace rollcall
