// SPDX-License-Identifier: Apache-2.0
// Traces a real process, with what a recorded /proc says about Yama, seccomp, AppArmor and SELinux.
#include <gtest/gtest.h>
#include <sys/wait.h>

#include "cli/doctor/checks.h"
#include "cli/doctor/probes.h"
#include "temporary_tree.h"

namespace rollcall::doctor {
namespace {

TEST(ProbeTracingTest, ReadsWhatForbidsToTrace) {
  const TemporaryTree tree;
  tree.Write("proc/sys/kernel/yama/ptrace_scope", "2\n");
  tree.Write("proc/self/status", "Name:\tx\nSeccomp:\t2\nSeccomp_filters:\t1\n");
  tree.Write("proc/self/attr/current", "docker-default (enforce)\n");
  tree.Write("sys/fs/selinux/enforce", "1");
  tree.Write("sys/fs/selinux/booleans/deny_ptrace", "1 1");
  const TracingFacts facts = ProbeTracing(HostFiles(tree.root()));
  EXPECT_EQ(facts.ptrace_scope, 2);
  EXPECT_EQ(facts.seccomp, 2);
  EXPECT_EQ(facts.profile, "docker-default (enforce)");
  EXPECT_TRUE(facts.selinux_denies);
}

TEST(ProbeTracingTest, FindsNothingWhereNothingForbidsIt) {
  const TemporaryTree tree;
  tree.Write("proc/self/attr/current", "unconfined\n");
  tree.Write("sys/fs/selinux/enforce", "0");
  tree.Write("sys/fs/selinux/booleans/deny_ptrace", "1 1");
  const TracingFacts facts = ProbeTracing(HostFiles(tree.root()));
  EXPECT_EQ(facts.ptrace_scope, -1);
  EXPECT_EQ(facts.seccomp, 0);
  EXPECT_EQ(facts.profile, "");
  EXPECT_FALSE(facts.selinux_denies);
}

TEST(ProbeTracingTest, TheContextOfSelinuxIsNotAProfileOfAppArmor) {
  const TemporaryTree tree;
  tree.Write("proc/self/attr/current", "system_u:system_r:container_t:s0:c1,c2\n");
  EXPECT_EQ(ProbeTracing(HostFiles(tree.root())).profile, "");
}

TEST(ProbeTracingTest, LeavesNoProcessBehind) {
  const TracingFacts facts = ProbeTracing(HostFiles());
  EXPECT_NE(facts.of_child, Attempt::kNotMade);
  EXPECT_NE(facts.of_other, Attempt::kNotMade);
  EXPECT_EQ(waitpid(-1, nullptr, WNOHANG), -1);  // ECHILD
}

}  // namespace
}  // namespace rollcall::doctor
