// SPDX-License-Identifier: Apache-2.0
#include "base/whole_numbers.h"

#include <gtest/gtest.h>

#include <limits>

namespace rollcall {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr int64_t kLargest = 4'000'000'000'000'000'000;

TEST(WholeNumbersTest, CutsWhatDoesNotFit) {
  EXPECT_EQ(WholeNumber(12.9), 12);
  EXPECT_EQ(WholeNumber(9.3e18), kLargest);
  EXPECT_EQ(WholeNumber(-kInfinity), -kLargest);
  EXPECT_EQ(WholeNumber(std::numeric_limits<double>::quiet_NaN()), 0);
}

TEST(WholeNumbersTest, DurationsStayWithinTheirLimits) {
  EXPECT_EQ(NsOfSeconds(48.2), 48'200'000'000);
  EXPECT_EQ(NsOfSeconds(1e300), kLargest);
}

}  // namespace
}  // namespace rollcall
