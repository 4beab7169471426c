// SPDX-License-Identifier: Apache-2.0
#include "base/backoff.h"

#include <gtest/gtest.h>

#include <limits>

namespace rollcall {
namespace {

TEST(BackoffTest, DoublesThePauseUpToTheLongest) {
  const Backoff backoff = {1, 5};
  EXPECT_EQ(backoff.PauseNs(1), 1);
  EXPECT_EQ(backoff.PauseNs(2), 2);
  EXPECT_EQ(backoff.PauseNs(3), 4);
  EXPECT_EQ(backoff.PauseNs(4), 5);
  EXPECT_EQ(backoff.PauseNs(std::numeric_limits<int>::max()), 5);
}

TEST(BackoffTest, ChanceSpreadsThePauses) {
  const Backoff shorter = {1000, 4000, 0.5, 1};
  EXPECT_EQ(shorter.PauseNs(1, 0), 500);
  EXPECT_EQ(shorter.PauseNs(1, 0.5), 750);
  EXPECT_EQ(shorter.PauseNs(3, 1), 4000);
  const Backoff longer = {1000, 4000, 1, 1.5};
  EXPECT_EQ(longer.PauseNs(2, 0), 2000);
  EXPECT_EQ(longer.PauseNs(9, 1), 6000);
}

}  // namespace
}  // namespace rollcall
