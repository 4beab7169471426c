// SPDX-License-Identifier: Apache-2.0
#include "base/fair_bytes.h"

#include <gtest/gtest.h>

#include <string>

namespace rollcall {
namespace {

TEST(FairBytesTest, OneAloneMayHaveAllAndNoMore) {
  FairBytes<std::string> bytes(100);
  EXPECT_TRUE(bytes.Add("one", 60));
  EXPECT_TRUE(bytes.Add("one", 40));
  EXPECT_FALSE(bytes.Add("one", 1));
  bytes.Remove("one", 40);
  EXPECT_TRUE(bytes.Add("one", 40));
}

TEST(FairBytesTest, RefusesTheHeaviestUserAndServesTheOthers) {
  FairBytes<std::string> bytes(100);
  ASSERT_TRUE(bytes.Add("greedy", 100));
  EXPECT_TRUE(bytes.Add("other", 50));
  EXPECT_FALSE(bytes.Add("other", 1)) << "it has its half";
  EXPECT_FALSE(bytes.Add("greedy", 1));
  EXPECT_TRUE(bytes.Add("third", 33));
  EXPECT_FALSE(bytes.Add("fourth", 26)) << "a fourth of it is 25";
  EXPECT_EQ(bytes.all(), 183u);
}

TEST(FairBytesTest, WhoHasGivenAllBackCountsNoMore) {
  FairBytes<std::string> bytes(100);
  ASSERT_TRUE(bytes.Add("one", 100));
  ASSERT_TRUE(bytes.Add("other", 10));
  bytes.Remove("one", 100);
  EXPECT_TRUE(bytes.Add("other", 90));
  bytes.Remove("nobody", 5);
  bytes.Remove("other", 100);
  EXPECT_EQ(bytes.all(), 0u);
}

}  // namespace
}  // namespace rollcall
