// SPDX-License-Identifier: Apache-2.0
#include "cli/run/verdict_look.h"

#include <gtest/gtest.h>

#include <string>

namespace rollcall {
namespace {

constexpr char kVerdict[] =
    "rollcall: rank 3 is in `validate` (train.py:59) and has not called AllReduce #6\n"
    "rollcall:   [ends-early] Look for a loop that ends early on this rank\n";

TEST(VerdictLookTest, StaysAsItIsWithoutATerminal) {
  EXPECT_EQ(VerdictForTerminal(kVerdict, {}), kVerdict);
}

TEST(VerdictLookTest, BreaksBetweenWordsAndKeepsTheMargin) {
  EXPECT_EQ(VerdictForTerminal(kVerdict, {50, false}),
            "rollcall: rank 3 is in `validate` (train.py:59)\n"
            "          and has not called AllReduce #6\n"
            "rollcall:   [ends-early] Look for a loop that ends\n"
            "            early on this rank\n");
}

TEST(VerdictLookTest, ColoursTheSentenceOnly) {
  EXPECT_EQ(
      VerdictForTerminal("rollcall: rank 3 hangs\nrollcall:   certainty: certain\n", {80, true}),
      "rollcall: \x1b[1;31mrank 3 hangs\x1b[0m\n"
      "rollcall:   certainty: certain\n");
}

TEST(VerdictLookTest, KeepsAPathWhole) {
  const std::string path = "/scratch/" + std::string(80, 'x') + "/report.txt";
  EXPECT_EQ(VerdictForTerminal("rollcall:   report: " + path + "\n", {40, false}),
            "rollcall:   report:\n            " + path + "\n");
}

TEST(VerdictLookTest, LeavesTheLinesOfAWholeReportAlone) {
  const std::string report =
      "Rollcall report\n  a table    with columns that are wider than this\n";
  EXPECT_EQ(VerdictForTerminal(report, {40, true}), report);
}

}  // namespace
}  // namespace rollcall
