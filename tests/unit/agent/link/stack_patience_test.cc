// SPDX-License-Identifier: Apache-2.0
#include "agent/link/stack_patience.h"

#include <gtest/gtest.h>

namespace rollcall {
namespace {

constexpr Payer kOne = {1000, 0}, kOther = {1001, 0}, kContainer = {0, 7};

TEST(StackPatienceTest, AProcessThatLetTheAgentWaitGetsLittleTime) {
  StackPatience patience;
  EXPECT_EQ(patience.TimeoutNs(kOne, 0), StackPatience::kLongNs);
  patience.CountTimeout(kOne, 0);
  EXPECT_EQ(patience.TimeoutNs(kOne, 1), StackPatience::kShortNs);
  EXPECT_EQ(patience.TimeoutNs(kOther, 1), StackPatience::kLongNs);
  EXPECT_EQ(patience.TimeoutNs(kContainer, 1), StackPatience::kLongNs);
  patience.CountTimeout(kOne, 5);
  EXPECT_EQ(patience.TimeoutNs(kOne, StackPatience::kShortForNs), StackPatience::kShortNs);
  EXPECT_EQ(patience.TimeoutNs(kOne, StackPatience::kShortForNs + 5), StackPatience::kLongNs);
}

}  // namespace
}  // namespace rollcall
