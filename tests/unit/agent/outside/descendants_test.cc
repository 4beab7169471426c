// SPDX-License-Identifier: Apache-2.0
// What real processes have started, and what that has used.
#include "agent/outside/descendants.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <string>
#include <vector>

namespace rollcall {
namespace {

// A child with a child of its own: both spin until their time on a CPU is over, then wait.
class Family {
 public:
  Family() {
    int ready[2];
    if (pipe(ready) != 0) return;
    child_ = fork();
    if (child_ == 0) {
      const pid_t grandchild = fork();
      Spin();
      if (write(ready[1], &grandchild, sizeof(grandchild)) < 0) _exit(1);
      while (true) pause();
    }
    for (int i = 0; i < 2; ++i) {
      pid_t told = 0;
      if (read(ready[0], &told, sizeof(told)) == sizeof(told) && told != 0) grandchild_ = told;
    }
    close(ready[0]);
    close(ready[1]);
  }
  ~Family() {
    kill(grandchild_, SIGKILL);
    kill(child_, SIGKILL);
    waitpid(child_, nullptr, 0);
  }
  pid_t child() const { return child_; }
  pid_t grandchild() const { return grandchild_; }

  static void Spin() {
    constexpr clock_t kLong = CLOCKS_PER_SEC / 20;
    const clock_t begun = clock();
    while (clock() - begun < kLong) {
    }
  }

 private:
  pid_t child_ = 0, grandchild_ = 0;
};

bool KernelListsChildren() { return std::ifstream("/proc/thread-self/children").good(); }

TEST(DescendantsTest, AreChildrenAndTheirsWithTheirTimeOnACpu) {
  if (!KernelListsChildren()) GTEST_SKIP() << "this kernel lists no children";
  const Family family;
  const Descendants found = FindDescendants("/proc", getpid());
  ASSERT_EQ(found.processes.size(), 2u);
  EXPECT_EQ(found.processes[0].pid, family.child());
  EXPECT_EQ(found.processes[0].parent, getpid());
  EXPECT_EQ(found.processes[1].pid, family.grandchild());
  EXPECT_EQ(found.processes[1].parent, family.child());
  for (const Descendant& one : found.processes) {
    EXPECT_GE(one.cpu_ns, 30'000'000u);
    EXPECT_FALSE(one.name.empty());
  }
}

TEST(DescendantsTest, TheirPidsAloneCostLess) {
  if (!KernelListsChildren()) GTEST_SKIP() << "this kernel lists no children";
  const Family family;
  EXPECT_EQ(ListDescendants("/proc", getpid()),
            (std::vector<pid_t>{family.child(), family.grandchild()}));
  EXPECT_TRUE(ListDescendants("/proc", INT32_MAX).empty());
}

TEST(DescendantsTest, WhatEndedChildrenHaveUsedIsTheirParents) {
  const uint64_t before = FindDescendants("/proc", getpid()).ended_cpu_ns;
  const pid_t child = fork();
  if (child == 0) {
    Family::Spin();
    _exit(0);
  }
  waitpid(child, nullptr, 0);
  EXPECT_GE(FindDescendants("/proc", getpid()).ended_cpu_ns, before + 30'000'000);
}

TEST(DescendantsTest, AProcessThatIsGoneHasNone) {
  EXPECT_TRUE(FindDescendants("/proc", INT32_MAX).processes.empty());
}

}  // namespace
}  // namespace rollcall
