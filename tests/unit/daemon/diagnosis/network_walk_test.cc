// SPDX-License-Identifier: Apache-2.0
// Rows of states, and where the walk ends.
#include "daemon/diagnosis/network/network_walk.h"

#include <gtest/gtest.h>

#include <string>

namespace rollcall {
namespace {

using W = NetworkWait;
using F = NetworkFault;

struct Row {
  int32_t rank = 0, peer = 0;
  bool sends = false;
  W wait = W::kNone;
  uint64_t ended = 3;
  int32_t channel = 0;
};

constexpr bool kSends = true, kReceives = false;

std::vector<NetworkSample> SamplesOf(const std::vector<Row>& rows, int32_t ranks) {
  std::vector<NetworkSample> samples(static_cast<size_t>(ranks));
  for (int32_t rank = 0; rank < ranks; ++rank) samples[static_cast<size_t>(rank)].rank = rank;
  for (const Row& row : rows) {
    const uint64_t begun = row.wait == W::kNone ? row.ended : row.ended + 1;
    samples[static_cast<size_t>(row.rank)].states.push_back(
        {row.channel, row.peer, row.sends, begun, row.ended, row.wait, 1});
  }
  return samples;
}

// Every rank of a ring waits for data, and so lacks data to send.
std::vector<Row> InnocentRing(int32_t ranks, int32_t channel = 0) {
  std::vector<Row> rows;
  for (int32_t rank = 0; rank < ranks; ++rank) {
    const int32_t next = (rank + 1) % ranks, before = (rank + ranks - 1) % ranks;
    rows.push_back({rank, next, kSends, W::kSendGpu, 3, channel});
    rows.push_back({rank, before, kReceives, W::kReceive, 3, channel});
  }
  return rows;
}

// The same, but for one state.
std::vector<Row> With(std::vector<Row> rows, int32_t rank, bool sends, W wait, uint64_t ended = 3) {
  for (Row& row : rows) {
    if (row.rank != rank || row.sends != sends) continue;
    row.wait = wait;
    row.ended = ended;
  }
  return rows;
}

std::vector<Row> Without(std::vector<Row> rows, int32_t rank, bool sends) {
  for (size_t i = rows.size(); i-- > 0;) {
    if (rows[i].rank == rank && rows[i].sends == sends) {
      rows.erase(rows.begin() + static_cast<std::ptrdiff_t>(i));
    }
  }
  return rows;
}

std::vector<Row> And(std::vector<Row> rows, const std::vector<Row>& more) {
  rows.insert(rows.end(), more.begin(), more.end());
  return rows;
}

struct Case {
  std::string name;
  int32_t ranks;
  std::vector<Row> rows;
  F fault = F::kNone;
  int32_t culprit = -1, peer = -1;
};

std::vector<Case> Cases() {
  const std::vector<Row> ring = InnocentRing(4);
  return {
      {"no states", 4, {}},
      {"a ring in which all wait for data has no first one", 4, ring},
      {"its GPU: it lacks data to send and waits for none", 4,
       With(ring, 2, kReceives, W::kReceiveGpu), F::kOwnGpu, 2, 3},
      {"the same in a ring of two", 2, With(InnocentRing(2), 1, kReceives, W::kReceiveGpu),
       F::kOwnGpu, 1, 0},
      {"its link: the network has what the next one waits for", 4, With(ring, 2, kSends, W::kSend),
       F::kLink, 2, 3},
      {"the socket has taken what has not arrived", 4, With(ring, 2, kSends, W::kSendGpu, 5),
       F::kLink, 2, 3},
      {"the receiver's buffer is posted, and the sender does not hear of it", 4,
       With(ring, 2, kSends, W::kSendPeer), F::kLink, 2, 3},
      {"nothing is posted: its proxy thread", 4, With(ring, 2, kSends, W::kNone), F::kProxy, 2, 3},
      {"there is no such transfer at all", 4, Without(ring, 2, kSends), F::kProxy, 2, 3},
      {"it believes to send what has arrived", 4,
       With(With(ring, 2, kSends, W::kSend), 3, kReceives, W::kReceive, 5), F::kProxy, 2, 3},
      {"the end of a chain does not take",
       3,
       {{0, 1, kSends, W::kSendPeer},
        {1, 0, kReceives, W::kReceiveGpu},
        {1, 2, kSends, W::kSendPeer},
        {2, 1, kReceives, W::kReceiveGpu}},
       F::kPeerGpu,
       2,
       1},
      {"over sockets a receiver that does not take looks like the network",
       2,
       {{0, 1, kSends, W::kSend}, {1, 0, kReceives, W::kReceiveGpu}},
       F::kPeerGpu,
       1,
       0},
      {"a full buffer further down holds up who has data",
       3,
       {{0, 1, kSends, W::kSendPeer},
        {1, 0, kReceives, W::kReceiveGpu},
        {1, 2, kSends, W::kSend},
        {2, 1, kReceives, W::kReceive}},
       F::kLink,
       1,
       2},
      {"a send between two",
       3,
       {{0, 1, kSends, W::kSendGpu}, {1, 0, kReceives, W::kReceive}},
       F::kOwnGpu,
       0,
       1},
      // Rank 0 is the root, 2 its child; 1 and 3 are leaves.
      {"a leaf of a tree that neither sends nor takes, and its sister",
       4,
       {{1, 2, kSends, W::kSendPeer},
        {2, 1, kReceives, W::kReceiveGpu},
        {2, 1, kSends, W::kSendGpu},
        {1, 2, kReceives, W::kReceive},
        {3, 2, kSends, W::kSendGpu},
        {2, 3, kReceives, W::kReceive},
        {2, 3, kSends, W::kSendGpu},
        {3, 2, kReceives, W::kReceiveGpu},
        {2, 0, kSends, W::kSendGpu},
        {0, 2, kReceives, W::kReceive},
        {0, 2, kSends, W::kSendGpu},
        {2, 0, kReceives, W::kReceive}},
       F::kOwnGpu,
       3,
       2},
      {"the middle of a tree has its children's data",
       4,
       {{1, 2, kSends, W::kSendPeer},
        {2, 1, kReceives, W::kReceiveGpu},
        {2, 1, kSends, W::kSendGpu},
        {1, 2, kReceives, W::kReceive},
        {2, 0, kSends, W::kSendGpu},
        {0, 2, kReceives, W::kReceive},
        {0, 2, kSends, W::kSendGpu},
        {2, 0, kReceives, W::kReceive}},
       F::kOwnGpu,
       2,
       0},
      {"root and leaf of one channel look the same",
       2,
       {{1, 0, kSends, W::kSendGpu},
        {0, 1, kReceives, W::kReceive},
        {0, 1, kSends, W::kSendGpu},
        {1, 0, kReceives, W::kReceive}}},
      {"the majority of channels", 4,
       And(With(ring, 2, kReceives, W::kReceiveGpu),
           And(With(InnocentRing(4, 1), 2, kReceives, W::kReceiveGpu),
               With(InnocentRing(4, 2), 0, kSends, W::kSend))),
       F::kOwnGpu, 2, 3},
      {"states of ranks that do not exist",
       4,
       {{2, 9, kSends, W::kSend}, {1, -3, kSends, W::kSend}}},
  };
}

TEST(NetworkWalkTest, EndsAtTheFirstThatDoesNotMove) {
  for (const Case& c : Cases()) {
    const NetworkWalk walk = WalkNetwork(SamplesOf(c.rows, c.ranks), c.ranks);
    EXPECT_EQ(walk.fault, c.fault) << c.name;
    EXPECT_EQ(walk.culprit, c.culprit) << c.name;
    EXPECT_EQ(walk.peer, c.peer) << c.name;
  }
}

TEST(NetworkWalkTest, ShowsTheWayToTheCulprit) {
  const NetworkWalk walk =
      WalkNetwork(SamplesOf(With(InnocentRing(4), 2, kReceives, W::kReceiveGpu), 4), 4);
  ASSERT_EQ(walk.hops.size(), 4u);
  const int32_t way[] = {1, 0, 3, 2};
  for (size_t i = 0; i < 4; ++i) EXPECT_EQ(walk.hops[i].rank, way[i]);
  EXPECT_EQ(walk.hops[0].wait, W::kReceive);
  EXPECT_EQ(walk.hops[3].wait, W::kSendGpu);
  EXPECT_EQ(walk.hops[3].peer, 3);
}

TEST(NetworkWalkTest, CountsChannels) {
  const std::vector<Row> rows =
      And(With(InnocentRing(4), 2, kReceives, W::kReceiveGpu), InnocentRing(4, 1));
  const NetworkWalk walk = WalkNetwork(SamplesOf(rows, 4), 4);
  EXPECT_EQ(walk.channels, 2);
  EXPECT_EQ(walk.agreeing, 1);
}

TEST(NetworkWalkTest, BlamesNoRankBeyondAMissingOrTornSample) {
  std::vector<NetworkSample> samples = SamplesOf(With(InnocentRing(4), 2, kSends, W::kNone), 4);
  samples[2].states.clear();
  samples[2].is_whole = false;
  EXPECT_EQ(WalkNetwork(samples, 4).fault, F::kNone);
  samples.erase(samples.begin() + 2);
  EXPECT_EQ(WalkNetwork(samples, 4).fault, F::kNone);
}

// It has posted nothing for the new operation, and its steps are those of the one before.
TEST(NetworkWalkTest, StepsOfAnOperationThatHasEndedDoNotCompare) {
  const std::vector<Row> unsent = With(InnocentRing(4), 2, kSends, W::kNone, 16);
  EXPECT_EQ(WalkNetwork(SamplesOf(unsent, 4), 4).fault, F::kNone);
  const std::vector<Row> unposted = With(InnocentRing(4), 2, kReceives, W::kNone, 16);
  EXPECT_EQ(WalkNetwork(SamplesOf(unposted, 4), 4).culprit, 2);
}

// Held between two operations, its proxy thread leaves the states of the first.
TEST(NetworkWalkTest, ARankThatShowsOnlyAnEarlierOperationHasPostedNothing) {
  const std::vector<Row> ring = With(InnocentRing(4), 1, kSends, W::kSend, 2);
  const std::vector<Row> idle =
      With(With(ring, 2, kSends, W::kNone, 16), 2, kReceives, W::kNone, 16);
  const NetworkWalk walk = WalkNetwork(SamplesOf(idle, 4), 4);
  EXPECT_EQ(walk.fault, F::kProxy);
  EXPECT_EQ(walk.culprit, 2);
  EXPECT_EQ(walk.peer, 3);
  // It has had all of the operation in which rank 3 is, and may have sent all of it.
  const std::vector<Row> sent = With(idle, 1, kSends, W::kNone, 16);
  EXPECT_EQ(WalkNetwork(SamplesOf(sent, 4), 4).fault, F::kNone);
}

TEST(NetworkWalkTest, TheFirstSampleOfARankCounts) {
  std::vector<NetworkSample> samples =
      SamplesOf(With(InnocentRing(4), 2, kReceives, W::kReceiveGpu), 4);
  samples.push_back(samples[0]);
  samples.back().rank = 2;
  EXPECT_EQ(WalkNetwork(samples, 4).culprit, 2);
}

// Ranks 0-1 and 2-3 share a host: 1 sends to 2, and 3 to 0. Within a host nothing is seen.
TEST(NetworkWalkTest, RanksOfAHostStandInForEachOther) {
  const std::vector<Row> rows = {{1, 2, kSends, W::kSendGpu},
                                 {2, 1, kReceives, W::kReceive},
                                 {3, 0, kSends, W::kSend},
                                 {0, 3, kReceives, W::kReceive}};
  const std::vector<NetworkSample> samples = SamplesOf(rows, 4);
  const NetworkWalk walk = WalkNetwork(samples, 4, {{0}, {0}, {1}, {1}});
  EXPECT_EQ(walk.fault, F::kLink);
  EXPECT_EQ(walk.culprit, 3);
}

// The same ring. Rank 2 only receives over the network, and rank 1 only sends.
TEST(NetworkWalkTest, ARankWhoseHostIsInALaterOperationHasPostedNothing) {
  const std::vector<Row> unreceived = {{1, 2, kSends, W::kSend, 2},
                                       {2, 1, kReceives, W::kNone, 16},
                                       {3, 0, kSends, W::kSendGpu, 1},
                                       {0, 3, kReceives, W::kReceive, 1}};
  NetworkWalk walk = WalkNetwork(SamplesOf(unreceived, 4), 4, {{0}, {0}, {1}, {1}});
  EXPECT_EQ(walk.fault, F::kProxy);
  EXPECT_EQ(walk.culprit, 2);
  const std::vector<Row> unsent = {{1, 2, kSends, W::kNone, 16},
                                   {2, 1, kReceives, W::kReceive, 0},
                                   {3, 0, kSends, W::kSendGpu, 1},
                                   {0, 3, kReceives, W::kReceiveGpu, 0}};
  walk = WalkNetwork(SamplesOf(unsent, 4), 4, {{0}, {0}, {1}, {1}});
  EXPECT_EQ(walk.fault, F::kProxy);
  EXPECT_EQ(walk.culprit, 1);
}

TEST(NetworkWalkTest, AccusesNoRankOfAHostOfWhichASampleIsMissing) {
  const std::vector<Row> rows = {{1, 2, kSends, W::kSendGpu}, {2, 1, kReceives, W::kReceive}};
  const std::vector<NetworkSample> samples = SamplesOf(rows, 4);
  EXPECT_EQ(WalkNetwork(samples, 4, {{0}, {0}, {1}, {1}}).culprit, 1);
  EXPECT_EQ(WalkNetwork(samples, 4, {{0, false}, {0, false}, {1}, {1}}).fault, F::kNone);
}

TEST(NetworkWalkTest, OneOfTwoIsNotAccusedWithoutTheOther) {
  std::vector<NetworkSample> samples = SamplesOf(InnocentRing(2), 2);
  samples.pop_back();
  EXPECT_EQ(WalkNetwork(samples, 2).fault, F::kNone);
}

TEST(NetworkWalkTest, ALinkNeedsBothItsEnds) {
  std::vector<NetworkSample> samples = SamplesOf({{0, 1, kSends, W::kSend}}, 2);
  samples.pop_back();
  EXPECT_EQ(WalkNetwork(samples, 2).fault, F::kNone);
}

TEST(NetworkWalkTest, AHugeRingTakesNoRecursionAndALimitedWay) {
  const NetworkWalk walk = WalkNetwork(
      SamplesOf(With(InnocentRing(20'000), 7, kReceives, W::kReceiveGpu), 20'000), 20'000);
  EXPECT_EQ(walk.culprit, 7);
  ASSERT_EQ(walk.hops.size(), 64u);
  EXPECT_EQ(walk.hops.back().rank, 7);
  EXPECT_EQ(walk.hops[32].rank, 7 + 31);
  // Rank 6 is the last one that waits: the first hops are the ones before it.
  EXPECT_EQ(walk.hops[0].rank, 6);
  EXPECT_EQ(walk.hops[31].rank, 20'000 + 6 - 31);
  EXPECT_EQ(walk.left_out, 20'000 - 64);
}

}  // namespace
}  // namespace rollcall
