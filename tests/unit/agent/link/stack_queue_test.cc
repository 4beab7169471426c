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

std::vector<uint64_t> PopAll(StackQueue* queue) {
  std::vector<uint64_t> requests;
  while (!queue->empty()) {
    const PendingRequest one = queue->Pop();
    EXPECT_LE(one.processes.size(), 1u);
    requests.push_back(one.request);
  }
  return requests;
}

TEST(StackQueueTest, GivesTheProcessesOfOneOwnerInOrder) {
  StackQueue queue;
  PendingRequest first = RequestFor(2, 7), second = RequestFor(0, 8), third = RequestFor(1, 9);
  for (PendingRequest* request : {&first, &second, &third}) EXPECT_TRUE(queue.Push(request));
  EXPECT_EQ(PopAll(&queue), (std::vector<uint64_t>{7, 7, 8, 9}));
}

TEST(StackQueueTest, EachProcessIsAskedForAsTheRequestSays) {
  StackQueue queue;
  PendingRequest request = RequestFor(2);
  request.children = true;
  ASSERT_TRUE(queue.Push(&request));
  EXPECT_TRUE(queue.Pop().children);
  EXPECT_TRUE(queue.Pop().children);
}

TEST(StackQueueTest, OwnersTakeTurnsWhateverTheyHaveWaiting) {
  StackQueue queue;
  for (uint64_t number = 0; number < 3; ++number) {
    PendingRequest request = RequestFor(2, number);
    request.owner = 1000;
    EXPECT_TRUE(queue.Push(&request));
  }
  PendingRequest other = RequestFor(2, 9);
  other.owner = 1001;
  EXPECT_TRUE(queue.Push(&other));
  EXPECT_EQ(PopAll(&queue), (std::vector<uint64_t>{0, 9, 0, 9, 1, 1, 2, 2}));
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
  EXPECT_FALSE(Push(2, &queue));
  EXPECT_TRUE(Push(1, &queue));
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
