// SPDX-License-Identifier: Apache-2.0
// Where the flags of `rollcall run` end and the command begins.
#include "cli/usage.h"

#include <gtest/gtest.h>

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

namespace rollcall {
namespace {

struct Case {
  const char* name;
  const char* line;
  const char* flags;
  const char* command;
};

const Case kCases[] = {
    {"the_mark_ends_the_flags", "--fast --after=1s -- python train.py", "--fast --after=1s",
     "python train.py"},
    {"the_first_word_begins_the_command", "--fast python train.py --after=9", "--fast",
     "python train.py --after=9"},
    {"a_value_is_no_command", "--after 1s --fast python train.py", "--after 1s --fast",
     "python train.py"},
    {"a_mark_of_the_command_stays", "torchrun a.py -- --fast", "", "torchrun a.py -- --fast"},
    {"an_unknown_flag_has_no_value", "--bogus python", "--bogus", "python"},
    {"a_flag_without_its_value", "--after", "--after", ""},
    {"a_mark_is_no_value", "--after -- python train.py", "--after", "python train.py"},
    {"nothing_after_the_mark", "--fast --", "--fast", ""},
};

class SplitCommandTest : public testing::TestWithParam<Case> {};

TEST_P(SplitCommandTest, PartsFlagsAndCommand) {
  CLI::App app;
  std::string after;
  bool fast = false;
  app.add_option("--after", after);
  app.add_flag("--fast", fast);
  const FlagsAndCommand parts =
      SplitCommand(app, absl::StrSplit(GetParam().line, ' ', absl::SkipEmpty()));
  EXPECT_EQ(absl::StrJoin(parts.flags, " "), GetParam().flags);
  EXPECT_EQ(absl::StrJoin(parts.command, " "), GetParam().command);
}

INSTANTIATE_TEST_SUITE_P(Lines, SplitCommandTest, testing::ValuesIn(kCases),
                         [](const auto& row) { return std::string(row.param.name); });

TEST(FindNoTextTest, NamesTheFlagAlsoBehindOneThatHelpHides) {
  CLI::App app("", "rollcall x");
  std::string hidden, shown;
  app.add_option("--hidden", hidden)->group("");
  app.add_option("--shown", shown);
  app.parse(std::vector<std::string>{"--shown=\xff", "--hidden=a"});
  EXPECT_EQ(FindNoText(app), "--shown: \"?\" is not text in UTF-8");
}

}  // namespace
}  // namespace rollcall
