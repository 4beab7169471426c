// SPDX-License-Identifier: Apache-2.0
#include "cli/report_wait.h"

#include <gtest/gtest.h>

namespace rollcall {
namespace {

using Step = ReportWait::Step;
constexpr int64_t kBegin = 77'000'000'000;
constexpr int64_t kMs = 1'000'000;

TEST(ReportWaitTest, TellsOnceAfterASecondAndWaitsFiveSeconds) {
  ReportWait wait;
  EXPECT_EQ(wait.Next("a-1", kBegin), Step::kWait);
  EXPECT_EQ(wait.Next("a-1", kBegin + 999 * kMs), Step::kWait);
  EXPECT_EQ(wait.Next("a-1", kBegin + 1000 * kMs), Step::kTell);
  EXPECT_EQ(wait.Next("a-1", kBegin + 1100 * kMs), Step::kWait);
  EXPECT_EQ(wait.Next("a-1", kBegin + 4999 * kMs), Step::kWait);
  EXPECT_EQ(wait.Next("a-1", kBegin + 5000 * kMs), Step::kDue);
}

TEST(ReportWaitTest, EachIncidentHasATimeOfItsOwn) {
  ReportWait wait;
  EXPECT_EQ(wait.Next("a-1", kBegin), Step::kWait);
  EXPECT_EQ(wait.Next("a-2", kBegin + 5000 * kMs), Step::kWait);
  EXPECT_EQ(wait.Next("a-1", kBegin + 5000 * kMs), Step::kDue);
  EXPECT_EQ(wait.Next("a-2", kBegin + 6000 * kMs), Step::kTell);
}

}  // namespace
}  // namespace rollcall
