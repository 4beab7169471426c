// SPDX-License-Identifier: Apache-2.0
#include "agent/link/unrecorded_list.h"

#include <gtest/gtest.h>

#include "base/durations.h"

namespace rollcall {
namespace {

v1::UnrecordedProcesses ListWith(int32_t pid) {
  v1::UnrecordedProcesses list;
  list.add_processes()->set_pid(pid);
  return list;
}

TEST(UnrecordedListTest, SendsAListOnlyWhenItHasChanged) {
  UnrecordedList list;
  EXPECT_TRUE(list.IsDue(1 * kSecond));
  ASSERT_TRUE(list.Update(1 * kSecond, ListWith(7)).has_value());
  EXPECT_FALSE(list.IsDue(10 * kSecond));
  EXPECT_TRUE(list.IsDue(11 * kSecond));
  EXPECT_FALSE(list.Update(11 * kSecond, ListWith(7)).has_value());
  EXPECT_EQ(list.Update(21 * kSecond, ListWith(8))->unrecorded().processes(0).pid(), 8);
  EXPECT_FALSE(list.Has({7, 0}));
  EXPECT_TRUE(list.Has({8, 0}));
}

TEST(UnrecordedListTest, TheNextStreamHasNoListYet) {
  UnrecordedList list;
  list.Update(1 * kSecond, ListWith(7));
  list.Clear();
  EXPECT_FALSE(list.Has({7, 0}));
  EXPECT_TRUE(list.IsDue(2 * kSecond));
  EXPECT_TRUE(list.Update(2 * kSecond, ListWith(7)).has_value());
}

}  // namespace
}  // namespace rollcall
