// SPDX-License-Identifier: Apache-2.0
#include "base/peer_address.h"

#include <gtest/gtest.h>

namespace rollcall {
namespace {

TEST(PeerAddressTest, ReadsWhatGrpcWrites) {
  const auto v4 = ParsePeer("ipv4:127.0.0.1:41922");
  ASSERT_TRUE(v4.has_value());
  EXPECT_EQ(v4->family, PeerAddress::Family::kIpv4);
  EXPECT_EQ(v4->port, 41922);
  EXPECT_TRUE(v4->IsLoopback());
  for (const char* text : {"ipv6:[::1]:41922", "ipv6:%5B::1%5D:41922", "ipv6:%5b%3a:1%5d:41922"}) {
    const auto v6 = ParsePeer(text);
    ASSERT_TRUE(v6.has_value()) << text;
    EXPECT_EQ(v6->family, PeerAddress::Family::kIpv6);
    EXPECT_EQ(v6->port, 41922);
    EXPECT_TRUE(v6->IsLoopback());
  }
}

TEST(PeerAddressTest, AnIpv4AddressInsideIpv6IsIpv4) {
  const auto peer = ParsePeer("ipv6:%5B::ffff:127.0.0.1%5D:80");
  ASSERT_TRUE(peer.has_value());
  EXPECT_EQ(peer->family, PeerAddress::Family::kIpv4);
  EXPECT_TRUE(peer->IsLoopback());
  EXPECT_FALSE(ParsePeer("ipv6:[::ffff:10.0.0.1]:80")->IsLoopback());
}

TEST(PeerAddressTest, OtherAddressesAreNotLoopback) {
  for (const char* text :
       {"ipv4:10.0.0.1:80", "ipv4:0.0.0.0:80", "ipv4:128.0.0.1:80", "ipv6:[::]:80", "ipv6:[::2]:80",
        "ipv6:[2001:db8::1]:80", "ipv6:[100::1]:80"}) {
    const auto peer = ParsePeer(text);
    ASSERT_TRUE(peer.has_value()) << text;
    EXPECT_FALSE(peer->IsLoopback()) << text;
  }
}

TEST(PeerAddressTest, MalformedTextIsNotAnAddress) {
  for (const std::string& text :
       {std::string(), std::string("ipv4:"), std::string("ipv4:127.0.0.1"),
        std::string("ipv4:127.0.0.1:"), std::string("ipv4:127.0.0.1:0"),
        std::string("ipv4:127.0.0.1:65536"), std::string("ipv4:127.0.0.1:+80"),
        std::string("ipv4:127.1:80"), std::string("ipv4:127.0.0.1%00:80"),
        std::string("ipv4:::1:80"), std::string("ipv6:::1:80"), std::string("ipv6:[::1]"),
        std::string("ipv6:[::1%25lo]:80"), std::string("ipv6:%5"), std::string("ipv6:%zz"),
        std::string("unix:/run/x"), std::string("127.0.0.1:80"), std::string("ipv4:localhost:80"),
        "ipv4:" + std::string(1 << 20, '1')}) {
    EXPECT_FALSE(ParsePeer(text).has_value()) << text.substr(0, 40);
  }
}

TEST(PeerAddressTest, AUnixSocketHasAPathOrNothing) {
  EXPECT_TRUE(IsUnixPeer("unix:"));
  EXPECT_TRUE(IsUnixPeer("unix:/run/rollcall.sock"));
  EXPECT_FALSE(IsUnixPeer("unix-abstract:rollcall"));
  EXPECT_FALSE(IsUnixPeer("ipv4:127.0.0.1:80"));
}

TEST(PeerAddressTest, LoopbackAndUnixSocketsStayOnThisHost) {
  for (const char* peer : {"ipv4:127.0.0.2:80", "ipv6:[::1]:80", "ipv6:%5B::1%5D:80",
                           "ipv6:[::ffff:127.0.0.1]:80", "unix:"}) {
    EXPECT_TRUE(IsPeerOnThisHost(peer)) << peer;
  }
  for (const char* peer : {"ipv4:10.0.0.1:80", "ipv6:[2001:db8::1]:80", "", "unix-abstract:x"}) {
    EXPECT_FALSE(IsPeerOnThisHost(peer)) << peer;
  }
}

}  // namespace
}  // namespace rollcall
