// SPDX-License-Identifier: Apache-2.0
#include "daemon/jobs/tick_gaps.h"

#include <gtest/gtest.h>

#include "base/durations.h"

namespace rollcall {
namespace {

constexpr int64_t kNow = 1000 * kSecond;

TEST(TickGapsTest, TicksInTimeAreNotLate) {
  TickGaps gaps;
  for (int i = 0; i < 100; ++i) gaps.Add(kNow, kSecond / 10);
  EXPECT_EQ(gaps.Usual(kNow, 0.9), 0);
}

TEST(TickGapsTest, OneLateAgentOfManyIsNotUsual) {
  TickGaps gaps;
  for (int i = 0; i < 100; ++i) gaps.Add(kNow, i < 5 ? 20 * kSecond : 0);
  EXPECT_EQ(gaps.Usual(kNow, 0.9), 0);
}

TEST(TickGapsTest, SaysHowLateTheUsualTickIs) {
  TickGaps gaps;
  for (int i = 0; i < 100; ++i) gaps.Add(kNow, i < 30 ? 3 * kSecond : 0);
  EXPECT_EQ(gaps.Usual(kNow, 0.5), 0);
  EXPECT_EQ(gaps.Usual(kNow, 0.9), 4 * kSecond);
}

TEST(TickGapsTest, LatenessHasALimit) {
  TickGaps gaps;
  for (int i = 0; i < 100; ++i) gaps.Add(kNow, 3600 * kSecond);
  EXPECT_EQ(gaps.Usual(kNow, 0.9), TickGaps::kMostNs);
}

TEST(TickGapsTest, ForgetsWhatWasLateLongAgo) {
  TickGaps gaps;
  for (int i = 0; i < 100; ++i) gaps.Add(kNow, 3 * kSecond);
  EXPECT_EQ(gaps.Usual(kNow + 19 * kSecond, 0.9), 4 * kSecond);
  EXPECT_EQ(gaps.Usual(kNow + 20 * kSecond, 0.9), 0);
}

TEST(TickGapsTest, AFewTicksDecideNothing) {
  TickGaps gaps;
  for (int i = 0; i < 19; ++i) gaps.Add(kNow, 3 * kSecond);
  EXPECT_EQ(gaps.Usual(kNow, 0.9), 0);
}

}  // namespace
}  // namespace rollcall
