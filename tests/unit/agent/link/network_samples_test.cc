// SPDX-License-Identifier: Apache-2.0
#include "agent/link/network_samples.h"

#include <gtest/gtest.h>

namespace rollcall {
namespace {

constexpr int64_t kNow = 100'000'000'000;

NetworkSnapshot OneState() {
  NetworkSnapshot read;
  read.communicator = 0xfeed;
  read.rank = 3;
  NetworkStateSnapshot state;
  state.channel = 2;
  state.peer = 5;
  state.sends = true;
  state.begun = 9;
  state.ended = 7;
  state.wait = NetworkWait::kSendPeer;
  state.since_ns = kNow - 1'500'000'000;
  read.states = {state};
  return read;
}

TEST(AgentNetworkSamplesTest, AStateIsSentAsItWasRead) {
  const v1::NetworkSample sample = ToProto(OneState(), kNow);
  EXPECT_EQ(sample.communicator(), 0xfeedU);
  EXPECT_EQ(sample.rank(), 3);
  EXPECT_FALSE(sample.incomplete());
  ASSERT_EQ(sample.states_size(), 1);
  const v1::NetworkSample::State& state = sample.states(0);
  EXPECT_EQ(state.channel(), 2);
  EXPECT_EQ(state.peer(), 5);
  EXPECT_TRUE(state.sends());
  EXPECT_EQ(state.begun(), 9U);
  EXPECT_EQ(state.ended(), 7U);
  EXPECT_EQ(state.wait(), 2U);
  EXPECT_DOUBLE_EQ(state.waited_seconds(), 1.5);
}

TEST(AgentNetworkSamplesTest, ATimeThatIsNotKnownOrLiesAheadIsNotAWait) {
  NetworkSnapshot read = OneState();
  for (const int64_t since_ns : {int64_t{0}, kNow + 1}) {
    read.states[0].since_ns = since_ns;
    EXPECT_EQ(ToProto(read, kNow).states(0).waited_seconds(), 0);
  }
}

TEST(AgentNetworkSamplesTest, ASampleHasAtMost1024StatesAndSaysThatThereWereMore) {
  NetworkSnapshot read = OneState();
  read.states.resize(1024, read.states[0]);
  EXPECT_EQ(ToProto(read, kNow).states_size(), 1024);
  EXPECT_FALSE(ToProto(read, kNow).incomplete());
  read.states.push_back(read.states[0]);
  EXPECT_EQ(ToProto(read, kNow).states_size(), 1024);
  EXPECT_TRUE(ToProto(read, kNow).incomplete());
}

TEST(AgentNetworkSamplesTest, ASegmentThatHadNoRoomIsIncomplete) {
  NetworkSnapshot read = OneState();
  read.is_whole = false;
  EXPECT_TRUE(ToProto(read, kNow).incomplete());
}

}  // namespace
}  // namespace rollcall
