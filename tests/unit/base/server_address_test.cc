// SPDX-License-Identifier: Apache-2.0
#include "base/server_address.h"

#include <gtest/gtest.h>

namespace rollcall {
namespace {

struct Case {
  const char* address;
  const char* host;
  const char* port;
  bool is_on_this_host;
};

class ServerAddressTest : public testing::TestWithParam<Case> {};

TEST_P(ServerAddressTest, IsSplit) {
  const ServerAddress server = SplitServerAddress(GetParam().address);
  EXPECT_EQ(server.host, GetParam().host);
  EXPECT_EQ(server.port, GetParam().port);
  EXPECT_EQ(IsOnThisHost(GetParam().address), GetParam().is_on_this_host);
}

INSTANTIATE_TEST_SUITE_P(
    Addresses, ServerAddressTest,
    testing::Values(Case{"node-1:7655", "node-1", "7655", false},
                    Case{"dns:///node-1:7655", "node-1", "7655", false},
                    Case{"localhost:7655", "localhost", "7655", true},
                    Case{"localhost.example:7655", "localhost.example", "7655", false},
                    Case{"127.0.0.1:7655", "127.0.0.1", "7655", true},
                    Case{"127.8.9.10:7655", "127.8.9.10", "7655", true},
                    Case{"127.0.0.1.example:7655", "127.0.0.1.example", "7655", false},
                    Case{"ipv4:10.0.0.1:7655", "10.0.0.1", "7655", false},
                    Case{"0.0.0.0:7655", "0.0.0.0", "7655", false},
                    Case{"[::1]:7655", "::1", "7655", true},
                    Case{"ipv6:[fd00::1]:7655", "fd00::1", "7655", false},
                    Case{"[::1", "::1", "", true}, Case{"::1", "::1", "", true},
                    Case{"node-1", "node-1", "", false}, Case{"", "", "", false},
                    Case{"unix:/run/rollcall/socket", "/run/rollcall/socket", "", true},
                    Case{"unix:///run/socket", "/run/socket", "", true}));

TEST(IpAddressTest, EndsAtNoNul) {
  EXPECT_TRUE(IsIpAddress("::1"));
  EXPECT_FALSE(IsIpAddress(std::string("::1\0.example", 12)));
  EXPECT_FALSE(IsOnThisHost(std::string("[::1\0]:7655", 11)));
}

}  // namespace
}  // namespace rollcall
