// SPDX-License-Identifier: Apache-2.0
#include "cli/run/verdict_repeat.h"

#include <gtest/gtest.h>

namespace rollcall {
namespace {

constexpr int64_t kLongAgo = 5 * kSecond, kJustNow = kSecond - 1;

EndOfJob Aborted(int64_t since_ns) { return {true, false, false, since_ns}; }
EndOfJob Failed(int64_t since_ns) { return {false, true, false, since_ns}; }
EndOfJob EndedByPerson(int64_t since_ns) { return {false, false, true, since_ns}; }

TEST(VerdictRepeatTest, ComesBelowWhatTheLauncherPrints) {
  EXPECT_TRUE(RepeatsVerdict(Aborted(kLongAgo)));
  EXPECT_TRUE(RepeatsVerdict(Failed(kLongAgo)));
}

TEST(VerdictRepeatTest, ComesAfterCtrlC) { EXPECT_TRUE(RepeatsVerdict(EndedByPerson(kLongAgo))); }

TEST(VerdictRepeatTest, DoesNotComeTwiceWithinASecond) {
  EXPECT_FALSE(RepeatsVerdict(Aborted(kJustNow)));
  EXPECT_FALSE(RepeatsVerdict(Failed(kJustNow)));
  EXPECT_FALSE(RepeatsVerdict(EndedByPerson(kJustNow)));
}

TEST(VerdictRepeatTest, DoesNotComeAfterAJobThatEndedWell) {
  EXPECT_FALSE(RepeatsVerdict({false, false, false, kLongAgo}));
}

}  // namespace
}  // namespace rollcall
