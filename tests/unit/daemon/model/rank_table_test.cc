// SPDX-License-Identifier: Apache-2.0
// A table by rank holds what a map holds, and takes little memory.
#include "daemon/model/rank_table.h"

#include <gtest/gtest.h>
#include <malloc.h>

#include <map>
#include <random>
#include <vector>

namespace rollcall {
namespace {

size_t HeapBytes() {
  const struct mallinfo2 info = mallinfo2();
  return info.uordblks + info.hblkhd;
}

TEST(RankTableTest, AHighRankTakesNoMoreMemoryThanALowOne) {
  const size_t before = HeapBytes();
  std::vector<RankTable<int64_t>> tables(1000);
  for (auto& table : tables) table[262'143] = 1;
  EXPECT_LT(HeapBytes() - before, 1000 * 1024u);
}

TEST(RankTableTest, HoldsWhatAMapHoldsInAnyOrderOfInsertions) {
  std::mt19937 random(7);
  RankTable<int> table;
  std::map<int32_t, int> map;
  for (int step = 0; step < 20'000; ++step) {
    const auto rank = static_cast<int32_t>(random() % (random() % 2 == 0 ? 300 : 262'144));
    if (random() % 4 == 0) {
      EXPECT_EQ(table.erase(rank), map.erase(rank));
    } else {
      table[rank] = map[rank] = step;
    }
    ASSERT_EQ(table.size(), map.size());
  }
  auto expected = map.begin();
  for (const auto& [rank, value] : table) {
    ASSERT_EQ(rank, expected->first);
    ASSERT_EQ(value, expected->second);
    ++expected;
  }
  EXPECT_TRUE(expected == map.end());
  for (const auto& [rank, value] : map) ASSERT_EQ(table.at(rank), value);
  for (int32_t rank = -1; rank < 400; ++rank) ASSERT_EQ(table.count(rank), map.count(rank));
}

TEST(RankTableTest, AnErasedTableIsEmpty) {
  RankTable<int> table;
  table[5] = 1;
  table[262'143] = 2;
  EXPECT_EQ(table.erase(5), 1u);
  EXPECT_EQ(table.begin()->first, 262'143);
  table.erase(262'143);
  EXPECT_TRUE(table.begin() == table.end());
  EXPECT_TRUE(table.empty());
}

}  // namespace
}  // namespace rollcall
