// SPDX-License-Identifier: Apache-2.0
#include "agent/processes/stacks_switch.h"

#include <gtest/gtest.h>

#include "temporary_tree.h"

namespace rollcall {
namespace {

std::string WhyNot(const std::string& environment) {
  TemporaryTree proc;
  proc.Write("20/environ", environment);
  bool only_outside = true;
  const std::string why = WhyNoStacks(proc.root(), 20, &only_outside);
  EXPECT_FALSE(only_outside);
  return why;
}

TEST(StacksSwitchTest, OffInTheEnvironmentForbidsStacks) {
  using std::string_literals::operator""s;
  EXPECT_EQ(WhyNot("HOME=/root\0ROLLCALL_STACKS=off\0"s),
            "the stacks of this process are switched off (ROLLCALL_STACKS=off in its environment)");
  for (const char* word : {"OFF", "0", "no", "false"}) EXPECT_TRUE(IsStacksOff(word)) << word;
}

TEST(StacksSwitchTest, OtherValuesPermitStacks) {
  EXPECT_EQ(WhyNot("ROLLCALL_STACKS=on"), "");
  EXPECT_EQ(WhyNot("ROLLCALL_STACKS="), "");
  EXPECT_EQ(WhyNot("HOME=/root"), "");
  EXPECT_EQ(WhyNot(""), "");
}

TEST(StacksSwitchTest, AnEnvironmentThatCannotBeReadForbidsStacks) {
  TemporaryTree proc;
  proc.Write("20/environ/is_a_folder", "");
  bool only_outside = false;
  EXPECT_NE(WhyNoStacks(proc.root(), 20, &only_outside), "");
  EXPECT_EQ(WhyNoStacks(proc.root(), 21, &only_outside), "") << "this process has ended";
}

}  // namespace
}  // namespace rollcall
