// SPDX-License-Identifier: Apache-2.0
#include "agent/stacks/stack_allowance.h"

#include <gtest/gtest.h>

namespace rollcall {
namespace {

constexpr int64_t kSecond = 1'000'000'000;
constexpr int64_t kBurstOfOne = StackAllowance::kBurst * 3 / 4;
constexpr int64_t kStart = 1'000 * kSecond;

// How many of `asked` processes the allowance permits at that time.
int64_t TakeAt(int64_t now_ns, int64_t asked, StackAllowance* allowance, uint32_t user = 0) {
  int64_t taken = 0;
  for (int64_t i = 0; i < asked; ++i) taken += allowance->Take({user, 0}, now_ns) ? 1 : 0;
  return taken;
}

TEST(StackAllowanceTest, PermitsABurstAtOnceAndNoMore) {
  StackAllowance allowance(600);
  EXPECT_EQ(TakeAt(kStart, 1000, &allowance), kBurstOfOne);
  EXPECT_EQ(TakeAt(kStart, 1000, &allowance), 0);
}

TEST(StackAllowanceTest, KeepsAShareForOtherUsers) {
  StackAllowance allowance(600);
  TakeAt(kStart, 1000, &allowance, 1);
  EXPECT_EQ(TakeAt(kStart, 8, &allowance, 2), 8);
  for (int64_t second = 1; second <= 600; ++second) {
    const int64_t now_ns = kStart + second * kSecond;
    TakeAt(now_ns, 1000, &allowance, 1);
    EXPECT_EQ(TakeAt(now_ns, 4, &allowance, 2), 4) << second;
  }
}

TEST(StackAllowanceTest, PermitsTheRateAfterTheBurst) {
  StackAllowance allowance(600);
  TakeAt(kStart, 1000, &allowance);
  int64_t taken = 0;
  for (int64_t second = 1; second <= 60; ++second) {
    taken += TakeAt(kStart + second * kSecond, 1000, &allowance);
  }
  EXPECT_EQ(taken, 600);
}

TEST(StackAllowanceTest, FractionsOfAnIntervalAddUp) {
  StackAllowance allowance(600);  // one in 100 ms
  TakeAt(kStart, 1000, &allowance);
  int64_t taken = 0;
  for (int64_t step = 1; step <= 40; ++step) {
    taken += TakeAt(kStart + step * 30'000'000, 1000, &allowance);
  }
  EXPECT_EQ(taken, 12);
}

TEST(StackAllowanceTest, ACalmDaySavesOneBurstOnly) {
  StackAllowance allowance(600);
  TakeAt(kStart, 1000, &allowance);
  EXPECT_EQ(TakeAt(kStart + 86'400 * kSecond, 1000, &allowance), kBurstOfOne);
  EXPECT_EQ(TakeAt(kStart + 86'400 * kSecond, 1000, &allowance), 0);
}

TEST(StackAllowanceTest, ASmallRateHasASmallBurst) {
  StackAllowance allowance(2);
  EXPECT_EQ(TakeAt(kStart, 1000, &allowance), 2);
  EXPECT_EQ(TakeAt(kStart + 29 * kSecond, 1000, &allowance), 0);
  EXPECT_EQ(TakeAt(kStart + 30 * kSecond, 1000, &allowance), 1);
}

TEST(StackAllowanceTest, ZeroMeansNoLimit) {
  StackAllowance allowance(0);
  EXPECT_EQ(TakeAt(kStart, 100'000, &allowance), 100'000);
}

TEST(StackAllowanceTest, WhoseProcessesTakeLongGetsFewer) {
  StackAllowance allowance(600);
  EXPECT_EQ(TakeAt(kStart, 1, &allowance, 1), 1);
  for (int i = 0; i < 3; ++i) allowance.Charge({1}, 60 * kSecond);
  EXPECT_EQ(TakeAt(kStart, 1, &allowance, 1), 0);
  EXPECT_EQ(TakeAt(kStart, 8, &allowance, 2), 8);
}

TEST(StackAllowanceTest, UsualTimesCostNothing) {
  StackAllowance allowance(600);
  for (int i = 0; i < 1000; ++i) allowance.Charge({1}, 2 * kSecond);
  EXPECT_EQ(TakeAt(0, 1000, &allowance, 1), kBurstOfOne);
}

}  // namespace
}  // namespace rollcall
