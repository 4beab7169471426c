// SPDX-License-Identifier: Apache-2.0
#include "agent/agent_flags.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <CLI/CLI.hpp>
#include <fstream>
#include <string>
#include <vector>

#include "temporary_tree.h"

namespace rollcall {
namespace {

constexpr char kList[] = "a:7655,b:7655";

class AgentFlagsTest : public testing::Test {
 protected:
  // What --daemon is after these words of the command line.
  std::string Daemon(std::vector<std::string> words) {
    AgentFlags flags;
    const auto app = MakeAgentApp(&flags);
    std::vector<char*> argv = {const_cast<char*>("rollcall-agent")};
    for (std::string& word : words) argv.push_back(word.data());
    const auto end =
        ParseServiceFlags(static_cast<int>(argv.size()), argv.data(), app.get(), flags.service);
    return end.has_value() ? "refused" : flags.daemon.address;
  }

  const TemporaryTree folder_;
};

TEST_F(AgentFlagsTest, TakesSeveralDaemonsFromTheCommandLine) {
  EXPECT_EQ(Daemon({"--daemon=a:7655,b:7655"}), kList);
  EXPECT_EQ(Daemon({"--daemon", "a:7655,b:7655"}), kList);
}

TEST_F(AgentFlagsTest, TakesSeveralDaemonsFromTheEnvironment) {
  setenv("ROLLCALL_DAEMON", kList, 1);
  EXPECT_EQ(Daemon({}), kList);
  unsetenv("ROLLCALL_DAEMON");
}

TEST_F(AgentFlagsTest, TakesSeveralDaemonsFromTheFile) {
  const std::string path = folder_.root() + "/agent.yaml";
  std::ofstream(path) << "daemon: a:7655,b:7655\n";
  EXPECT_EQ(Daemon({"--config=" + path}), kList);
}

TEST_F(AgentFlagsTest, ReportsToThisHostWithoutTheFlag) { EXPECT_EQ(Daemon({}), "127.0.0.1:7655"); }

}  // namespace
}  // namespace rollcall
