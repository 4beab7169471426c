// SPDX-License-Identifier: Apache-2.0
#include "agent/link/stack_queue.h"

#include <gtest/gtest.h>

namespace rollcall {
namespace {

PendingRequest RequestFor(size_t processes, uint64_t number = 1) {
  PendingRequest request;
  request.request = number;
  request.processes.resize(processes);
  return request;
}

bool Push(size_t processes, StackQueue* queue) {
  PendingRequest request = RequestFor(processes);
  return queue->Push(&request);
}

TEST(StackQueueTest, GivesTheRequestsInOrder) {
  StackQueue queue;
  PendingRequest first = RequestFor(2, 7), second = RequestFor(3, 8);
  EXPECT_TRUE(queue.Push(&first));
  EXPECT_TRUE(queue.Push(&second));
  EXPECT_EQ(queue.Pop().request, 7);
  EXPECT_EQ(queue.Pop().processes.size(), 3);
  EXPECT_TRUE(queue.empty());
}

TEST(StackQueueTest, HasRoomFor64Requests) {
  StackQueue queue;
  for (size_t i = 0; i < 64; ++i) EXPECT_TRUE(Push(1, &queue));
  EXPECT_FALSE(Push(1, &queue));
  queue.Pop();
  EXPECT_TRUE(Push(1, &queue));
}

TEST(StackQueueTest, HasRoomFor4096Processes) {
  StackQueue queue;
  EXPECT_TRUE(Push(4000, &queue));
  EXPECT_FALSE(Push(97, &queue));
  EXPECT_TRUE(Push(96, &queue));
  queue.Pop();
  EXPECT_TRUE(Push(4000, &queue));
  queue.Clear();
  EXPECT_TRUE(Push(4096, &queue));
}

TEST(StackQueueTest, ARefusedRequestKeepsItsProcesses) {
  StackQueue queue;
  PendingRequest large = RequestFor(4097);
  EXPECT_FALSE(queue.Push(&large));
  EXPECT_EQ(large.processes.size(), 4097);
}

}  // namespace
}  // namespace rollcall
