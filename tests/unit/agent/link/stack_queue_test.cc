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

bool PushFor(int64_t owner, size_t processes, StackQueue* queue) {
  PendingRequest request = RequestFor(processes);
  request.owner = owner;
  return queue->Push(&request);
}

// How many requests of this many processes have room.
size_t Fill(int64_t owner, size_t processes, StackQueue* queue) {
  size_t count = 0;
  while (PushFor(owner, processes, queue)) ++count;
  return count;
}

TEST(StackQueueTest, HasRoomFor64RequestsOfWhichOneOwnerTakesThreeQuarters) {
  StackQueue queue;
  EXPECT_EQ(Fill(1000, 1, &queue), 48);
  EXPECT_EQ(Fill(1001, 1, &queue), 12);
  EXPECT_EQ(Fill(1002, 1, &queue), 3);
  queue.Pop();
  EXPECT_TRUE(PushFor(1003, 1, &queue));
}

TEST(StackQueueTest, HasRoomFor4096ProcessesOfWhichOneOwnerTakesThreeQuarters) {
  StackQueue queue;
  EXPECT_FALSE(PushFor(1000, 3073, &queue));
  EXPECT_TRUE(PushFor(1000, 3072, &queue));
  EXPECT_FALSE(PushFor(1000, 1, &queue));
  EXPECT_TRUE(PushFor(1001, 768, &queue));
  for (int i = 0; i < 2; ++i) queue.Pop();
  EXPECT_EQ(Fill(1001, 1, &queue), 1);
  queue.Clear();
  EXPECT_TRUE(PushFor(1000, 3072, &queue));
}

TEST(StackQueueTest, EachProcessOfARequestIsAskedForTheSame) {
  StackQueue queue;
  PendingRequest request = RequestFor(2);
  request.children = true;
  request.network_of = {7, 8};
  request.only_network = true;
  ASSERT_TRUE(queue.Push(&request));
  for (int i = 0; i < 2; ++i) {
    const PendingRequest one = queue.Pop();
    EXPECT_TRUE(one.children);
    EXPECT_EQ(one.network_of, (std::vector<uint64_t>{7, 8}));
    EXPECT_TRUE(one.only_network);
  }
}

TEST(StackQueueTest, ARefusedRequestKeepsItsProcesses) {
  StackQueue queue;
  PendingRequest large = RequestFor(4097);
  EXPECT_FALSE(queue.Push(&large));
  EXPECT_EQ(large.processes.size(), 4097);
}

}  // namespace
}  // namespace rollcall
