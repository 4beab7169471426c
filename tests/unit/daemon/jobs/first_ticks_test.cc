// SPDX-License-Identifier: Apache-2.0
#include "daemon/jobs/first_ticks.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace rollcall {
namespace {

using Ids = std::vector<std::string>;

constexpr int64_t kMs = 1'000'000;

TEST(FirstTicksTest, OnlySoManyAgentsHaveATurnAtOnce) {
  FirstTicks turns(2);
  for (const char* id : {"a", "b", "c", "d"}) turns.Add(id);
  EXPECT_EQ(turns.Next(0), (Ids{"a", "b"}));
  EXPECT_EQ(turns.Next(1), Ids{});
  turns.Done("b");
  EXPECT_EQ(turns.Next(2), (Ids{"c"}));
}

TEST(FirstTicksTest, ASlowAgentLosesItsTurn) {
  FirstTicks turns(1);
  turns.Add("slow");
  turns.Add("next");
  EXPECT_EQ(turns.Next(0), (Ids{"slow"}));
  EXPECT_EQ(turns.Next(FirstTicks::kTurnNs - kMs), Ids{});
  EXPECT_EQ(turns.Next(FirstTicks::kTurnNs), (Ids{"next"}));
  turns.Done("slow");  // it comes after all, and takes no other's turn
  EXPECT_EQ(turns.Next(FirstTicks::kTurnNs + kMs), Ids{});
}

// The old stream of an agent may end after the new one has begun.
TEST(FirstTicksTest, AnAgentThatConnectsAgainIsWelcomedAgain) {
  FirstTicks turns(1);
  turns.Add("a");
  EXPECT_EQ(turns.Next(0), (Ids{"a"}));
  turns.Add("a");
  turns.Done("a");
  EXPECT_EQ(turns.Next(1), (Ids{"a"}));
}

TEST(FirstTicksTest, AnAgentThatIsGoneDoesNotWait) {
  FirstTicks turns(1);
  for (const char* id : {"a", "b", "b", "c"}) turns.Add(id);
  EXPECT_EQ(turns.Next(0), (Ids{"a"}));
  turns.Gone("b");
  turns.Gone("a");
  EXPECT_EQ(turns.Next(1), (Ids{"c"}));
}

TEST(FirstTicksTest, AFleetThatIsGoneAtOnceIsForgottenAtOnce) {
  constexpr int kAgents = 100'000;
  FirstTicks turns(1);
  for (int i = 0; i < kAgents; ++i) turns.Add(std::to_string(i));
  for (int i = kAgents - 1; i > 0; --i) turns.Gone(std::to_string(i));
  EXPECT_EQ(turns.Next(0), (Ids{"0"}));
  turns.Done("0");
  EXPECT_EQ(turns.Next(1), Ids{});
}

}  // namespace
}  // namespace rollcall
