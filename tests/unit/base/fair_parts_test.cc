// SPDX-License-Identifier: Apache-2.0
#include "base/fair_parts.h"

#include <gtest/gtest.h>

namespace rollcall {
namespace {

TEST(FairPartsTest, OneTakerMayHaveAll) { EXPECT_EQ(FairParts(100, 1).most(), 100u); }

TEST(FairPartsTest, LeavesEachOtherUserItsPart) {
  FairParts parts(100, 5);
  for (const size_t most : {60u, 10u, 10u, 10u, 10u, 0u}) {
    EXPECT_EQ(parts.most(), most);
    parts.Take(parts.most());
  }
}

TEST(FairPartsTest, AnOwnerThatTakesLittleLeavesTheCommonHalf) {
  FairParts parts(100, 5);
  for (int i = 0; i < 4; ++i) parts.Take(5);
  EXPECT_EQ(parts.most(), 60u);
}

TEST(FairPartsTest, MoreTakersThanToldGetNoMoreInAll) {
  FairParts parts(100, 2);
  size_t taken = 0;
  for (int i = 0; i < 50; ++i) {
    taken += parts.most();
    parts.Take(parts.most());
  }
  EXPECT_EQ(taken, 100u);
}

TEST(FairPartsTest, NoTakersAreHarmless) { EXPECT_EQ(FairParts(100, 0).most(), 100u); }

}  // namespace
}  // namespace rollcall
