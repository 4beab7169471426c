// SPDX-License-Identifier: Apache-2.0
#include "daemon/access/refused_actions.h"

#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"

namespace rollcall {
namespace {

constexpr int64_t kMinute = Throttle::kMinuteNs;

TEST(RefusedActionsTest, TellsOfTheSameRefusalOnceAMinuteAndCountsTheOthers) {
  RefusedActions refused;
  EXPECT_EQ(refused.Take("bob", "silence", 5), 0u);
  EXPECT_EQ(refused.Take("bob", "silence", 6), std::nullopt);
  EXPECT_EQ(refused.Take("bob", "silence", kMinute), std::nullopt);
  EXPECT_EQ(refused.Take("bob", "note", 7), 0u) << "another action";
  EXPECT_EQ(refused.Take("ada", "silence", 7), 0u) << "another person";
  EXPECT_EQ(refused.Take("bob", "silence", kMinute + 5), 2u);
  EXPECT_EQ(refused.Take("bob", "silence", 2 * kMinute + 5), 0u);
}

TEST(RefusedActionsTest, ManyNamesFillNeitherTheAuditNorTheMemory) {
  RefusedActions refused;
  size_t told = 0;
  for (size_t i = 0; i < 10 * RefusedActions::kMost; ++i) {
    told += refused.Take(absl::StrCat("caller ", i), "silence", 1).has_value();
  }
  EXPECT_EQ(told, RefusedActions::kMost);
  EXPECT_TRUE(refused.Take("bob", "silence", kMinute + 1).has_value()) << "the old ones are gone";
}

}  // namespace
}  // namespace rollcall
