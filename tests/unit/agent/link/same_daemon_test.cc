// SPDX-License-Identifier: Apache-2.0
// Which names are names of one daemon.
#include "agent/link/same_daemon.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <map>
#include <string>
#include <vector>

#include "base/unique_fd.h"

namespace rollcall {
namespace {

struct Case {
  const char* name;
  const char* some;
  const char* others;
  bool are_one;
  int listeners = 1;
};

// The host of the tests is node-17 with the address 10.0.0.17.
std::vector<std::string> ResolveForTests(const std::string& host) {
  static const std::map<std::string, std::vector<std::string>> kNames = {
      {"daemon", {"10.0.0.1"}},   {"daemon.example", {"10.0.0.1"}},  {"other", {"10.0.0.2"}},
      {"node-17", {"10.0.0.17"}}, {"all", {"10.0.0.3", "10.0.0.1"}}, {"v6", {"fd00::1"}}};
  const auto found = kNames.find(host);
  return found == kNames.end() ? std::vector<std::string>() : found->second;
}

const Case kCases[] = {
    {"the_same_name", "gone:7655", "gone:7655", true},
    {"capital_letters", "Gone:7655", "gone:7655", true},
    {"a_prefix_of_grpc", "dns:///gone:7655", "gone:7655", true},
    {"another_port", "daemon:7655", "daemon:7656", false},
    {"an_alias", "daemon:7655", "daemon.example:7655", true},
    {"an_alias_with_another_port", "daemon:7655", "daemon.example:7656", false},
    {"a_name_and_its_address", "daemon:7655", "10.0.0.1:7655", true},
    {"a_name_and_its_address_of_ipv6", "v6:7655", "[fd00::1]:7655", true},
    {"another_host", "daemon:7655", "other:7655", false},
    {"names_that_nobody_knows", "gone:7655", "lost:7655", false},
    {"a_name_with_several_addresses", "all:7655", "daemon:7655", true},
    {"a_list", "other:7655, daemon:7655", "10.0.0.9:7655,10.0.0.1:7655", true},
    {"lists_without_a_common_daemon", "other:7655,daemon:7655", "10.0.0.9:7655", false},
    {"localhost", "localhost:7655", "127.0.0.1:7655", true},
    {"loopback_of_both_kinds", "[::1]:7655", "127.0.0.1:7655", true},
    {"loopback_and_the_host_by_its_name", "localhost:7655", "node-17:7655", true},
    {"loopback_and_the_host_with_two_listeners", "localhost:7655", "node-17:7655", false, 2},
    {"loopback_and_the_host_without_a_listener", "localhost:7655", "node-17:7655", false, 0},
    {"loopback_and_another_host", "localhost:7655", "daemon:7655", false},
    {"one_socket_in_the_file_system", "unix:/run/a", "unix:/run/a", true},
    {"another_socket", "unix:/run/a", "unix:/run/b", false},
    {"a_socket_and_a_port", "unix:/run/a", "127.0.0.1:7655", false},
};

class SameDaemonTest : public testing::TestWithParam<Case> {};

TEST_P(SameDaemonTest, IsKnownByWhatTheNamesMean) {
  const Case& c = GetParam();
  const auto own = [&c] {
    return OwnHost{{"10.0.0.17"}, [&c](int port) { return port == 7655 ? c.listeners : 0; }};
  };
  EXPECT_EQ(HaveOneDaemon(c.some, c.others, ResolveForTests, own), c.are_one);
  EXPECT_EQ(HaveOneDaemon(c.others, c.some, ResolveForTests, own), c.are_one);
}

INSTANTIATE_TEST_SUITE_P(Names, SameDaemonTest, testing::ValuesIn(kCases),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(OwnHostTest, CountsTheSocketsThatListenOnAPort) {
  const UniqueFd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in any = {};
  any.sin_family = AF_INET;
  socklen_t size = sizeof(any);
  ASSERT_EQ(bind(fd.get(), reinterpret_cast<sockaddr*>(&any), size), 0);
  ASSERT_EQ(getsockname(fd.get(), reinterpret_cast<sockaddr*>(&any), &size), 0);
  const OwnHost own = DescribeOwnHost();
  EXPECT_EQ(own.count_listeners(ntohs(any.sin_port)), 0);
  ASSERT_EQ(listen(fd.get(), 1), 0);
  EXPECT_EQ(own.count_listeners(ntohs(any.sin_port)), 1);
}

}  // namespace
}  // namespace rollcall
