// SPDX-License-Identifier: Apache-2.0
#include "cli/examples.h"

#include <gtest/gtest.h>

#include "absl/strings/match.h"
#include "cli/commands.h"
#include "cli/describe.h"

namespace rollcall {
namespace {

TEST(ExamplesTest, EachSubcommandHasSome) {
  for (const CommandHelp& command : DescribeCommands()) {
    EXPECT_FALSE(command.examples.empty()) << command.name;
  }
}

TEST(ExamplesTest, AManPageHasThem) {
  for (const CommandHelp& command : DescribeCommands()) {
    if (command.name != "demo") continue;
    EXPECT_TRUE(absl::StrContains(CommandManPage(command, "1.0"),
                                  ".SH EXAMPLES\n.TP\n.B rollcall demo\nneeds python3"));
  }
}

}  // namespace
}  // namespace rollcall
