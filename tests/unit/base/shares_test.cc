// SPDX-License-Identifier: Apache-2.0
// Who makes room when what all share is used up.
#include "base/shares.h"

#include <gtest/gtest.h>

#include <string>

namespace rollcall {
namespace {

using Items = Shares<std::string>;

const Owner kGreedy = {"greedy", "node-1"};

std::string Name(const char* word, int number) { return word + std::to_string(number); }

Items GreedyWith(int count) {
  Items items;
  for (int i = 0; i < count; ++i) items.Put(Name("greedy-", i), kGreedy, 1);
  return items;
}

TEST(SharesTest, TheNewestOfTheHeaviestMakesRoomForAnyoneWithLess) {
  const Items items = GreedyWith(5);
  for (const Owner& newcomer : {Owner{"ann", "node-2"}, Owner{"ann", "node-1"}}) {
    EXPECT_EQ(items.MakesRoomFor(newcomer, Items::First::kNewest), "greedy-4") << newcomer.host;
  }
}

TEST(SharesTest, TheHeaviestGetsNoRoom) {
  Items items = GreedyWith(5);
  items.Put("ann-0", {"ann", "node-2"}, 1);
  EXPECT_EQ(items.MakesRoomFor(kGreedy, Items::First::kNewest), std::nullopt);
  EXPECT_EQ(items.MakesRoomFor({"greedy", "node-2"}, Items::First::kNewest), "greedy-4")
      << "another host of the same user has less";
}

TEST(SharesTest, NoOwnerMakesRoomForOneThatHasAsMuch) {
  Items items = GreedyWith(3);
  for (int i = 0; i < 2; ++i) items.Put(Name("ann-", i), {"ann", "node-2"}, 1);
  EXPECT_EQ(items.MakesRoomFor({"ann", "node-2"}, Items::First::kNewest), std::nullopt);
  items.Remove("ann-1");
  EXPECT_EQ(items.MakesRoomFor({"ann", "node-2"}, Items::First::kNewest), "greedy-2");
}

TEST(SharesTest, OneUserOnManyHostsIsAsHeavyAsTheSum) {
  Items items;
  for (int i = 0; i < 20; ++i) items.Put(Name("greedy-", i), {"greedy", Name("node-", i)}, 1);
  for (int i = 0; i < 5; ++i) items.Put(Name("ann-", i), {"ann", "node-3"}, 1);
  const auto makes_room = items.MakesRoomFor({"ann", "node-3"}, Items::First::kNewest);
  ASSERT_TRUE(makes_room.has_value());
  EXPECT_EQ(makes_room->substr(0, 6), "greedy");
}

TEST(SharesTest, AHostThatInventsUsersIsAsHeavyAsTheirSum) {
  Items items;
  for (int i = 0; i < 20; ++i) items.Put(Name("invented-", i), {Name("user-", i), "node-1"}, 1);
  for (int i = 0; i < 5; ++i) items.Put(Name("ann-", i), {"ann", "node-2"}, 1);
  const auto makes_room = items.MakesRoomFor({"ann", "node-2"}, Items::First::kNewest);
  ASSERT_TRUE(makes_room.has_value());
  EXPECT_EQ(makes_room->substr(0, 8), "invented");
  EXPECT_EQ(items.MakesRoomFor({"user-21", "node-1"}, Items::First::kNewest), std::nullopt);
}

TEST(SharesTest, SparesUsersOfABusyHostBesideAHeavierUserElsewhere) {
  Items items;
  for (int i = 0; i < 50; ++i) items.Put(Name("login-", i), {Name("user-", i), "login-host"}, 1);
  for (int i = 0; i < 40; ++i) items.Put(Name("greedy-", i), {"greedy", Name("node-", i)}, 1);
  EXPECT_EQ(items.MakesRoomFor({"greedy", "node-41"}, Items::First::kNewest), std::nullopt);
  const auto for_another = items.MakesRoomFor({"user-51", "login-host"}, Items::First::kNewest);
  ASSERT_TRUE(for_another.has_value());
  EXPECT_EQ(for_another->substr(0, 6), "greedy");
}

TEST(SharesTest, WhereAllHaveOneNameTheHeaviestHostMakesRoom) {
  Items items;
  for (int i = 0; i < 20; ++i) items.Put(Name("flood-", i), {"root", "node-1"}, 1);
  for (int i = 0; i < 5; ++i) items.Put(Name("job-", i), {"root", "node-2"}, 1);
  EXPECT_EQ(items.MakesRoomFor({"root", "node-2"}, Items::First::kNewest), "flood-19");
  EXPECT_EQ(items.MakesRoomFor({"root", "node-1"}, Items::First::kNewest), std::nullopt);
}

TEST(SharesTest, WeightsCountAndNotItems) {
  Items items = GreedyWith(3);
  items.Put("large", {"ann", "node-2"}, 10);
  EXPECT_EQ(items.Heaviest(Items::First::kOldest), "large");
  items.Put("large", {"ann", "node-2"}, 1);
  EXPECT_EQ(items.Heaviest(Items::First::kOldest), "greedy-0");
  EXPECT_EQ(items.total(), 4u);
}

TEST(SharesTest, WhatWasRemovedLeavesNothing) {
  Items items = GreedyWith(2);
  items.Remove("greedy-0");
  items.Remove("greedy-0");
  items.Remove("greedy-1");
  EXPECT_TRUE(items.empty());
  EXPECT_EQ(items.total(), 0u);
  EXPECT_EQ(items.Heaviest(Items::First::kOldest), std::nullopt);
  EXPECT_EQ(items.MakesRoomFor(kGreedy, Items::First::kNewest), std::nullopt);
}

}  // namespace
}  // namespace rollcall
