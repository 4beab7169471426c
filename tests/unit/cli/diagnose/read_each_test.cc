// SPDX-License-Identifier: Apache-2.0
#include "cli/diagnose/read_each.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <limits>
#include <memory>
#include <set>
#include <thread>
#include <utility>
#include <vector>

namespace rollcall {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;
using testing::SizeIs;

constexpr int64_t kNoDeadline = std::numeric_limits<int64_t>::max();

// Doubles the number of a process, and never returns for some.
ReadOfEach<int> Read(const std::vector<ToRead>& wanted, const std::set<pid_t>& blocking,
                     int64_t deadline_ns = kNoDeadline) {
  SpareThreads threads;
  const std::function<int(pid_t)> read = [blocking](pid_t pid) {
    while (blocking.count(pid) != 0) pause();
    return 2 * pid;
  };
  return ReadEach("test", wanted, read, deadline_ns, &threads);
}

TEST(ReadEachTest, ReadsAllInTheirOrder) {
  const ReadOfEach<int> read = Read({{3}, {1}, {2}}, {});
  EXPECT_THAT(read.values, ElementsAre(Pair(3, 6), Pair(1, 2), Pair(2, 4)));
  EXPECT_THAT(read.silent, IsEmpty());
  EXPECT_FALSE(read.is_cut);
}

TEST(ReadEachTest, NamesWhatBlocksAndReadsTheOthers) {
  const ReadOfEach<int> read = Read({{1}, {2}, {3}, {4}, {5}}, {2, 5});
  EXPECT_THAT(read.values, ElementsAre(Pair(1, 2), Pair(3, 6), Pair(4, 8)));
  EXPECT_THAT(read.silent, ElementsAre(2, 5));
}

TEST(ReadEachTest, ReadsManyOnOneThread) {
  std::vector<ToRead> wanted;
  for (pid_t pid = 1; pid <= 100; ++pid) wanted.push_back({pid});
  const auto threads_used = std::make_shared<std::set<std::thread::id>>();
  SpareThreads threads;
  const std::function<int(pid_t)> read = [threads_used](pid_t pid) {
    threads_used->insert(std::this_thread::get_id());
    return pid;
  };
  EXPECT_THAT(ReadEach("test", wanted, read, kNoDeadline, &threads).values, SizeIs(100));
  EXPECT_THAT(*threads_used, SizeIs(1));
}

// On a busy host all of them take longer than one that blocks may.
TEST(ReadEachTest, WaitsForSlowReadsThatGoOn) {
  std::vector<ToRead> wanted;
  for (pid_t pid = 1; pid <= 6; ++pid) wanted.push_back({pid});
  SpareThreads threads;
  const std::function<int(pid_t)> read = [](pid_t pid) {
    usleep(100'000);
    return pid;
  };
  const ReadOfEach<int> result = ReadEach("test", wanted, read, kNoDeadline, &threads);
  EXPECT_THAT(result.values, SizeIs(6));
  EXPECT_THAT(result.silent, IsEmpty());
}

TEST(ReadEachTest, WhatWasLateHasASecondTry) {
  const auto tries = std::make_shared<std::atomic<int>>(0);
  SpareThreads threads;
  const std::function<int(pid_t)> read = [tries](pid_t pid) {
    if (pid == 2 && (*tries)++ == 0) usleep(900'000);
    return pid;
  };
  const ReadOfEach<int> result = ReadEach("test", {{1}, {2}, {3}}, read, kNoDeadline, &threads);
  EXPECT_THAT(result.values, ElementsAre(Pair(1, 1), Pair(3, 3), Pair(2, 2)));
  EXPECT_THAT(result.silent, IsEmpty());
}

// A user whose processes block many threads keeps only the reads of his own from beginning.
TEST(ReadEachTest, UsersDoNotShareAThread) {
  const ReadOfEach<int> read = Read({{1, 1000}, {2, 1000}, {3, 1001}}, {1});
  EXPECT_THAT(read.values, ElementsAre(Pair(2, 4), Pair(3, 6)));
}

TEST(ReadEachTest, LeavesOutWhatComesAfterTheDeadline) {
  const ReadOfEach<int> read = Read({{1}, {2}}, {}, 0);
  EXPECT_THAT(read.values, IsEmpty());
  EXPECT_TRUE(read.is_cut);
}

}  // namespace
}  // namespace rollcall
