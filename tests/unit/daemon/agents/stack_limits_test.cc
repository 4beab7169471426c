// SPDX-License-Identifier: Apache-2.0
#include "daemon/agents/stack_limits.h"

#include <gtest/gtest.h>

#include "rollcall/v1/incident.pb.h"

namespace rollcall {
namespace {

constexpr int kMany = 100;

v1::ThreadStack LargeThread() {
  v1::ThreadStack thread;
  for (int i = 0; i < kMany; ++i) {
    thread.add_frames()->set_line(i);
    thread.mutable_other_end()->add_pids(i);
    thread.mutable_other_end()->add_names("name");
    thread.mutable_other_end()->add_sockets();
  }
  return thread;
}

TEST(StackLimitsTest, OfEachListTheFirstAreKept) {
  v1::ProcessStack stack;
  *stack.add_threads() = LargeThread();
  for (int i = 0; i < kMany; ++i) {
    stack.add_locks();
    v1::ChildProcess* child = stack.add_children();
    for (int thread = 0; thread < 5; ++thread) *child->add_threads() = LargeThread();
  }
  EXPECT_TRUE(LimitStack(&stack));
  EXPECT_EQ(stack.threads(0).frames_size(), kMany) << "the agent has cut them";
  EXPECT_EQ(stack.locks_size(), limits::kFileLocks);
  ASSERT_EQ(stack.children_size(), limits::kChildren);
  for (int i = 0; i < limits::kChildren; ++i) {
    const v1::ChildProcess& child = stack.children(i);
    ASSERT_EQ(child.threads_size(), i < limits::kSampledChildren ? limits::kThreadsOfChild : 0);
    for (const v1::ThreadStack& thread : child.threads()) {
      EXPECT_EQ(thread.frames_size(), limits::kFramesOfChild);
    }
  }
  for (const v1::ThreadStack& thread : {stack.threads(0), stack.children(0).threads(3)}) {
    EXPECT_EQ(thread.other_end().pids_size(), limits::kPidsOfOtherEnd);
    EXPECT_EQ(thread.other_end().names_size(), limits::kPidsOfOtherEnd);
    EXPECT_EQ(thread.other_end().sockets_size(), limits::kSocketsOfOtherEnd);
  }
}

TEST(StackLimitsTest, NoOtherEndHasMoreNamesThanPids) {
  v1::ProcessStack stack;
  v1::OtherEnd* end = stack.add_threads()->mutable_other_end();
  end->add_pids(1);
  end->add_names("one");
  end->add_names("two");
  EXPECT_TRUE(LimitStack(&stack));
  EXPECT_EQ(end->names_size(), 1);
}

TEST(StackLimitsTest, TheTransfersOfAProcessHaveALimit) {
  v1::ProcessStack stack;
  for (int i = 0; i < kMany; ++i) stack.add_network()->set_rank(i);
  for (int i = 0; i < limits::kNetworkStates + 1; ++i) stack.mutable_network(0)->add_states();
  EXPECT_TRUE(LimitStack(&stack));
  EXPECT_EQ(stack.network_size(), limits::kNetworks);
  EXPECT_EQ(stack.network(0).states_size(), limits::kNetworkStates);
  EXPECT_TRUE(stack.network(0).incomplete());
  EXPECT_FALSE(stack.network(1).incomplete());
}

TEST(StackLimitsTest, WhatAnAgentSendsStaysAsItIs) {
  v1::ProcessStack stack;
  stack.add_threads()->set_tid(1);
  v1::ChildProcess* child = stack.add_children();
  child->add_threads()->add_frames()->set_function("wait");
  const std::string before = stack.SerializeAsString();
  EXPECT_FALSE(LimitStack(&stack));
  EXPECT_EQ(stack.SerializeAsString(), before);
}

}  // namespace
}  // namespace rollcall
