// SPDX-License-Identifier: Apache-2.0
#include "agent/symbols/jit_names.h"

#include <gtest/gtest.h>

#include "temporary_tree.h"

namespace rollcall {
namespace {

class JitMapTest : public testing::Test {
 protected:
  JitMapTest() { tree_.Write("proc/7/status", "Name:\tx\nNSpid:\t7\n"); }
  std::string Name() const {
    return JitNames::ReadForProcess(tree_.root() + "/proc", 7).Find(0x1000);
  }

  const TemporaryTree tree_;
};

TEST_F(JitMapTest, AreReadInTheRootOfTheProcess) {
  tree_.Write("proc/7/root/tmp/perf-7.map", "1000 10 train\n");
  EXPECT_EQ(Name(), "train");
}

// The root is the container's: an absolute link in it means the container's own folder.
TEST_F(JitMapTest, ALinkOfAContainerStaysInTheContainer) {
  tree_.Write("host/perf-7.map", "1000 10 of_the_host\n");
  tree_.Link("proc/7/root/tmp", tree_.root() + "/host");
  EXPECT_EQ(Name(), "");
}

TEST_F(JitMapTest, ALinkWithinTheContainerIsFollowed) {
  tree_.Write("proc/7/root/scratch/perf-7.map", "1000 10 train\n");
  tree_.Link("proc/7/root/tmp", "/scratch");
  EXPECT_EQ(Name(), "train");
}

TEST_F(JitMapTest, ALinkInTheLastPlaceIsNotFollowed) {
  tree_.Write("proc/7/root/tmp/other", "1000 10 other\n");
  tree_.Link("proc/7/root/tmp/perf-7.map", "other");
  EXPECT_EQ(Name(), "");
}

}  // namespace
}  // namespace rollcall
