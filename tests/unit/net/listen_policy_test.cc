// SPDX-License-Identifier: Apache-2.0
#include "net/listen_policy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace rollcall {
namespace {

using testing::HasSubstr;

struct Case {
  std::string name;
  std::string address;
  ListenGuards guards;
  bool is_open = false;
};

void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

constexpr ListenGuards kNone = {};
constexpr ListenGuards kTls = {true, false, false};
constexpr ListenGuards kTokens = {false, true, false};
constexpr ListenGuards kBoth = {true, true, false};
constexpr ListenGuards kInsecure = {false, false, true};

class ListenPolicyTest : public testing::TestWithParam<Case> {};

TEST_P(ListenPolicyTest, OpensOnlyWhatIsGuarded) {
  EXPECT_EQ(CheckListen("--listen", GetParam().address, GetParam().guards).ok(),
            GetParam().is_open);
}

INSTANTIATE_TEST_SUITE_P(
    Addresses, ListenPolicyTest,
    testing::Values(Case{"loopback", "127.0.0.1:7655", kNone, true},
                    Case{"another_loopback", "127.8.9.1:7655", kNone, true},
                    Case{"loopback_of_ipv6", "[::1]:7655", kNone, true},
                    Case{"localhost", "localhost:7655", kNone, true},
                    Case{"a_unix_socket", "unix:/run/rollcalld.sock", kNone, true},
                    Case{"no_address", "", kNone, true},
                    Case{"all_addresses", "0.0.0.0:7655", kNone, false},
                    Case{"all_addresses_of_ipv6", "[::]:7655", kNone, false},
                    Case{"a_name", "node-17:7655", kNone, false},
                    Case{"a_name_that_begins_like_loopback", "127.example:7655", kNone, false},
                    Case{"tls_for_everybody", "0.0.0.0:7655", kTls, false},
                    Case{"tokens_in_the_clear", "0.0.0.0:7655", kTokens, false},
                    Case{"tls_and_tokens", "0.0.0.0:7655", kBoth, true},
                    Case{"insecure", "0.0.0.0:7655", kInsecure, true}),
    [](const auto& test) { return test.param.name; });

TEST(ListenPolicyErrorTest, SaysWhatIsMissingAndWhatToType) {
  const auto text = [](const ListenGuards& guards) {
    return std::string(CheckListen("--http", "0.0.0.0:7656", guards).message());
  };
  EXPECT_THAT(
      text(kNone),
      HasSubstr(
          "--http=0.0.0.0:7656: other hosts can reach this address, so it needs TLS and a way to "
          "authenticate its callers"));
  EXPECT_THAT(text(kTls), HasSubstr("it needs a way to authenticate its callers"));
  EXPECT_THAT(text(kTokens), HasSubstr("it needs TLS\n"));
  EXPECT_THAT(text(kNone), HasSubstr("rollcall pki init DIR"));
  EXPECT_THAT(text(kNone), HasSubstr("--insecure"));
}

// `rollcall run` must not name flags that it does not have.
TEST(ListenPolicyErrorTest, WhereThereIsNoTlsItNamesATunnel) {
  const std::string text(
      CheckListen("--http", "0.0.0.0:0", {false, true, false, /*offers_tls=*/false}).message());
  EXPECT_THAT(text, HasSubstr("ssh -L"));
  EXPECT_THAT(text, HasSubstr("--insecure"));
  EXPECT_THAT(text, testing::Not(HasSubstr("--tls-")));
}

}  // namespace
}  // namespace rollcall
