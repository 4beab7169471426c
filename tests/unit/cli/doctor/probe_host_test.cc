// SPDX-License-Identifier: Apache-2.0
// What the doctor reads in recorded trees of systemd, Slurm, containers and drivers.
#include <gtest/gtest.h>

#include "cli/doctor/probes.h"
#include "temporary_tree.h"

namespace rollcall::doctor {
namespace {

class ProbeHostTest : public testing::Test {
 protected:
  HostFiles files() const { return HostFiles(tree_.root()); }

  const TemporaryTree tree_;
};

TEST_F(ProbeHostTest, LogindRemovesByDefaultExceptOnRhel) {
  tree_.Write("run/systemd/system/x", "");
  tree_.Write("etc/os-release", "NAME=Debian\nID=debian\n");
  EXPECT_TRUE(ReadSystemd("ada", files()).is_running);
  EXPECT_TRUE(ReadSystemd("ada", files()).removes_ipc);
  tree_.Write("etc/os-release", "ID=\"rocky\"\nID_LIKE=\"rhel centos fedora\"\n");
  EXPECT_FALSE(ReadSystemd("ada", files()).removes_ipc);
}

TEST_F(ProbeHostTest, WithoutSystemdNothingIsRemoved) {
  EXPECT_FALSE(ReadSystemd("ada", files()).is_running);
}

TEST_F(ProbeHostTest, PrefersADropInOfEtcToOtherFiles) {
  tree_.Write("etc/systemd/logind.conf", "[Login]\n#RemoveIPC=yes\nRemoveIPC=yes\n");
  EXPECT_EQ(ReadSystemd("ada", files()).source, "/etc/systemd/logind.conf");
  EXPECT_TRUE(ReadSystemd("ada", files()).removes_ipc);
  tree_.Write("etc/systemd/logind.conf.d/50-ipc.conf", "[Login]\nRemoveIPC = no\n");
  tree_.Write("usr/lib/systemd/logind.conf.d/50-ipc.conf", "[Login]\nRemoveIPC=yes\n");
  const SystemdFacts facts = ReadSystemd("ada", files());
  EXPECT_FALSE(facts.removes_ipc);
  EXPECT_EQ(facts.source, "/etc/systemd/logind.conf.d/50-ipc.conf");
}

TEST_F(ProbeHostTest, ALingeringUserIsKnownByName) {
  tree_.Write("var/lib/systemd/linger/ada", "");
  EXPECT_TRUE(ReadSystemd("ada", files()).lingers);
  EXPECT_FALSE(ReadSystemd("bob", files()).lingers);
  EXPECT_FALSE(ReadSystemd("", files()).lingers);
}

TEST_F(ProbeHostTest, SlurmsSettingsAreReadInAnySpelling) {
  tree_.Write(
      "etc/slurm/slurm.conf",
      "ClusterName=c\njobcontainertype = job_container/tmpfs # private\nTaskProlog=/opt/prolog\n");
  tree_.Write("etc/slurm/plugstack.conf", "include plugstack.conf.d/*\n");
  tree_.Write("etc/slurm/plugstack.conf.d/pyxis.conf", "required /usr/lib/spank_pyxis.so\n");
  const SlurmFacts facts = ReadSlurm({}, files());
  EXPECT_EQ(facts.config, "/etc/slurm/slurm.conf");
  EXPECT_EQ(facts.job_container, "job_container/tmpfs");
  EXPECT_EQ(facts.task_prolog, "/opt/prolog");
  EXPECT_TRUE(facts.has_pyxis);
}

TEST_F(ProbeHostTest, APyxisThatIsCommentedOutDoesNotCount) {
  tree_.Write("srv/slurm.conf", "#TaskProlog=/opt/prolog\n");
  tree_.Write("srv/plugstack.conf", "# required /usr/lib/spank_pyxis.so\n");
  const SlurmFacts facts = ReadSlurm({{"SLURM_CONF", "/srv/slurm.conf"}}, files());
  EXPECT_EQ(facts.config, "/srv/slurm.conf");
  EXPECT_EQ(facts.task_prolog, "");
  EXPECT_FALSE(facts.has_pyxis);
}

TEST_F(ProbeHostTest, ThePluginOfRollcallIsFoundWithItsFile) {
  tree_.Write("etc/slurm/slurm.conf", "ClusterName=a\n");
  tree_.Write("etc/slurm/plugstack.conf",
              "#optional /old/spank_rollcall.so\n"
              "optional /opt/spank_rollcall.so daemon=a:1\n");
  EXPECT_EQ(ReadSlurm({}, files()).plugin, "/opt/spank_rollcall.so");
  EXPECT_FALSE(ReadSlurm({}, files()).has_plugin_file);
  tree_.Write("opt/spank_rollcall.so", "");
  EXPECT_TRUE(ReadSlurm({}, files()).has_plugin_file);
  tree_.Write("etc/slurm/plugstack.conf", "optional /opt/other.so\n");
  EXPECT_EQ(ReadSlurm({}, files()).plugin, "");
}

TEST_F(ProbeHostTest, WithoutSlurmThereIsNoConfig) { EXPECT_EQ(ReadSlurm({}, files()).config, ""); }

TEST_F(ProbeHostTest, TheDriverAndItsDevicesAreCounted) {
  tree_.Write(
      "proc/driver/nvidia/version",
      "NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54.14  Thu Feb 22 01:44:30 UTC 2024\n");
  for (const char* name : {"nvidia0", "nvidia7", "nvidiactl", "nvidia-uvm", "nvidia-caps/x"}) {
    tree_.Write(std::string("dev/") + name, "");
  }
  const GpuFacts facts = ProbeGpu({}, files());
  EXPECT_EQ(facts.driver, "550.54.14");
  EXPECT_EQ(facts.devices, 2);
  EXPECT_EQ(facts.device_error, "");
  EXPECT_EQ(facts.library, "");
}

TEST_F(ProbeHostTest, ADriverWithoutDevicesSaysWhyTheyCannotBeOpened) {
  tree_.Write("proc/driver/nvidia/version",
              "NVRM version: NVIDIA UNIX Open Kernel Module 570.1.2\n");
  tree_.Write("etc/ld.so.conf.d/driver.conf", "/opt/driver\n");
  tree_.Write("opt/driver/libcuda.so.1", "damaged");
  const GpuFacts facts = ProbeGpu({}, files());
  EXPECT_EQ(facts.driver, "570.1.2");
  EXPECT_EQ(facts.devices, 0);
  EXPECT_EQ(facts.device_error, "No such file or directory");
  EXPECT_EQ(facts.library, tree_.root() + "/opt/driver/libcuda.so.1");
  EXPECT_FALSE(facts.elf.has_marker_calls);
}

TEST_F(ProbeHostTest, ContainersAreKnownByTheirFiles) {
  EXPECT_EQ(ProbeContainer({}, files()).kind, "");
  EXPECT_FALSE(ProbeContainer({}, files()).has_proc);
  tree_.Write("run/.containerenv", "");
  EXPECT_EQ(ProbeContainer({}, files()).kind, "podman");
  tree_.Write(".dockerenv", "");
  EXPECT_EQ(ProbeContainer({}, files()).kind, "docker");
  EXPECT_EQ(ProbeContainer({{"KUBERNETES_SERVICE_HOST", "10.0.0.1"}}, files()).kind, "kubernetes");
}

TEST_F(ProbeHostTest, TheKernelsLogIsReadableOrNot) {
  EXPECT_EQ(ProbeKernel(files()).kernel_log, Attempt::kFailed);
  tree_.Write("dev/kmsg", "6,1,2,-;a line\n");
  EXPECT_EQ(ProbeKernel(files()).kernel_log, Attempt::kWorked);
}

TEST(ProbeContainerTest, ThisProcessSeesItsOwnProc) {
  const ContainerFacts facts = ProbeContainer({}, HostFiles());
  EXPECT_TRUE(facts.has_proc);
  EXPECT_FALSE(facts.is_foreign_proc);
}

}  // namespace
}  // namespace rollcall::doctor
