// SPDX-License-Identifier: Apache-2.0
#include "daemon/server/pending_connections.h"

#include <gtest/gtest.h>

namespace rollcall {
namespace {

constexpr int64_t kSecond = 1'000'000'000;
using Room = PendingConnections::Room;

PendingLimits Small() {
  PendingLimits limits;
  limits.all = 4;
  limits.per_network = 2;
  return limits;
}

PendingConnections::Connection From(const std::string& network, int fd, int64_t since_ns) {
  return {fd, 100u + static_cast<uint64_t>(fd), network + ":" + std::to_string(fd), network,
          since_ns, false};
}

TEST(PendingConnectionsTest, AQuarterOfTheDescriptorsIsForUnknownCallers) {
  EXPECT_EQ(PendingLimitsFor(1024).all, 256u);
  EXPECT_EQ(PendingLimitsFor(1024).per_network, 128u);
  EXPECT_EQ(PendingLimitsFor(1 << 20).all, 4096u);
  EXPECT_EQ(PendingLimitsFor(0).all, 32u);
}

TEST(PendingConnectionsTest, TheZoneIsNoPartOfAPeersKey) {
  EXPECT_EQ(PeerKey("ipv6:[fe80::1%25eth0]:80"), "ipv6:[fe80::1]:80");
  EXPECT_EQ(PeerKey("ipv6:[fe80::1]:80"), "ipv6:[fe80::1]:80");
  EXPECT_EQ(PeerKey("ipv4:10.0.0.7:53214"), "ipv4:10.0.0.7:53214");
}

TEST(PendingConnectionsTest, ASilentConnectionHasLessTimeThanOneThatSpeaks) {
  PendingConnections pending(Small());
  pending.Add(From("a", 5, 0));
  pending.Add(From("b", 6, 0));
  pending.Spoke(6);
  EXPECT_TRUE(pending.Late(5 * kSecond - 1).empty());
  ASSERT_EQ(pending.Late(5 * kSecond).size(), 1u);
  EXPECT_EQ(pending.Late(5 * kSecond)[0].fd, 5);
  EXPECT_EQ(pending.Late(15 * kSecond).size(), 2u);
}

TEST(PendingConnectionsTest, AKnownCallersConnectionHasNoDeadline) {
  PendingConnections pending(Small());
  pending.Add(From("a", 5, 0));
  pending.RemovePeer("a:5");
  EXPECT_TRUE(pending.Late(100 * kSecond).empty());
  EXPECT_EQ(pending.size(), 0u);
}

TEST(PendingConnectionsTest, OneNetworkCannotTakeTheRoomOfOthers) {
  PendingConnections pending(Small());
  pending.Add(From("a", 5, 0));
  pending.Add(From("a", 6, 1));
  EXPECT_EQ(pending.FindPlaceFor("a", 2).room, Room::kNone);
  EXPECT_EQ(pending.FindPlaceFor("b", 2).room, Room::kYes);
  EXPECT_EQ(pending.FindPlace(2).room, Room::kYes);
}

TEST(PendingConnectionsTest, TheOldestSilentOneOfANetworkMakesRoomForItsNext) {
  PendingConnections pending(Small());
  pending.Add(From("a", 5, 1));
  pending.Add(From("a", 6, 0));
  const auto place = pending.FindPlaceFor("a", kSecond + 1);
  EXPECT_EQ(place.room, Room::kReplaces);
  EXPECT_EQ(place.replaces, 6);
}

TEST(PendingConnectionsTest, AHandshakeIsReplacedOnlyAfterTheTimeThatClientsWait) {
  PendingConnections pending(Small());
  for (const int fd : {5, 6}) {
    pending.Add(From("a", fd, fd));
    pending.Spoke(fd);
  }
  EXPECT_EQ(pending.FindPlaceFor("a", 4 * kSecond).room, Room::kNone);
  EXPECT_EQ(pending.FindPlaceFor("a", 6 * kSecond).replaces, 5);
}

TEST(PendingConnectionsTest, WhenAllIsFullTheNetworkWithMostMakesRoom) {
  PendingConnections pending(Small());
  pending.Add(From("b", 7, 0));
  pending.Add(From("a", 5, 1));
  pending.Add(From("a", 6, 2));
  pending.Add(From("c", 8, 0));
  EXPECT_EQ(pending.FindPlace(3).room, Room::kNone) << "all of them are young";
  EXPECT_EQ(pending.FindPlace(2 * kSecond).replaces, 5);
}

TEST(PendingConnectionsTest, ADescriptorThatComesAgainIsANewConnection) {
  PendingConnections pending(Small());
  pending.Add(From("a", 5, 0));
  pending.Add(From("b", 5, 1));
  EXPECT_EQ(pending.size(), 1u);
  EXPECT_EQ(pending.Find(5)->network, "b");
  pending.RemovePeer("a:5");
  EXPECT_EQ(pending.size(), 1u) << "the peer of the connection that was there before";
  EXPECT_EQ(pending.FindPlaceFor("a", 2).room, Room::kYes);
}

}  // namespace
}  // namespace rollcall
