// SPDX-License-Identifier: Apache-2.0
// Tests the rule for the room that segments may take of a file system.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "interpose/room.h"

namespace rollcall {
namespace {

constexpr uint64_t kMib = uint64_t{1} << 20;
constexpr uint64_t kBlock = 40960;

Room Free(uint64_t free_bytes, uint64_t held_bytes = 0, uint64_t keep_bytes = 0) {
  return {false, free_bytes, held_bytes, keep_bytes};
}

struct Case {
  const char* name;
  Room room;
  uint64_t bytes;
  RoomFor use;
  bool has_room;
};

const Case kCases[] = {
    {"an_empty_pod", Free(64 * kMib, 0, kNcclBytes), kBlock, RoomFor::kLongHistories, true},
    {"no_more_than_is_free", Free(4096), 8192, RoomFor::kStacks, false},
    {"up_to_the_quarter", Free(48 * kMib, 12 * kMib), 3 * kMib, RoomFor::kStacks, true},
    {"not_beyond_the_quarter", Free(48 * kMib, 12 * kMib), 3 * kMib + 4096, RoomFor::kStacks,
     false},
    {"long_histories_up_to_an_eighth", Free(64 * kMib), 8 * kMib, RoomFor::kLongHistories, true},
    {"long_histories_not_beyond", Free(64 * kMib), 8 * kMib + 8, RoomFor::kLongHistories, false},
    {"short_ones_then_still", Free(56 * kMib, 8 * kMib), 12288, RoomFor::kShortHistories, true},
    {"short_ones_no_more", Free(54 * kMib, 10 * kMib), 12288, RoomFor::kShortHistories, false},
    {"presence_then_still", Free(54 * kMib, 10 * kMib), 8192, RoomFor::kPresence, true},
    {"presence_no_more", Free(52 * kMib, 12 * kMib), 8192, RoomFor::kPresence, false},
    {"a_late_process_still", Free(52 * kMib, 12 * kMib), 16384, RoomFor::kProcess, true},
    {"a_late_process_no_more", Free(50 * kMib, 14 * kMib), 16384, RoomFor::kProcess, false},
    {"stacks_have_the_last_eighth", Free(50 * kMib, 14 * kMib), kMib, RoomFor::kStacks, true},
    {"what_nccl_needs_stays", Free(34 * kMib, 0, kNcclBytes), 4096, RoomFor::kPresence, false},
    {"to_the_byte", Free(34 * kMib + 4096, 0, kNcclBytes), 4096, RoomFor::kPresence, true},
    {"a_disk_keeps_nothing_for_nccl", Free(30 * kMib), kBlock, RoomFor::kLongHistories, true},
    {"a_file_system_without_size", {true, 0, 0, kNcclBytes}, kBlock, RoomFor::kLongHistories, true},
    {"a_full_one", Free(0, 64 * kMib), 4096, RoomFor::kStacks, false},
    {"nothing_known", Room(), 4096, RoomFor::kPresence, false},
    {"no_overflow", Free(UINT64_MAX / 2), UINT64_MAX, RoomFor::kStacks, false},
};

class RoomTest : public testing::TestWithParam<Case> {};

TEST_P(RoomTest, IsGiven) {
  const Case& c = GetParam();
  EXPECT_EQ(HasRoom(c.room, c.bytes, c.use), c.has_room);
}

INSTANTIATE_TEST_SUITE_P(Cases, RoomTest, testing::ValuesIn(kCases),
                         [](const auto& info) { return std::string(info.param.name); });

// Asks for room in random order, while others take and free memory.
TEST(RoomTest, WhatIsGivenNeverExceedsTheQuarterAndLeavesWhatNcclNeeds) {
  std::mt19937_64 random(1);
  for (int run = 0; run < 200; ++run) {
    const uint64_t size = (1 + random() % 200) * kMib;
    const uint64_t others = random() % (size / 2);
    Room room = Free(size - others, 0, random() % 2 * kNcclBytes);
    for (int i = 0; i < 2000; ++i) {
      constexpr RoomFor kUses[] = {RoomFor::kLongHistories, RoomFor::kShortHistories,
                                   RoomFor::kPresence, RoomFor::kProcess, RoomFor::kStacks};
      const uint64_t bytes = (1 + random() % 64) * 4096;
      if (!HasRoom(room, bytes, kUses[random() % 5])) continue;
      room.free_bytes -= bytes;
      room.held_bytes += bytes;
      ASSERT_LE(room.held_bytes, (size - others) / 4);
      ASSERT_GE(room.free_bytes, room.keep_bytes);
    }
  }
}

}  // namespace
}  // namespace rollcall
