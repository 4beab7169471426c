// SPDX-License-Identifier: Apache-2.0
#include "daemon/agents/parse_budget.h"

#include <gtest/gtest.h>

#include <string>

namespace rollcall {
namespace {

constexpr size_t kLarge = ParseBudget::kSmallBytes + 1;

class ParseBudgetTest : public testing::Test {
 protected:
  void Take(size_t bytes, char name, bool is_prompt = false) {
    budget_.Take(bytes, is_prompt, [this, name] { parsed_ += name; });
  }

  ParseBudget budget_{2 * kLarge};
  std::string parsed_;  // names, in order
};

TEST_F(ParseBudgetTest, MessagesBeyondTheLimitWaitInOrder) {
  for (const char name : {'a', 'b', 'c', 'd'}) Take(kLarge, name);
  EXPECT_EQ(parsed_, "ab");
  budget_.GiveBack(kLarge);
  EXPECT_EQ(parsed_, "abc");
  budget_.GiveBack(kLarge);
  EXPECT_EQ(parsed_, "abcd");
}

TEST_F(ParseBudgetTest, PromptMessagesGoBeforeThoseOfALateJob) {
  for (const char name : {'a', 'b', 'c', 'd'}) Take(kLarge, name);
  Take(kLarge, 'p', /*is_prompt=*/true);
  Take(kLarge, 'q', /*is_prompt=*/true);
  EXPECT_EQ(parsed_, "ab");
  for (int i = 0; i < 4; ++i) budget_.GiveBack(kLarge);
  EXPECT_EQ(parsed_, "abpqcd");
}

TEST_F(ParseBudgetTest, SmallMessagesNeverWait) {
  Take(2 * kLarge, 'a');
  Take(kLarge, 'b');
  Take(ParseBudget::kSmallBytes, 's');
  EXPECT_EQ(parsed_, "as");
}

TEST_F(ParseBudgetTest, AMessageLargerThanTheLimitHasRoomAlone) {
  Take(kLarge, 'a');
  Take(10 * kLarge, 'b');
  EXPECT_EQ(parsed_, "a");
  budget_.GiveBack(kLarge);
  EXPECT_EQ(parsed_, "ab");
}

// 100,000 calls inside each other would exceed the stack.
TEST_F(ParseBudgetTest, MessagesThatAreAppliedAtOnceDoNotNest) {
  Take(2 * kLarge, 'a');
  int applied = 0;
  for (int i = 0; i < 100'000; ++i) {
    budget_.Take(kLarge, /*is_prompt=*/false, [this, &applied] {
      ++applied;
      budget_.GiveBack(kLarge);
    });
  }
  budget_.GiveBack(2 * kLarge);
  EXPECT_EQ(applied, 100'000);
}

}  // namespace
}  // namespace rollcall
