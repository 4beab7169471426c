// SPDX-License-Identifier: Apache-2.0
#include "agent/processes/proc_lines.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "temporary_tree.h"

namespace rollcall {
namespace {

constexpr int64_t kEver = INT64_MAX;

class ProcLinesTest : public ::testing::Test {
 protected:
  std::vector<std::string> Lines(const std::string& text) {
    tree_.Write("file", text);
    std::vector<std::string> lines;
    EXPECT_TRUE(ForEachProcLine(tree_.root() + "/file", kEver,
                                [&](absl::string_view line) { lines.emplace_back(line); }));
    return lines;
  }

  TemporaryTree tree_;
};

TEST_F(ProcLinesTest, GivesEachLineWithoutItsEnd) {
  EXPECT_EQ(Lines("one\ntwo\n\nthe last"), (std::vector<std::string>{"one", "two", "the last"}));
  EXPECT_TRUE(Lines("").empty());
}

TEST_F(ProcLinesTest, GivesLinesThatSpanPieces) {
  const std::string line(5000, 'x');
  std::string text;
  for (int i = 0; i < 20; ++i) text += line + "\n";
  EXPECT_EQ(Lines(text), std::vector<std::string>(20, line));
}

TEST_F(ProcLinesTest, LeavesOutALineThatNoPathNeeds) {
  const std::string longest(kLongestProcLine, 'x');
  EXPECT_EQ(Lines(std::string(1 << 20, 'y') + "\n" + longest + "\n" + longest + "z\nend\n"),
            (std::vector<std::string>{longest, "end"}));
}

TEST_F(ProcLinesTest, SaysThatItDidNotReadToTheEnd) {
  tree_.Write("file", "one\n");
  int lines = 0;
  const auto count = [&lines](absl::string_view) { ++lines; };
  EXPECT_FALSE(ForEachProcLine(tree_.root() + "/file", /*deadline_ns=*/0, count));
  EXPECT_FALSE(ForEachProcLine(tree_.root() + "/none", kEver, count));
  EXPECT_EQ(lines, 0);
}

}  // namespace
}  // namespace rollcall
