// SPDX-License-Identifier: Apache-2.0
#include "tests/fleet/ramp.h"

#include <gtest/gtest.h>

namespace rollcall::fleet {

// The ramp only passes hosts on.
class Host {};

namespace {

TEST(RampTest, AtMostSoManyConnectAndTheOthersFollowInOrder) {
  Host hosts[5];
  Ramp ramp(2);
  EXPECT_TRUE(ramp.Enter(&hosts[0]));
  EXPECT_TRUE(ramp.Enter(&hosts[1]));
  for (Host* host : {&hosts[2], &hosts[3], &hosts[4]}) EXPECT_FALSE(ramp.Enter(host));
  EXPECT_EQ(ramp.Leave(), &hosts[2]);
  EXPECT_FALSE(ramp.Enter(&hosts[0])) << "two connect";
  EXPECT_EQ(ramp.Leave(), &hosts[3]);
  EXPECT_EQ(ramp.Leave(), &hosts[4]);
  EXPECT_EQ(ramp.Leave(), &hosts[0]);
  EXPECT_EQ(ramp.Leave(), nullptr);
  EXPECT_TRUE(ramp.Enter(&hosts[1])) << "one connects";
  EXPECT_FALSE(ramp.Enter(&hosts[2]));
}

TEST(RampTest, WithoutALimitNobodyWaits) {
  Host host;
  Ramp ramp(0);
  for (int i = 0; i < 100; ++i) EXPECT_TRUE(ramp.Enter(&host));
  EXPECT_EQ(ramp.Leave(), nullptr);
}

}  // namespace
}  // namespace rollcall::fleet
