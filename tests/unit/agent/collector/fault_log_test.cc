// SPDX-License-Identifier: Apache-2.0
#include "agent/collector/fault_log.h"

#include <gtest/gtest.h>

#include <string>

namespace rollcall {
namespace {

constexpr ProcessId kOne = {101, 1}, kOther = {102, 1};

// How many of these different faults are logged.
size_t Say(int count, int64_t user, const std::string& of, FaultLog* log) {
  for (int i = 0; i < count; ++i) log->Add(of + std::to_string(i), user);
  return log->Take().size();
}

TEST(FaultLogTest, EachFaultIsReportedOnce) {
  FaultLog log;
  for (int tick = 0; tick < 3; ++tick) log.Add("no such file", -1);
  EXPECT_EQ(log.Take(), (std::vector<std::string>{"no such file"}));
  log.Add("no such file", -1);
  EXPECT_TRUE(log.Take().empty());
}

TEST(FaultLogTest, ASegmentThatChangesWithEachTickIsLoggedSomeTimes) {
  FaultLog log;
  for (int tick = 0; tick < 100; ++tick) log.AddOf(kOne, "cut " + std::to_string(tick), 1000);
  const std::vector<std::string> said = log.Take();
  ASSERT_EQ(said.size(), FaultLog::kMostOfProcess);
  EXPECT_EQ(said.back(), "cut 7 (further faults of this segment are not logged)");
  log.AddOf(kOther, "cut 100", 1000);
  EXPECT_EQ(log.Take(), (std::vector<std::string>{"cut 100"}));
}

TEST(FaultLogTest, OneUserLeavesAQuarterToTheOthers) {
  FaultLog log;
  EXPECT_EQ(Say(2000, 1000, "a", &log), 750u);
  EXPECT_EQ(Say(2000, 1001, "b", &log), 188u);
  EXPECT_EQ(Say(1, -1, "the agent's own", &log), 1u);
}

}  // namespace
}  // namespace rollcall
