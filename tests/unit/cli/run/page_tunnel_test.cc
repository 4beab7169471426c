// SPDX-License-Identifier: Apache-2.0
#include "cli/run/page_tunnel.h"

#include <gtest/gtest.h>

#include <map>
#include <string>

namespace rollcall {
namespace {

using Variables = std::map<std::string, std::string>;

std::string Tunnel(const Variables& variables, const std::string& address) {
  return TunnelToPage(address, "node-17", [&variables](const char* name) {
    const auto at = variables.find(name);
    return at == variables.end() ? nullptr : at->second.c_str();
  });
}

TEST(PageTunnelTest, LeadsFromThePersonsComputerToAComputeNode) {
  EXPECT_EQ(Tunnel({{"SLURM_JOB_ID", "4711"}}, "127.0.0.1:41234"),
            "ssh -L 41234:127.0.0.1:41234 node-17");
  EXPECT_EQ(Tunnel({{"SSH_CONNECTION", "10.0.0.9 50000 10.0.0.1 22"}}, "[::1]:41234"),
            "ssh -L 41234:[::1]:41234 node-17");
}

TEST(PageTunnelTest, IsNotNeededOnThePersonsOwnComputer) {
  EXPECT_EQ(Tunnel({}, "127.0.0.1:41234"), "");
  EXPECT_EQ(Tunnel({{"SSH_CONNECTION", ""}}, "127.0.0.1:41234"), "");
}

TEST(PageTunnelTest, IsNotNeededForAPageThatOtherHostsReach) {
  EXPECT_EQ(Tunnel({{"SLURM_JOB_ID", "4711"}}, "0.0.0.0:41234"), "");
  EXPECT_EQ(Tunnel({{"SLURM_JOB_ID", "4711"}}, ""), "");
}

}  // namespace
}  // namespace rollcall
