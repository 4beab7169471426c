// SPDX-License-Identifier: Apache-2.0
#include "daemon/model/host_clocks.h"

#include <gtest/gtest.h>

namespace rollcall {
namespace {

TEST(HostClocksTest, TheFastestMessageGivesTheDifference) {
  HostClocks clocks;
  EXPECT_EQ(clocks.Update("a", 1000, 5000), 4000);
  EXPECT_EQ(clocks.Update("a", 2000, 5500), 3500);
  EXPECT_EQ(clocks.Update("a", 3000, 9000), 3500);
  EXPECT_EQ(clocks.Update("b", 3000, 2000), -1000);
}

TEST(HostClocksTest, KnowsTheFirstEstimateUntilTheClockJumps) {
  HostClocks clocks;
  EXPECT_EQ(clocks.FirstOffset("a"), 0);
  for (int i = 0; i < 300; ++i) clocks.Update("a", i, i + 400 - i);
  EXPECT_EQ(clocks.FirstOffset("a"), 400);
  clocks.Update("a", 300, 60'000'000'000);
  EXPECT_EQ(clocks.FirstOffset("a"), 60'000'000'000 - 300);
}

TEST(HostClocksTest, FollowsAClockThatStoppedAtOnce) {
  HostClocks clocks;
  for (int i = 0; i < 300; ++i) clocks.Update("a", i, i + 100);
  const int64_t suspended = 60'000'000'000;
  EXPECT_EQ(clocks.Update("a", 300, 400 + suspended), 100 + suspended);
}

TEST(HostClocksTest, ALateMessageMakesNoTimeOlder) {
  HostClocks clocks;
  for (int i = 0; i < 10; ++i) clocks.Update("a", i, i + 100);
  EXPECT_GE(clocks.Update("a", 10, 5'000'000'000), 100);
  EXPECT_EQ(clocks.Update("a", 11, 111), 100);  // the next message is fast
  EXPECT_EQ(clocks.Update("a", 12, 112), 100);
}

TEST(HostClocksTest, AGrowingQueueMakesNoTimeOlder) {
  HostClocks clocks;
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(clocks.Update("a", i, i + 100 + i * 500'000'000LL), 100);
  }
}

TEST(HostClocksTest, FollowsAClockThatWasSet) {
  HostClocks clocks;
  for (int i = 0; i < 300; ++i) clocks.Update("a", i, i + 100);
  int64_t offset = 0;
  for (int i = 0; i < 300; ++i) offset = clocks.Update("a", i, i + 90'000);
  EXPECT_EQ(offset, 90'000);
}

}  // namespace
}  // namespace rollcall
