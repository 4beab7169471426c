// SPDX-License-Identifier: Apache-2.0
#include "security/failed_logins.h"

#include <gtest/gtest.h>

namespace rollcall {
namespace {

constexpr int64_t kSecond = 1'000'000'000;
constexpr char kPeer[] = "ipv4:10.0.0.1:41922";

TEST(FailedLoginsTest, BlocksAnAddressAfterTenFailuresInAMinute) {
  FailedLogins logins;
  for (int i = 0; i < 10; ++i) EXPECT_EQ(logins.Begin(kPeer, i * kSecond), 0) << i;
  EXPECT_EQ(logins.Begin(kPeer, 20 * kSecond), 40);
  EXPECT_EQ(logins.BlockedFor("ipv4:10.0.0.1:7", 59 * kSecond + 1), 1);
  EXPECT_EQ(logins.BlockedFor("ipv4:10.0.0.2:41922", 20 * kSecond), 0);
  EXPECT_EQ(logins.Begin(kPeer, 60 * kSecond), 0);
}

TEST(FailedLoginsTest, SuccessesDoNotCount) {
  FailedLogins logins;
  for (int i = 0; i < 50; ++i) {
    EXPECT_EQ(logins.Begin(kPeer, i), 0);
    logins.Succeeded(kPeer, i);
  }
}

TEST(FailedLoginsTest, AttemptsAtOneTimeCount) {
  FailedLogins logins;
  int begun = 0;
  for (int i = 0; i < 100; ++i) begun += logins.Begin(kPeer, 0) == 0 ? 1 : 0;
  EXPECT_EQ(begun, 10);
}

TEST(FailedLoginsTest, AddressesOfOneNetworkOfIpv6AreOne) {
  EXPECT_EQ(NetworkOf("ipv6:[2001:db8:1:2::5]:80"), NetworkOf("ipv6:[2001:db8:1:2:ffff::6]:81"));
  EXPECT_NE(NetworkOf("ipv6:[2001:db8:1:2::5]:80"), NetworkOf("ipv6:[2001:db8:1:3::5]:80"));
  EXPECT_EQ(NetworkOf("ipv4:10.0.0.1:80"), "ipv4:10.0.0.1");
  EXPECT_NE(NetworkOf("ipv4:10.0.0.1:80"), NetworkOf("ipv4:10.0.0.2:80"));
  EXPECT_EQ(NetworkOf("unix:"), "unix");
}

TEST(FailedLoginsTest, AllAddressesOfLoopbackAreOne) {
  const std::string here = NetworkOf("ipv4:127.0.0.1:1");
  for (const char* peer : {"ipv4:127.9.8.7:2", "ipv6:[::1]:3", "ipv6:[::ffff:127.0.0.2]:4"}) {
    EXPECT_EQ(NetworkOf(peer), here) << peer;
  }
  EXPECT_NE(NetworkOf("ipv4:10.0.0.1:1"), here);
}

TEST(FailedLoginsTest, RemembersABoundedNumberOfAddresses) {
  FailedLogins logins({2, 60 * kSecond, 3});
  for (int i = 0; i < 2; ++i) logins.Begin(kPeer, 0);
  EXPECT_GT(logins.BlockedFor(kPeer, 1), 0);
  for (const char* other : {"ipv4:1.1.1.1:1", "ipv4:1.1.1.2:1", "ipv4:1.1.1.3:1"}) {
    logins.Begin(other, 1);
  }
  EXPECT_EQ(logins.BlockedFor(kPeer, 2), 0);  // displaced, as the oldest
}

TEST(FailedLoginsTest, LogsAnAddressOnceAMinute) {
  FailedLogins logins;
  EXPECT_TRUE(logins.ShouldLog(kPeer, 0));
  EXPECT_FALSE(logins.ShouldLog(kPeer, 59 * kSecond));
  EXPECT_TRUE(logins.ShouldLog("ipv4:10.0.0.2:1", 0));
  EXPECT_TRUE(logins.ShouldLog(kPeer, 60 * kSecond));
}

}  // namespace
}  // namespace rollcall
