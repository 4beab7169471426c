// SPDX-License-Identifier: Apache-2.0
#include "cli/remote/remote_commands.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace rollcall {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::Not;
using testing::StartsWith;

constexpr char kLine[] = "echo 'a b'; exit $?";

TEST(RemoteCommandsTest, SshGetsTheHostAfterItsFlagsAndOneString) {
  const Command command = SshCommand("node-1", kLine);
  EXPECT_EQ(command.front(), "ssh");
  EXPECT_THAT(command, Contains("BatchMode=yes"));
  const auto end = std::find(command.begin(), command.end(), "--");
  ASSERT_NE(end, command.end());
  EXPECT_THAT(std::vector<std::string>(end, command.end()),
              ElementsAre("--", "node-1", "exec /bin/sh -c 'echo '\\''a b'\\''; exit $?'"));
}

TEST(RemoteCommandsTest, SrunSharesTheNodeWithTheJob) {
  EXPECT_THAT(
      SrunCommand("12", "n1", kLine),
      ElementsAre("srun", "--jobid=12", "--nodelist=n1", "--overlap", "--nodes=1", "--ntasks=1",
                  "--quiet", "--mpi=none", "--chdir=/", "--", "/bin/sh", "-c", kLine));
}

TEST(RemoteCommandsTest, KubectlNamesTheContainer) {
  const Command command = KubectlCommand({"ml", "train-0", "main"}, kLine);
  EXPECT_THAT(command, ElementsAre("kubectl", "exec", "--stdin", "--namespace=ml",
                                   "--container=main", "train-0", "--", "/bin/sh", "-c", kLine));
  EXPECT_THAT(command, Not(Contains(StartsWith("--tty"))));
}

}  // namespace
}  // namespace rollcall
