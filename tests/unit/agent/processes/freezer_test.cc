// SPDX-License-Identifier: Apache-2.0
#include "agent/processes/freezer.h"

#include <gtest/gtest.h>

#include "temporary_tree.h"

namespace rollcall {
namespace {

TEST(FreezerTest, FindsTheGroupOfVersion1) {
  const struct {
    const char* file;
    const char* group;
  } cases[] = {
      {"3:freezer:/job_7\n2:cpu,cpuacct:/\n0::/\n", "/job_7"},
      {"5:cpuset:/a\n4:net_cls,freezer:/slurm/uid_0/job_3:x\n", "/slurm/uid_0/job_3:x"},
      {"3:freezer:/\n", ""},
      {"3:freezer:/../../other\n", ""},
      {"0::/user.slice\n", ""},
      {"3:freezers:/job_7\n", ""},
      {"3:freezer\n", ""},
      {"", ""},
  };
  for (const auto& one : cases) EXPECT_EQ(FreezerGroup(one.file), one.group) << one.file;
}

TEST(FreezerTest, IsFrozenWhileItsGroupIs) {
  const TemporaryTree tree;
  tree.Write("proc/7/cgroup", "3:freezer:/job_7\n");
  const auto is_frozen = [&tree] {
    return IsFrozenByGroup(tree.root() + "/proc", 7, tree.root() + "/freezer");
  };
  EXPECT_FALSE(is_frozen()) << "its state is not shown";
  tree.Write("freezer/job_7/freezer.state", "FROZEN\n");
  EXPECT_TRUE(is_frozen());
  for (const char* state : {"THAWED\n", "FREEZING\n", ""}) {
    tree.Write("freezer/job_7/freezer.state", state);
    EXPECT_FALSE(is_frozen()) << state;
  }
  EXPECT_FALSE(IsFrozenByGroup(tree.root() + "/proc", 8, tree.root() + "/freezer"));
}

}  // namespace
}  // namespace rollcall
