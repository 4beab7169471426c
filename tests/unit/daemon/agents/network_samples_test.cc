// SPDX-License-Identifier: Apache-2.0
#include "daemon/agents/network_samples.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "daemon/agents/stack_limits.h"
#include "rollcall/v1/incident.pb.h"

namespace rollcall {
namespace {

constexpr int64_t kNow = 1'700'000'000'000'000'000;
constexpr uint64_t kAsked = 0xfeed;

v1::NetworkSample::State MakeState(int32_t peer = 5) {
  v1::NetworkSample::State state;
  state.set_channel(2);
  state.set_peer(peer);
  state.set_sends(true);
  state.set_begun(9);
  state.set_ended(7);
  state.set_wait(2);
  state.set_waited_seconds(1.5);
  return state;
}

v1::NetworkSample MakeSample(uint64_t communicator = kAsked, int32_t rank = 3) {
  v1::NetworkSample sample;
  sample.set_communicator(communicator);
  sample.set_rank(rank);
  *sample.add_states() = MakeState();
  return sample;
}

std::vector<NetworkSample> Read(const v1::ProcessStack& stack) {
  return ReadNetworkSamples(stack, {kAsked}, 17, kNow);
}

// What is left of one state.
std::vector<NetworkState> Read(const v1::NetworkSample::State& state) {
  v1::ProcessStack stack;
  *stack.add_network() = MakeSample();
  *stack.mutable_network(0)->mutable_states(0) = state;
  return Read(stack).at(0).states;
}

TEST(NetworkSamplesTest, AStateIsReadAsItWasSent) {
  v1::ProcessStack stack;
  *stack.add_network() = MakeSample();
  const std::vector<NetworkSample> samples = Read(stack);
  ASSERT_EQ(samples.size(), 1U);
  EXPECT_EQ(samples[0].communicator, kAsked);
  EXPECT_EQ(samples[0].rank, 3);
  EXPECT_EQ(samples[0].process, 17);
  EXPECT_TRUE(samples[0].is_whole);
  ASSERT_EQ(samples[0].states.size(), 1U);
  const NetworkState& state = samples[0].states[0];
  EXPECT_EQ(state.channel, 2);
  EXPECT_EQ(state.peer, 5);
  EXPECT_TRUE(state.sends);
  EXPECT_EQ(state.begun, 9U);
  EXPECT_EQ(state.ended, 7U);
  EXPECT_EQ(state.wait, NetworkWait::kSendPeer);
  EXPECT_EQ(state.since_ns, kNow - 1'500'000'000);
}

TEST(NetworkSamplesTest, AnAgentWithoutThemGivesNone) {
  EXPECT_TRUE(Read(v1::ProcessStack()).empty());
}

TEST(NetworkSamplesTest, OnlyCommunicatorsOfTheRequestAreRead) {
  v1::ProcessStack stack;
  *stack.add_network() = MakeSample(kAsked + 1);
  EXPECT_TRUE(Read(stack).empty());
}

TEST(NetworkSamplesTest, OfTwoSamplesOfOneRankTheFirstIsRead) {
  v1::ProcessStack stack;
  *stack.add_network() = MakeSample();
  *stack.add_network() = MakeSample();
  *stack.add_network() = MakeSample(kAsked, 4);  // another device of the process
  *stack.add_network() = MakeSample(kAsked, -1);
  const std::vector<NetworkSample> samples = Read(stack);
  ASSERT_EQ(samples.size(), 2U);
  EXPECT_EQ(samples[1].rank, 4);
}

TEST(NetworkSamplesTest, AStepWithoutAWaitKeepsItsTime) {
  v1::NetworkSample::State state = MakeState();
  state.set_wait(0);
  EXPECT_EQ(Read(state).at(0).wait, NetworkWait::kNone);
  EXPECT_EQ(Read(state).at(0).since_ns, kNow - 1'500'000'000);
}

TEST(NetworkSamplesTest, ATimeThatCannotBeIsNotKnown) {
  v1::NetworkSample::State state = MakeState();
  for (const double waited : {std::nan(""), -1.0, 0.0, 1e300, 367.0 * 24 * 3600,
                              std::numeric_limits<double>::infinity()}) {
    state.set_waited_seconds(waited);
    EXPECT_EQ(Read(state).at(0).since_ns, 0) << waited;
  }
}

TEST(NetworkSamplesTest, AStateThatCannotBeIsDroppedAndLeavesTheSampleIncomplete) {
  const auto is_dropped = [](const v1::NetworkSample::State& state) {
    v1::ProcessStack stack;
    *stack.add_network() = MakeSample();
    *stack.mutable_network(0)->add_states() = state;
    const std::vector<NetworkSample> samples = Read(stack);
    return samples.at(0).states.size() == 1 && !samples[0].is_whole;
  };
  v1::NetworkSample::State state = MakeState(-1);
  EXPECT_TRUE(is_dropped(state));
  state = MakeState();
  state.set_channel(-1);
  EXPECT_TRUE(is_dropped(state));
  state = MakeState();
  state.set_ended(10);
  EXPECT_TRUE(is_dropped(state));
  state = MakeState();
  for (const uint32_t wait : {7U, 4'000'000'000U}) {
    state.set_wait(wait);  // else it would look like a step for which nothing is posted
    EXPECT_TRUE(is_dropped(state)) << wait;
  }
  EXPECT_FALSE(is_dropped(MakeState()));
}

TEST(NetworkSamplesTest, AProcessGivesAtMost4096States) {
  v1::ProcessStack stack;
  for (int32_t rank = 0; rank < 6; ++rank) {
    *stack.add_network() = MakeSample(kAsked, rank);
    for (int i = 1; i < limits::kNetworkStates; ++i) {
      *stack.mutable_network(rank)->add_states() = MakeState();
    }
  }
  const std::vector<NetworkSample> samples = Read(stack);
  ASSERT_EQ(samples.size(), 6U);
  EXPECT_EQ(samples[3].states.size(), 1024U);
  EXPECT_TRUE(samples[3].is_whole);
  EXPECT_TRUE(samples[4].states.empty());
  EXPECT_FALSE(samples[4].is_whole);
}

}  // namespace
}  // namespace rollcall
