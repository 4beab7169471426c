// SPDX-License-Identifier: Apache-2.0
// The way over the network transfers, in incident.json and report.txt.
#include <gtest/gtest.h>

#include "daemon/model/verdict.h"
#include "daemon/report/incident_proto.h"
#include "daemon/report/network/network_lines.h"
#include "daemon/report/network/network_proto.h"
#include "daemon/report/report_text.h"

namespace rollcall {
namespace {

constexpr int64_t kSecondNs = 1'000'000'000;

// The last of `hops` ranks is the culprit, whose GPU does not produce.
Verdict MakeVerdict(int32_t hops) {
  Verdict verdict;
  verdict.cause = Cause::kStalledInFlight;
  verdict.since_ns = 100 * kSecondNs;
  verdict.waited_ns = 60 * kSecondNs;
  NetworkWalk& walk = verdict.network;
  walk.fault = NetworkFault::kOwnGpu;
  walk.culprit = 0;
  walk.peer = 1;
  walk.channels = 4;
  walk.agreeing = 3;
  for (int32_t rank = hops - 1; rank > 0; --rank) {
    walk.hops.push_back({rank, rank - 1, 2, NetworkWait::kReceive, 101 * kSecondNs});
  }
  walk.hops.push_back({0, 1, 2, NetworkWait::kSendGpu, 118 * kSecondNs});
  return verdict;
}

TEST(NetworkReportTest, TheMessageHasTheWayAsTheVerdictHasIt) {
  const v1::Verdict verdict = ToProto(MakeVerdict(3));
  const v1::NetworkWalk& walk = verdict.network();
  EXPECT_EQ(walk.fault(), "own_gpu");
  EXPECT_EQ(walk.rank(), 0);
  EXPECT_EQ(walk.peer(), 1);
  EXPECT_EQ(walk.channels(), 4);
  EXPECT_EQ(walk.agreeing(), 3);
  ASSERT_EQ(walk.hops_size(), 3);
  EXPECT_EQ(walk.hops(0).rank(), 2);
  EXPECT_EQ(walk.hops(0).peer(), 1);
  EXPECT_EQ(walk.hops(0).channel(), 2);
  EXPECT_EQ(walk.hops(0).wait(), "receive");
  EXPECT_DOUBLE_EQ(walk.hops(0).waited_seconds(), 59);
  EXPECT_EQ(walk.hops(2).wait(), "send_gpu");
  EXPECT_DOUBLE_EQ(walk.hops(2).waited_seconds(), 42);
}

TEST(NetworkReportTest, AVerdictWithoutAWayHasNone) {
  Verdict verdict = MakeVerdict(3);
  verdict.network = {};
  EXPECT_FALSE(ToProto(verdict).has_network());
  EXPECT_TRUE(NetworkLines(ToProto(verdict)).empty());
}

TEST(NetworkReportTest, CutsALongWayToItsFirstAndLastHops) {
  const v1::Verdict verdict = ToProto(MakeVerdict(200));
  ASSERT_EQ(verdict.network().hops_size(), 64);
  EXPECT_EQ(verdict.network().hops(0).rank(), 199);
  EXPECT_EQ(verdict.network().hops(1).rank(), 62);
  EXPECT_EQ(verdict.network().hops(63).rank(), 0);
}

TEST(NetworkReportTest, EveryWaitAndFaultHasAName) {
  for (uint32_t wait = 1; wait < kNetworkWaits; ++wait) {
    EXPECT_STRNE(NetworkWaitName(static_cast<NetworkWait>(wait)), "") << wait;
  }
  for (const NetworkFault fault :
       {NetworkFault::kOwnGpu, NetworkFault::kLink, NetworkFault::kPeerGpu, NetworkFault::kProxy}) {
    EXPECT_STRNE(NetworkFaultName(fault), "");
  }
}

TEST(NetworkReportTest, TheReportTellsTheWayInThreeLines) {
  EXPECT_EQ(NetworkLines(ToProto(MakeVerdict(3))),
            (std::vector<std::string>{
                "rank 2 waits for data from rank 1, rank 1 from rank 0",
                "rank 0: its GPU does not produce what it must send to rank 1, for 42 s",
                "3 of 4 channels that wait lead there"}));
}

TEST(NetworkReportTest, ALongWayIsShortened) {
  EXPECT_EQ(NetworkLines(ToProto(MakeVerdict(10)))[0],
            "rank 9 waits for data from rank 8, rank 8 from rank 7, rank 7 from rank 6, 5 more "
            "ranks, rank 1 from rank 0");
  EXPECT_EQ(NetworkLines(ToProto(MakeVerdict(5)))[0],
            "rank 4 waits for data from rank 3, rank 3 from rank 2, rank 2 from rank 1, rank 1 "
            "from rank 0");
}

TEST(NetworkReportTest, EachFaultNamesWhoseItIs) {
  Verdict verdict = MakeVerdict(1);
  const auto line = [&](NetworkFault fault) {
    verdict.network.fault = fault;
    v1::Verdict proto = ToProto(verdict);
    proto.mutable_network()->set_nic("mlx5_0");
    return NetworkLines(proto)[0];
  };
  EXPECT_EQ(line(NetworkFault::kLink),
            "rank 0: the network (mlx5_0) does not carry what it has sent to rank 1, for 42 s");
  EXPECT_EQ(line(NetworkFault::kPeerGpu),
            "rank 0: its GPU does not take what it receives from rank 1, for 42 s");
  EXPECT_EQ(line(NetworkFault::kProxy),
            "rank 0: its proxy thread of NCCL moves no transfer, for 42 s");
}

TEST(NetworkReportTest, TheReportHasTheLinesBelowTheirTitle) {
  v1::Incident incident;
  *incident.add_verdicts() = ToProto(MakeVerdict(3));
  EXPECT_NE(ToText(incident).find("\nInside the call\n  - rank 2 waits for data from rank 1"),
            std::string::npos);
}

}  // namespace
}  // namespace rollcall
