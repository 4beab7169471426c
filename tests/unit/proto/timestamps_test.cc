// SPDX-License-Identifier: Apache-2.0
#include "proto/timestamps.h"

#include <gtest/gtest.h>

#include <limits>

namespace rollcall {
namespace {

constexpr int64_t kLargest = 4'000'000'000'000'000'000;

TEST(TimestampsTest, TimesStayWithinTheirLimits) {
  google::protobuf::Timestamp time;
  time.set_seconds(1'800'000'000);
  time.set_nanos(5);
  EXPECT_EQ(NsOf(time), 1'800'000'000'000'000'005);
  time.set_seconds(std::numeric_limits<int64_t>::max());
  EXPECT_EQ(NsOf(time), kLargest + 5);
  time.set_seconds(std::numeric_limits<int64_t>::min());
  EXPECT_EQ(NsOf(time), -kLargest + 5);
}

}  // namespace
}  // namespace rollcall
