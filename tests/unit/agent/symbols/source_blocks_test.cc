// SPDX-License-Identifier: Apache-2.0
// A line of a Python source, and the blocks that it is in.
#include "agent/symbols/source_blocks.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"

namespace rollcall {
namespace {

constexpr char kProgram[] =
    "import torch\n"                             // 1
    "def train(model, data):\n"                  // 2
    "    for epoch in range(4):\n"               // 3
    "        for batch in data:  # if\n"         // 4
    "            loss = model(batch)\n"          // 5
    "# a comment at the margin\n"                // 6
    "            if epoch == 1 and (\n"          // 7
    "                batch.isnan()\n"            // 8
    "            ):\n"                           // 9
    "                continue\n"                 // 10
    "            loss.backward()\n"              // 11
    "\n"                                         // 12
    "        try:\n"                             // 13
    "            check()\n"                      // 14
    "        except ValueError:\n"               // 15
    "            report(\n"                      // 16
    "                loss)\n"                    // 17
    "    dist.barrier()\n"                       // 18
    "async def serve(self):\n"                   // 19
    "\twhile True:\n"                            // 20
    "\t\tasync for request in self.requests:\n"  // 21
    "\t\t\tawait self.answer(request)\n"         // 22
    "forward = lambda x: x\n"                    // 23
    "for name in forward(data): print(name)\n"   // 24
    "format_all(forward)\n"                      // 25
    "try:\n"                                     // 26
    "    train()\n"                              // 27
    "finally:\n"                                 // 28
    "    leave()";                               // 29

struct Case {
  const char* name;
  int line;
  const char* blocks;
};

const Case kCases[] = {
    {"in_two_loops", 5, "loop 3-17, loop 4-11"},
    {"at_the_head_of_a_loop", 4, "loop 3-17, loop 4-11"},
    {"in_a_condition_over_lines", 10, "loop 3-17, loop 4-11, condition 7-10"},
    {"the_condition_itself", 7, "loop 3-17, loop 4-11"},
    {"behind_an_inner_loop", 14, "loop 3-17"},
    {"in_a_handler", 16, "loop 3-17, handler 15-17"},
    {"behind_the_loops", 18, ""},
    {"tabs_and_async", 22, "loop 20-22, loop 21-22"},
    {"a_loop_in_one_line", 24, "loop 24-24"},
    {"top_level", 25, ""},
    {"in_finally_which_also_runs_without_an_exception", 29, ""},
    {"a_blank_line", 12, ""},
    {"a_comment", 6, ""},
    {"no_such_line", 99, ""},
    {"no_line", 0, ""},
};

std::string InWords(const std::vector<SourceBlock>& blocks) {
  const char* const kNames[] = {"loop", "condition", "handler"};
  std::string text;
  for (const SourceBlock& block : blocks) {
    absl::StrAppend(&text, text.empty() ? "" : ", ", kNames[static_cast<int>(block.kind)], " ",
                    block.first, "-", block.last);
  }
  return text;
}

class SourceBlocksTest : public testing::TestWithParam<Case> {};

TEST_P(SourceBlocksTest, Finds) {
  EXPECT_EQ(InWords(BlocksAround(kProgram, GetParam().line, 8)), GetParam().blocks);
}

INSTANTIATE_TEST_SUITE_P(Lines, SourceBlocksTest, testing::ValuesIn(kCases),
                         [](const auto& row) { return std::string(row.param.name); });

TEST(ReturnBeforeTest, FindsWhereTheFunctionMayHaveReturned) {
  constexpr char kSave[] =
      "def save(model):\n"  // 1
      "  def write():\n"
      "    return 1\n"
      "  if rank != 0:\n"
      "    return\n"  // 5
      "  # no return here\n"
      "  with open(path):\n"
      "    dist.barrier()\n"
      "  return None\n"
      "for x in y:\n"  // 10
      "  dist.barrier()\n";
  EXPECT_EQ(ReturnBefore(kSave, 8), 5);
  EXPECT_EQ(ReturnBefore(kSave, 4), 0) << "that of the inner function";
  EXPECT_EQ(ReturnBefore(kSave, 3), 0);
  EXPECT_EQ(ReturnBefore(kSave, 11), 0) << "outside of a function";
  EXPECT_EQ(ReturnBefore(kSave, 99), 0);
}

TEST(SourceBlocksEndsTest, FindsWhatEndsAPassOrTheLoop) {
  const auto outer = BlocksAround(kProgram, 5, 8)[0], inner = BlocksAround(kProgram, 5, 8)[1];
  EXPECT_EQ(outer.skips_at, 15) << "not the continue of the inner loop";
  EXPECT_EQ(outer.ends_at, 0);
  EXPECT_EQ(inner.skips_at, 10);
  const auto blocks = BlocksAround("for x in y:\n  if x % 8 == 0:\n    break\n", 3, 8);
  ASSERT_EQ(blocks.size(), 2u);
  EXPECT_EQ(blocks[0].ends_at, 3);
  EXPECT_TRUE(blocks[1].is_periodic);
}

constexpr char kBranches[] =
    "if rank == 0:\n"                          // 1
    "    if step % 8 == 0:\n"                  // 2
    "        save()\n"                         // 3
    "    # a comment\n"                        // 4
    "    elif late(\n"                         // 5
    "            step\n"                       // 6
    "    ):\n"                                 // 7
    "        log()\n"                          // 8
    "    else:\n"                              // 9
    "        wait()\n"                         // 10
    "else:\n"                                  // 11
    "    for batch in data:\n"                 // 12
    "        train()\n"                        // 13
    "    else:\n"                              // 14
    "        report()\n"                       // 15
    "try:\n"                                   // 16
    "    load()\n"                             // 17
    "except OSError:\n"                        // 18
    "    pass\n"                               // 19
    "else:\n"                                  // 20
    "    start()\n"                            // 21
    "match kind:\n"                            // 22
    "    case 1:\n"                            // 23
    "        one()\n"                          // 24
    "    case _ if rank:\n"                    // 25
    "        others()\n"                       // 26
    "match = find()\n"                         // 27
    "value = 1 if rank else 2; print(value)";  // 28

TEST(SourceBlocksBranchTest, FindsTheLineThatDecidesBetweenBranches) {
  struct Row {
    int line;
    const char* blocks;
    int decides_at;
    bool is_periodic;
  };
  for (const Row& row : std::vector<Row>{{3, "condition 1-10, condition 2-3", 2, true},
                                         {8, "condition 1-10, condition 5-8", 2, true},
                                         {10, "condition 1-10, condition 9-10", 2, true},
                                         {13, "condition 11-15, loop 12-13", 0, false},
                                         {15, "condition 11-15", 1, false},
                                         {21, "", 0, false},
                                         {24, "condition 22-26, condition 23-24", 22, false},
                                         {26, "condition 22-26, condition 25-26", 22, false},
                                         {27, "", 0, false},
                                         {28, "", 0, false}}) {
    const std::vector<SourceBlock> blocks = BlocksAround(kBranches, row.line, 8);
    EXPECT_EQ(InWords(blocks), row.blocks) << "line " << row.line;
    if (blocks.empty()) continue;
    EXPECT_EQ(blocks.back().decides_at, row.decides_at) << "line " << row.line;
    EXPECT_EQ(blocks.back().is_periodic, row.is_periodic) << "line " << row.line;
  }
}

TEST(SourceBlocksBranchTest, AConditionThatMayDependOnTheRankIsNotPeriodic) {
  const auto is_periodic = [](const std::string& condition) {
    const auto blocks = BlocksAround("if " + condition + ":\n    save()\n", 2, 8);
    return !blocks.empty() && blocks.back().is_periodic;
  };
  EXPECT_TRUE(is_periodic("step % 8 == 0"));
  EXPECT_TRUE(is_periodic("not self.step % self.every"));
  EXPECT_FALSE(is_periodic("step % 8 == 0 and is_main"));
  EXPECT_FALSE(is_periodic("step % world_size == rank"));
  EXPECT_FALSE(is_periodic("self.main_process or step % 8 == 0"));
}

// A branch that ends with such a line does not come to what follows it.
TEST(SourceBlocksEndsTest, FindsTheLastLineOfABranchThatLeaves) {
  const auto ends_at = [](const std::string& body, int line) {
    const std::string text = "for x in y:\n  if (x ==\n      1):\n" + body + "  go_on()\n";
    const auto blocks = BlocksAround(text, line, 8);
    return blocks.size() == 2 ? blocks[1].ends_at : -1;
  };
  EXPECT_EQ(ends_at("    return exchange(0)\n", 4), 4);
  EXPECT_EQ(ends_at("    log(\n      x\n    )\n    continue  # next\n", 4), 7);
  EXPECT_EQ(ends_at("    raise\n\n", 4), 4);
  EXPECT_EQ(ends_at("    if z:\n      break\n    log(x)\n", 6), 0) << "of the branch inside";
  EXPECT_EQ(ends_at("    returned = 1\n", 4), 0);
}

TEST(SourceBlocksLimitTest, KeepsTheInnermost) {
  EXPECT_EQ(InWords(BlocksAround(kProgram, 10, 1)), "condition 7-10");
}

TEST(SourceBlocksLimitTest, TakesAnyText) {
  for (const char* text : {"", "\n", "\t", "for", "\xff\xfe\n  for\n", "if x:\r\n    y()\r\n"}) {
    for (int line = -1; line < 4; ++line) BlocksAround(text, line, 8);
  }
  EXPECT_EQ(InWords(BlocksAround("if x:\r\n    y()\r\n", 2, 8)), "condition 1-2");
}

}  // namespace
}  // namespace rollcall
