// SPDX-License-Identifier: Apache-2.0
// Which samples of transfers count for a verdict.
#include "daemon/diagnosis/network_evidence.h"

#include <gtest/gtest.h>

#include <memory>
#include <utility>

#include "job_builder.h"

namespace rollcall {
namespace {

class NetworkEvidenceTest : public testing::Test {
 protected:
  NetworkEvidenceTest() {
    verdict_.cause = Cause::kStalledInFlight;
    verdict_.communicator = kDp;
    verdict_.since_ns = At(10);
  }

  // The process of `from` says of `rank` that it waits for data from `peer`.
  void Say(int from, int32_t rank, int32_t peer, int64_t at = At(20), uint64_t communicator = kDp) {
    NetworkSample sample;
    sample.communicator = communicator;
    sample.rank = rank;
    sample.process = from;
    NetworkState state;
    state.peer = peer;
    state.begun = 1;
    state.wait = NetworkWait::kReceive;
    state.since_ns = At(12);
    sample.states = {state};
    Process& process = job_.state.processes[static_cast<size_t>(from)];
    process.network = std::make_shared<const std::vector<NetworkSample>>(
        std::vector<NetworkSample>{std::move(sample)});
    process.network_ns = at;
  }

  std::vector<NetworkSample> Samples() const { return NetworkSamplesOf(job_.state, verdict_); }

  JobBuilder job_{4};
  Verdict verdict_;
};

TEST_F(NetworkEvidenceTest, EachRankSpeaksForItself) {
  Say(1, 1, 0);
  Say(2, 1, 3);  // a rank of another process
  Say(3, 9, 0);  // no rank of the communicator
  const std::vector<NetworkSample> samples = Samples();
  ASSERT_EQ(samples.size(), 1U);
  EXPECT_EQ(samples[0].process, 1);
  EXPECT_EQ(samples[0].states.size(), 1U);
}

TEST_F(NetworkEvidenceTest, WhatWasReadBeforeTheWaitDoesNotCount) {
  Say(1, 1, 0, At(9));
  EXPECT_TRUE(Samples().empty());
}

TEST_F(NetworkEvidenceTest, TransfersOfOtherCommunicatorsDoNotCount) {
  Say(1, 1, 0, At(20), kDp + 1);
  EXPECT_TRUE(Samples().empty());
}

TEST_F(NetworkEvidenceTest, APeerThatTheCommunicatorLacksDoesNotCount) {
  Say(1, 1, 4);
  Say(2, 2, 2);
  for (const NetworkSample& sample : Samples()) EXPECT_TRUE(sample.states.empty());
  EXPECT_EQ(Samples().size(), 2U);
}

TEST_F(NetworkEvidenceTest, AProcessWithSeveralRanksGivesEachOnce) {
  for (auto& [rank, member] : job_.comm().members) member.process = 0;
  std::vector<NetworkSample> both(2);
  for (int32_t rank : {0, 1}) {
    both[static_cast<size_t>(rank)].communicator = kDp;
    both[static_cast<size_t>(rank)].rank = rank;
    both[static_cast<size_t>(rank)].process = 0;
  }
  job_.state.processes[0].network = std::make_shared<const std::vector<NetworkSample>>(both);
  job_.state.processes[0].network_ns = At(20);
  EXPECT_EQ(Samples().size(), 2U);
}

TEST_F(NetworkEvidenceTest, ProcessesWithAlternatingRanksGiveEachOnce) {
  std::vector<NetworkSample> of_process[2];
  for (auto& [rank, member] : job_.comm().members) {
    member.process = rank % 2;
    NetworkSample& sample = of_process[member.process].emplace_back();
    sample.communicator = kDp;
    sample.rank = rank;
    sample.process = member.process;
  }
  for (size_t i = 0; i < 2; ++i) {
    job_.state.processes[i].network =
        std::make_shared<const std::vector<NetworkSample>>(of_process[i]);
    job_.state.processes[i].network_ns = At(20);
  }
  EXPECT_EQ(Samples().size(), 4U);
}

TEST_F(NetworkEvidenceTest, OnlyCallsOfNcclThatStandStillInFlightAreWalked) {
  EXPECT_EQ(StalledCommunicators({verdict_}), std::vector<uint64_t>{kDp});
  EXPECT_EQ(StalledCommunicators({verdict_, verdict_}), std::vector<uint64_t>{kDp});
  verdict_.communicator_kind = CommKind::kGloo;
  EXPECT_TRUE(StalledCommunicators({verdict_}).empty());
  verdict_.communicator_kind = CommKind::kNccl;
  verdict_.cause = Cause::kMissingRank;
  EXPECT_TRUE(StalledCommunicators({verdict_}).empty());
}

TEST_F(NetworkEvidenceTest, AtMost64CommunicatorsAreAskedFor) {
  std::vector<Verdict> verdicts(100, verdict_);
  for (size_t i = 0; i < verdicts.size(); ++i) verdicts[i].communicator = i + 1;
  EXPECT_EQ(StalledCommunicators(verdicts).size(), 64U);
}

TEST_F(NetworkEvidenceTest, AVerdictWithoutTransfersStaysAsItIs) {
  AddNetwork(job_.state, &verdict_);
  EXPECT_EQ(verdict_.network.fault, NetworkFault::kNone);
  EXPECT_TRUE(verdict_.culprits.empty());
  EXPECT_TRUE(verdict_.evidence.empty());
}

}  // namespace
}  // namespace rollcall
