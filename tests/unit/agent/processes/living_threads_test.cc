// SPDX-License-Identifier: Apache-2.0
// Finds the living threads of a process in a made-up /proc.
#include "agent/processes/living_threads.h"

#include <gtest/gtest.h>

#include <map>
#include <string>

#include "temporary_tree.h"

namespace rollcall {
namespace {

TEST(LivingThreadsTest, FindsThreadsByTheTidsInTheirOwnNamespace) {
  TemporaryTree proc;
  const std::string rest = " 1 1 1 0 -1 0 0 0 0 0 1 1 0 0 20 0 2 0 ";
  proc.Write("77/stat", "77 (rank) S" + rest + "500 0 0\n");
  proc.Write("77/task/77/stat", "77 (rank) S" + rest + "500 0 0\n");
  proc.Write("77/task/77/status", "NSpid:\t77\t1\n");
  proc.Write("77/task/79/stat", "79 (rank) S" + rest + "600 0 0\n");
  proc.Write("77/task/79/status", "NSpid:\t79\t3\n");
  const auto own = FindThreads(proc.root(), {77, 500}, {1, 2, 3}, true);
  EXPECT_EQ(own, (std::map<pid_t, uint64_t>{{1, 500}, {3, 600}}));
  const auto ours = FindThreads(proc.root(), {77, 500}, {77, 78, 79}, false);
  EXPECT_EQ(ours, (std::map<pid_t, uint64_t>{{77, 500}, {79, 600}}));
  EXPECT_FALSE(FindThreads(proc.root(), {77, 499}, {77}, false).has_value()) << "another process";
  EXPECT_FALSE(FindThreads(proc.root(), {78, 500}, {78}, false).has_value()) << "hidden";
  proc.Remove("77/task/79/status");
  EXPECT_FALSE(FindThreads(proc.root(), {77, 500}, {2}, true).has_value()) << "79 is unreadable";
}

}  // namespace
}  // namespace rollcall
