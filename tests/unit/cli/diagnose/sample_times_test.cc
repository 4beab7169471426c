// SPDX-License-Identifier: Apache-2.0
#include "cli/diagnose/sample_times.h"

#include <gtest/gtest.h>

#include "base/durations.h"

namespace rollcall {
namespace {

constexpr int64_t kMs = kSecond / 1000;
constexpr SamplePlan kPlan = {6 * kSecond, 8600 * kMs, 2};

TEST(SampleTimesTest, OnAQuietHostTheyAreAsFarApartAsAsked) {
  EXPECT_EQ(SampleDueNs(kPlan, 200 * kMs, 1, 50 * kMs, 400 * kMs), 3200 * kMs);
  EXPECT_EQ(SampleDueNs(kPlan, 200 * kMs, 2, 50 * kMs, 3400 * kMs), 6200 * kMs);
}

TEST(SampleTimesTest, OnABusyHostTheLastOneHasItsTime) {
  EXPECT_EQ(SampleDueNs(kPlan, 3 * kSecond, 2, kSecond, 6 * kSecond), 7100 * kMs);
  EXPECT_EQ(SampleDueNs(kPlan, 3 * kSecond, 1, kSecond, 4 * kSecond), 5050 * kMs);
}

TEST(SampleTimesTest, ALateSampleIsLeftOutBeforeTheLastOne) {
  EXPECT_EQ(SampleDueNs(kPlan, 3 * kSecond, 1, 2 * kSecond, 5 * kSecond), std::nullopt);
  EXPECT_EQ(SampleDueNs(kPlan, 3 * kSecond, 2, 2 * kSecond, 5 * kSecond), 5600 * kMs);
}

TEST(SampleTimesTest, WhereNoTimeIsLeftTheLastOneIsDueAtOnce) {
  EXPECT_EQ(SampleDueNs(kPlan, 8 * kSecond, 2, 4 * kSecond, 8500 * kMs), 8 * kSecond);
}

}  // namespace
}  // namespace rollcall
