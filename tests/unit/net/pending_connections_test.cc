// SPDX-License-Identifier: Apache-2.0
#include "net/pending_connections.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <set>

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

constexpr PendingConnections::Progress kFirstByte = {1, false, false};

PendingConnections::Connection From(const std::string& network, int fd, int64_t since_ns) {
  return {fd, 100u + static_cast<uint64_t>(fd), network + ":" + std::to_string(fd), network,
          since_ns};
}

TEST(PendingConnectionsTest, AQuarterOfTheDescriptorsIsForUnknownCallers) {
  EXPECT_EQ(PendingLimitsFor(1024).all, 256u);
  EXPECT_EQ(PendingLimitsFor(1024).per_network, 128u);
  EXPECT_EQ(PendingLimitsFor(1 << 20).all, 16384u);
  EXPECT_EQ(PendingLimitsFor(0).all, 32u);
}

TEST(PendingConnectionsTest, WhereFewPlacesAreASilentClientMakesRoomSooner) {
  EXPECT_EQ(PendingLimitsFor(200).replaceable_silent_ns, kSecond / 2);
  EXPECT_EQ(PendingLimitsFor(1024).replaceable_silent_ns, 640'000'000);
  EXPECT_EQ(PendingLimitsFor(1 << 20).replaceable_silent_ns, 1'280'000'000);
}

// Each takes 100 KiB there.
TEST(PendingConnectionsTest, FewUnknownCallersAreInGrpcAtATime) {
  EXPECT_EQ(PendingLimitsFor(1 << 20).in_grpc, 256u);
  EXPECT_EQ(PendingLimitsFor(1024).in_grpc, 128u);
}

// Only then is it worth to ask who the users of this machine are. Slow handshakes of one of them
// would have all places in gRPC before a quarter of all places is taken.
TEST(PendingConnectionsTest, AQuarterOfThePlacesInGrpcIsACrowd) {
  PendingConnections pending(PendingLimitsFor(1 << 20));
  int fd = 5;
  for (; !pending.IsCrowded() && fd < 1000; ++fd) pending.Add(From("loopback", fd, 0));
  EXPECT_EQ(pending.size(), 64u);
  for (; fd < 2000; ++fd) pending.Add(From("loopback, uid 1000", fd, 0));
  while (pending.TakeTurn(0)) {
  }
  pending.Add(From("loopback", fd, 1));
  EXPECT_TRUE(pending.TakeTurn(1).has_value());
}

TEST(PendingConnectionsTest, TheZoneIsNotAPartOfAPeersKey) {
  EXPECT_EQ(PeerKey("ipv6:[fe80::1%25eth0]:80"), "ipv6:[fe80::1]:80");
  EXPECT_EQ(PeerKey("ipv6:[fe80::1]:80"), "ipv6:[fe80::1]:80");
  EXPECT_EQ(PeerKey("ipv4:10.0.0.7:53214"), "ipv4:10.0.0.7:53214");
}

TEST(PendingConnectionsTest, ASilentConnectionHasLessTimeThanOneThatSpeaks) {
  PendingConnections pending(Small());
  pending.Add(From("a", 5, 0));
  pending.Add(From("b", 6, 0));
  while (pending.TakeTurn(0)) {
  }
  pending.Saw(6, kFirstByte, 0);
  EXPECT_TRUE(pending.Late(5 * kSecond - 1).empty());
  ASSERT_EQ(pending.Late(5 * kSecond).size(), 1u);
  EXPECT_EQ(pending.Late(5 * kSecond)[0].fd, 5);
  EXPECT_EQ(pending.Late(15 * kSecond).size(), 2u);
}

TEST(PendingConnectionsTest, AKnownCallersConnectionHasNoDeadline) {
  PendingConnections pending(Small());
  pending.Add(From("a", 5, 0));
  ASSERT_EQ(pending.TakeTurn(0), 5);
  pending.RemovePeer("a:5");
  EXPECT_TRUE(pending.Late(100 * kSecond).empty());
  EXPECT_EQ(pending.size(), 0u);
}

TEST(PendingConnectionsTest, ALateCallOfAFormerConnectionAdmitsNoneThatWaits) {
  PendingConnections pending(Small());
  pending.Add(From("a", 5, 0));
  pending.RemovePeer("a:5");
  EXPECT_EQ(pending.size(), 1u) << "nobody would close its descriptor";
  EXPECT_EQ(pending.TakeTurn(0), 5);
}

TEST(PendingConnectionsTest, OneNetworkCannotTakeTheRoomOfOthers) {
  PendingConnections pending(Small());
  pending.Add(From("a", 5, 0));
  pending.Add(From("a", 6, 1));
  EXPECT_EQ(pending.FindPlaceFor("a", 2).room, Room::kNone);
  EXPECT_EQ(pending.FindPlaceFor("b", 2).room, Room::kYes);
  EXPECT_EQ(pending.FindPlace(2).room, Room::kYes);
}

TEST(PendingConnectionsTest, TheOldestOfANetworkMakesRoomForItsNext) {
  PendingConnections pending(Small());
  pending.Add(From("a", 5, 1));
  pending.Add(From("a", 6, 0));
  for (const int64_t now : {0, 1}) pending.TakeTurn(now);  // 5, then 6
  const auto place = pending.FindPlaceFor("a", 5 * kSecond);
  EXPECT_EQ(place.room, Room::kReplaces);
  EXPECT_EQ(place.replaces, 5);
}

TEST(PendingConnectionsTest, AHandshakeIsReplacedOnlyAfterTheTimeThatClientsWait) {
  PendingConnections pending(Small());
  for (const int fd : {5, 6}) pending.Add(From("a", fd, fd));
  while (pending.TakeTurn(10)) {
  }
  for (const int fd : {5, 6}) pending.Saw(fd, {1, false, true}, 10);
  EXPECT_EQ(pending.FindPlaceFor("a", 4 * kSecond).room, Room::kNone);
  EXPECT_EQ(pending.FindPlaceFor("a", 6 * kSecond).room, Room::kReplaces);
}

// Its client has sent a byte, or gRPC has not read the last one.
TEST(PendingConnectionsTest, AHandshakeThatGoesOnIsNotReplaced) {
  PendingConnections pending(Small());
  for (const int fd : {5, 6}) pending.Add(From("a", fd, fd));
  while (pending.TakeTurn(10)) {
  }
  for (int64_t now_ns = 0; now_ns < 4 * kSecond; now_ns += kSecond / 5) {
    const auto bytes = static_cast<uint64_t>(now_ns);
    pending.Saw(5, {1 + bytes, false, false}, now_ns);
    pending.Saw(6, {1, true, false}, now_ns);
  }
  EXPECT_EQ(pending.FindPlaceFor("a", 4 * kSecond).room, Room::kNone);
}

TEST(PendingConnectionsTest, AHandshakeThatStandsMakesRoomBeforeANewcomerGivesUp) {
  PendingConnections pending(Small());
  for (const int fd : {5, 6}) pending.Add(From("a", fd, fd));
  while (pending.TakeTurn(10)) {
  }
  for (const int64_t now_ns : {kSecond / 5, kSecond}) {
    for (const int fd : {5, 6}) pending.Saw(fd, kFirstByte, now_ns);
  }
  EXPECT_EQ(pending.FindPlaceFor("a", kSecond * 27 / 10 - 1).room, Room::kNone);
  const auto place = pending.FindPlaceFor("a", kSecond * 27 / 10);
  EXPECT_EQ(place.room, Room::kReplaces);
}

TEST(PendingConnectionsTest, WhenAllIsFullTheNetworkWithMostMakesRoom) {
  PendingConnections pending(Small());
  pending.Add(From("b", 7, 0));
  pending.Add(From("a", 5, 1));
  pending.Add(From("a", 6, 2));
  pending.Add(From("c", 8, 0));
  EXPECT_EQ(pending.FindPlace(3).replaces, 5) << "all are young, and one network has two of four";
  EXPECT_EQ(pending.FindPlace(6 * kSecond).replaces, 5);
}

TEST(PendingConnectionsTest, ThisMachineHasTheLimitOfAllAlone) {
  PendingConnections pending(Small());
  for (const int fd : {5, 6, 7}) pending.Add(From("loopback", fd, 0));
  EXPECT_EQ(pending.FindPlaceFor("loopback", 1).room, Room::kYes);
}

// A thousand agents return at once: gRPC has a few of them at a time, and serves all in the end.
TEST(PendingConnectionsTest, GrpcHasAFewAtATime) {
  PendingLimits limits;
  limits.in_grpc = 3;
  PendingConnections pending(limits);
  for (int fd = 10; fd < 1010; ++fd) {
    pending.Add(From("host-" + std::to_string(fd), fd, fd));
  }
  std::set<int> in_grpc, served;
  while (served.size() < 1000) {
    while (const auto next = pending.TakeTurn(2000)) in_grpc.insert(*next);
    ASSERT_EQ(in_grpc.size(), std::min<size_t>(3, 1000 - served.size()));
    const int fd = *in_grpc.begin();
    pending.Remove(fd);
    in_grpc.erase(fd);
    served.insert(fd);
  }
  EXPECT_FALSE(pending.HasWaiting());
  EXPECT_EQ(pending.size(), 0u);
}

TEST(PendingConnectionsTest, TheLastToComeHasTheFirstTurn) {
  PendingConnections pending(Small());
  pending.Add(From("a", 5, 5));
  pending.Add(From("a", 6, 6));
  pending.Add(From("b", 7, 4));
  EXPECT_EQ(pending.TakeTurn(10), 6);
  EXPECT_EQ(pending.TakeTurn(10), 7) << "network a has one in gRPC already";
  EXPECT_EQ(pending.TakeTurn(10), 5);
  EXPECT_EQ(pending.TakeTurn(10), std::nullopt);
}

TEST(PendingConnectionsTest, OneNetworkCannotTakeAllTurns) {
  PendingLimits limits;
  limits.in_grpc_per_network = 1;
  PendingConnections pending(limits);
  for (const int fd : {5, 6, 7}) {
    pending.Add(From(fd == 7 ? "b" : "a", fd, fd));
  }
  EXPECT_EQ(pending.TakeTurn(10), 7);
  EXPECT_EQ(pending.TakeTurn(10), 6);
  EXPECT_EQ(pending.TakeTurn(1), std::nullopt);
  pending.Remove(6);
  EXPECT_EQ(pending.TakeTurn(1), 5);
}

TEST(PendingConnectionsTest, ThisMachineLeavesAQuarterOfTheTurnsToOthers) {
  PendingLimits limits;
  limits.in_grpc = 8;
  limits.in_grpc_per_network = 4;
  PendingConnections pending(limits);
  for (int fd = 100; fd < 120; ++fd) pending.Add(From(std::string(kOwnNetwork), fd, 0));
  int taken = 0;
  while (pending.TakeTurn(1)) ++taken;
  EXPECT_EQ(taken, 6);
  pending.Add(From("10.0.0.7", 7, 1));
  EXPECT_EQ(pending.TakeTurn(1), 7);
}

TEST(PendingConnectionsTest, ASlowCallerMakesRoomForThoseThatWait) {
  PendingLimits limits;
  limits.in_grpc = 1;
  PendingConnections pending(limits);
  pending.Add(From("a", 5, 0));
  ASSERT_EQ(pending.TakeTurn(0), 5);
  pending.Saw(5, kFirstByte, 4 * kSecond);
  EXPECT_TRUE(pending.Late(6 * kSecond).empty()) << "nobody waits for its place";
  pending.Add(From("b", 6, 6 * kSecond));
  ASSERT_EQ(pending.Late(6 * kSecond).size(), 1u);
  EXPECT_EQ(pending.Late(6 * kSecond)[0].fd, 5);
}

TEST(PendingConnectionsTest, ASlowCallerStaysWhileOthersWaitForPlacesOfTheirOwnNetwork) {
  PendingLimits limits;
  limits.in_grpc_per_network = 1;
  PendingConnections pending(limits);
  pending.Add(From("a", 5, 0));
  pending.Add(From("b", 6, 0));
  pending.Add(From("b", 7, 1));
  while (pending.TakeTurn(1)) {
  }
  ASSERT_TRUE(pending.HasWaiting());
  for (const int fd : {5, 7}) pending.Saw(fd, kFirstByte, kSecond);
  ASSERT_EQ(pending.Late(4 * kSecond).size(), 1u);
  EXPECT_EQ(pending.Late(4 * kSecond)[0].fd, 7);
}

TEST(PendingConnectionsTest, YoungStrangersWithAllPlacesMakeRoom) {
  PendingLimits limits;
  limits.all = 16;
  PendingConnections pending(limits);
  int fd = 100;
  for (int i = 0; i < 6; ++i) pending.Add(From("a", fd++, i));
  for (int i = 0; i < 8; ++i) pending.Add(From("b", fd++, i));
  pending.Add(From("c", fd++, 0));
  pending.Add(From("c", fd++, 0));
  const PendingConnections::Place place = pending.FindPlace(20);
  EXPECT_EQ(place.room, Room::kReplaces);
  EXPECT_EQ(place.replaces, 106) << "the oldest one of the network that has most";
}

TEST(PendingConnectionsTest, AYoungFleetOnThisHostWaitsInOrder) {
  PendingLimits limits;
  limits.all = 16;
  PendingConnections pending(limits);
  for (int fd = 100; fd < 116; ++fd) pending.Add(From(std::string(kOwnNetwork), fd, 0));
  EXPECT_EQ(pending.FindPlace(1).room, Room::kNone);
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
