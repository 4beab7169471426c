// SPDX-License-Identifier: Apache-2.0
#include "net/fair_turns.h"

#include <gtest/gtest.h>

namespace rollcall {
namespace {

constexpr size_t kThreads = 4;

class FairTurnsTest : public testing::Test {
 protected:
  // -1 if nothing may run.
  int Take() {
    const auto turn = turns_.Take();
    return turn.has_value() ? turn->item : -1;
  }

  FairTurns<int> turns_{kThreads};
};

TEST_F(FairTurnsTest, OneOwnersItemsRunInTheirOrder) {
  turns_.Add("a", 1);
  turns_.Add("a", 2);
  EXPECT_EQ(Take(), 1);
  EXPECT_EQ(Take(), 2);
  EXPECT_EQ(Take(), -1);
}

TEST_F(FairTurnsTest, WhoComesLaterDoesNotWaitForAllOfAnother) {
  for (int i = 0; i < 100; ++i) turns_.Add("a", i);
  turns_.Add("b", 1000);
  EXPECT_EQ(Take(), 0);
  EXPECT_EQ(Take(), 1000);
  EXPECT_EQ(Take(), 1);
}

TEST_F(FairTurnsTest, OneOwnerNeverHasAllThreads) {
  for (int i = 0; i < 100; ++i) turns_.Add("a", i);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(Take(), i);
  EXPECT_EQ(Take(), -1);
  turns_.Add("b", 1000);
  EXPECT_EQ(Take(), 1000);
  turns_.End("a");
  EXPECT_EQ(Take(), 3);
}

TEST_F(FairTurnsTest, OfTwoEquallyHeavyTheLongerWaitingIsNext) {
  turns_.Add("b", 1);
  turns_.Add("a", 2);
  EXPECT_EQ(Take(), 1);
  EXPECT_EQ(Take(), 2);
}

TEST_F(FairTurnsTest, OneThreadServesAll) {
  FairTurns<int> turns(1);
  turns.Add("a", 1);
  ASSERT_TRUE(turns.Take().has_value());
  turns.Add("a", 2);
  EXPECT_FALSE(turns.Take().has_value());
  turns.End("a");
  EXPECT_TRUE(turns.Take().has_value());
}

TEST_F(FairTurnsTest, WhatIsClearedNeverRuns) {
  turns_.Add("a", 1);
  turns_.Add("a", 2);
  EXPECT_EQ(Take(), 1);
  turns_.Clear();
  EXPECT_EQ(Take(), -1);
  turns_.End("a");
  turns_.Add("a", 3);
  EXPECT_EQ(Take(), 3);
}

}  // namespace
}  // namespace rollcall
