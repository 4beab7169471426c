// SPDX-License-Identifier: Apache-2.0
#include "agent/link/refusal_log.h"

#include <gtest/gtest.h>

namespace rollcall {
namespace {

constexpr int64_t kSecond = 1'000'000'000;

TEST(RefusalLogTest, LogsTheFirstRefusalAtOnce) {
  RefusalLog log;
  EXPECT_EQ(log.Count(5 * kSecond), 1);
}

TEST(RefusalLogTest, LogsOnceAMinuteAndCountsAll) {
  RefusalLog log;
  int lines = 0;
  uint64_t last = 0;
  for (int64_t second = 0; second < 180; ++second) {
    const auto due = log.Count(second * kSecond);
    if (!due.has_value()) continue;
    ++lines;
    last = *due;
  }
  EXPECT_EQ(lines, 3);
  EXPECT_EQ(last, 121);
}

}  // namespace
}  // namespace rollcall
