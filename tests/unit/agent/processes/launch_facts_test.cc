// SPDX-License-Identifier: Apache-2.0
// Facts on the start and the place of a process, from a made-up /proc.
#include "agent/processes/launch_facts.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "temporary_tree.h"

namespace rollcall {
namespace {

const char kContainer[] = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
const char kUuid[] = "GPU-11111111-2222-3333-4444-555555555555";
const char kOtherUuid[] = "GPU-99999999-2222-3333-4444-555555555555";

class LaunchFactsTest : public ::testing::Test {
 protected:
  LaunchFactsTest() { proc_.Write("20/status", "Name:\ttrain\nUid:\t1234\t1234\t1234\t1234\n"); }

  void SetOwner(uid_t uid) {
    proc_.Write("20/status", absl::StrCat("Uid:\t", uid, "\t", uid, "\n"));
  }

  LaunchFacts Read(const std::vector<std::string>& environment) {
    proc_.Write("20/environ", absl::StrCat(absl::StrJoin(environment, std::string(1, '\0')),
                                           std::string(1, '\0')));
    return ReadLaunchFacts(proc_.root(), 20, "node-1").value();
  }

  void AddGpu(const std::string& bus, const std::string& model, const std::string& uuid) {
    proc_.Write(absl::StrCat("driver/nvidia/gpus/", bus, "/information"),
                absl::StrCat("Model: \t\t ", model, "\nIRQ:   \t\t 16\nGPU UUID: \t ", uuid,
                             "\nBus Location: \t ", bus, "\nDevice Minor: \t 0\n"));
  }

  TemporaryTree proc_;
};

TEST_F(LaunchFactsTest, AProcessWithoutEnvironmentHasNoFacts) {
  EXPECT_FALSE(ReadLaunchFacts(proc_.root(), 21, "node-1").has_value());
}

TEST_F(LaunchFactsTest, TakesTheAttemptFromTheFirstCounterThatIsANumber) {
  EXPECT_EQ(Read({"HOME=/root"}).attempt, -1);
  EXPECT_EQ(Read({"SLURM_RESTART_COUNT=4", "TORCHELASTIC_RESTART_COUNT=2"}).attempt, 2);
  EXPECT_EQ(Read({"ROLLCALL_ATTEMPT=7", "TORCHELASTIC_RESTART_COUNT=2"}).attempt, 7);
  EXPECT_EQ(Read({"ROLLCALL_ATTEMPT=last", "SLURM_RESTART_COUNT=4"}).attempt, 4);
  EXPECT_EQ(Read({"JOBSET_RESTART_ATTEMPT=3"}).attempt, 3);
  EXPECT_EQ(Read({"VOLCANO_JOB_VERSION=5"}).attempt, 5);
}

TEST_F(LaunchFactsTest, TakesTheTenantFromTheEnvironmentInPrintableAscii) {
  EXPECT_EQ(Read({"HOME=/root"}).tenant, "");
  EXPECT_EQ(Read({"ROLLCALL_TENANT=team-a"}).tenant, "team-a");
  EXPECT_EQ(Read({"ROLLCALL_TENANT=a\x1b[31m"}).tenant, "a?[31m");
  EXPECT_EQ(Read({"ROLLCALL_TENANT=" + std::string(300, 'x')}).tenant, std::string(255, 'x'));
}

TEST_F(LaunchFactsTest, TakesOnlyTheVariablesThatMatterToNcclInOrder) {
  EXPECT_EQ(Read({"HOME=/root", "NCCL_DEBUG=INFO", "HF_TOKEN=hf_1", "CUDA_VISIBLE_DEVICES=0,1",
                  "TORCH_NCCL_BLOCKING_WAIT=1", "XNCCL_DEBUG=1"})
                .environment,
            "CUDA_VISIBLE_DEVICES=0,1 NCCL_DEBUG=INFO TORCH_NCCL_BLOCKING_WAIT=1");
  EXPECT_EQ(Read({"HOME=/root"}).environment, "");
}

TEST_F(LaunchFactsTest, TakesOnlyTheLengthOfVariablesOfNcclThatItDoesNotKnow) {
  EXPECT_EQ(Read({"NCCL_PLUGIN_AUTH=x", "NCCL_NET_TOKEN=x", "NCCL_API_KEY=x", "NCCL_MINE=hunter2",
                  "NCCL_ALGO=Ring", "MY_NCCL_KEY=x", "HF_TOKEN=x"})
                .environment,
            "NCCL_ALGO=Ring NCCL_API_KEY=[1 character] NCCL_MINE=[7 characters] "
            "NCCL_NET_TOKEN=[1 character] NCCL_PLUGIN_AUTH=[1 character]");
}

TEST_F(LaunchFactsTest, LimitsTheVariablesAndMakesThemPrintable) {
  std::vector<std::string> many = {"NCCL_ALGO=\n\x1b"};
  for (int i = 0; i < 100; ++i)
    many.push_back(absl::StrCat("NCCL_DEBUG=", i, std::string(999, 'x')));
  const std::string text = Read(many).environment;
  EXPECT_EQ(text.substr(0, 13), "NCCL_ALGO=?? ");
  EXPECT_EQ(text.size(), 12 + 31 * 256u);
}

TEST_F(LaunchFactsTest, TellsWhereTheOutputOfTheProcessGoes) {
  EXPECT_EQ(Read({"HOME=/root"}).stdout_to, "");
  proc_.Link("20/fd/1", "/logs/rank 3.out");
  proc_.Link("20/fd/2", "pipe:[812]");
  const LaunchFacts facts = Read({"HOME=/root"});
  EXPECT_EQ(facts.stdout_to, "/logs/rank 3.out");
  EXPECT_EQ(facts.stderr_to, "a pipe");
}

TEST_F(LaunchFactsTest, TellsWhetherTheProcessSwitchesItsStacksOff) {
  EXPECT_EQ(Read({"ROLLCALL_STACKS=off"}).stacks_off, "ROLLCALL_STACKS=off");
  EXPECT_EQ(Read({"ROLLCALL_STACKS=on"}).stacks_off, "");
  EXPECT_EQ(Read({"HOME=/root"}).stacks_off, "");
}

TEST_F(LaunchFactsTest, JoinsAllCountersOfRestarts) {
  EXPECT_EQ(Read({"SLURM_RESTART_COUNT=4", "TORCHELASTIC_RESTART_COUNT=2"}).restarts,
            "TORCHELASTIC_RESTART_COUNT=2 SLURM_RESTART_COUNT=4");
  EXPECT_EQ(Read({"HOME=/root"}).restarts, "");
}

TEST_F(LaunchFactsTest, ProcessesOfOneRendezvousHaveOneLaunch) {
  EXPECT_EQ(Read({"RANK=1"}).launch, "");
  const std::string launch = Read({"MASTER_ADDR=node-7", "MASTER_PORT=29500"}).launch;
  EXPECT_EQ(launch, "1234 node-7:29500");
  EXPECT_NE(Read({"MASTER_ADDR=node-7", "MASTER_PORT=29501"}).launch, launch);
}

TEST_F(LaunchFactsTest, ALoopbackRendezvousIsOneOfItsHost) {
  for (const char* address : {"localhost", "127.0.0.1", "::1"}) {
    EXPECT_EQ(Read({absl::StrCat("MASTER_ADDR=", address), "MASTER_PORT=29500"}).launch,
              absl::StrCat("1234 ", address, ":29500@node-1"));
  }
}

TEST_F(LaunchFactsTest, ASlurmStepAndAPmixNamespaceAreOneLaunch) {
  EXPECT_EQ(Read({"SLURM_JOB_ID=77", "SLURM_STEP_ID=3"}).launch, "1234 slurm 77.3");
  EXPECT_EQ(Read({"SLURM_JOB_ID=77"}).launch, "1234 slurm 77.");
  EXPECT_EQ(Read({"PMIX_NAMESPACE=prterun-5"}).launch, "1234 pmix prterun-5");
}

// Each replica group of torchft has a torchrun of its own, which may start it again.
TEST_F(LaunchFactsTest, AReplicaMayRejoinItsJobAndHasNoLaunchOfItsOwn) {
  const LaunchFacts facts =
      Read({"REPLICA_GROUP_ID=1", "NUM_REPLICA_GROUPS=4", "MASTER_ADDR=a", "MASTER_PORT=7",
            "TORCHELASTIC_RESTART_COUNT=2", "SLURM_RESTART_COUNT=4"});
  EXPECT_TRUE(facts.may_rejoin);
  EXPECT_EQ(facts.launch, "");
  EXPECT_EQ(facts.restarts, "SLURM_RESTART_COUNT=4") << "the whole job began again";
  EXPECT_EQ(facts.attempt, 4);
  EXPECT_FALSE(Read({"REPLICA_GROUP_ID=4", "NUM_REPLICA_GROUPS=4"}).may_rejoin);
  EXPECT_FALSE(Read({"REPLICA_GROUP_ID=0"}).may_rejoin);
}

TEST_F(LaunchFactsTest, SaysWhoOwnsTheProcess) {
  EXPECT_EQ(Read({}).uid, 1234);
  proc_.Write("20/status", "Name:\ttrain\n");
  EXPECT_EQ(Read({}).uid, -1);
}

// Somebody may drain the node that a verdict names.
TEST_F(LaunchFactsTest, AnotherUsersProcessDoesNotSayOnWhichNodeItIs) {
  ASSERT_NE(geteuid(), 1234u);
  EXPECT_EQ(Read({"NODE_NAME=victim"}).node, "");
  EXPECT_EQ(Read({"SLURMD_NODENAME=victim"}).node, "");
  SetOwner(geteuid());
  EXPECT_EQ(Read({"NODE_NAME=gpu-17"}).node, "gpu-17");
}

TEST_F(LaunchFactsTest, TheAgentsOwnEnvironmentNamesTheNodeFirst) {
  setenv("NODE_NAME", "gpu-3", 1);
  SetOwner(geteuid());
  EXPECT_EQ(Read({"NODE_NAME=victim"}).node, "gpu-3");
  EXPECT_EQ(Read({}).node, "gpu-3");
  unsetenv("NODE_NAME");
}

TEST_F(LaunchFactsTest, TakesNodeAndPodFromTheEnvironment) {
  SetOwner(geteuid());
  const LaunchFacts facts = Read({"NODE_NAME=gpu-17", "POD_NAME=train-0", "POD_NAMESPACE=ml"});
  EXPECT_EQ(facts.node, "gpu-17");
  EXPECT_EQ(facts.pod, "ml/train-0");
  EXPECT_EQ(Read({"SLURMD_NODENAME=n3", "HOSTNAME=login"}).node, "n3");
  EXPECT_EQ(Read({"HOSTNAME=login"}).pod, "");
}

TEST_F(LaunchFactsTest, InAContainerOfAPodTheHostNameIsThePod) {
  proc_.Write("20/cgroup", absl::StrCat("0::/kubepods.slice/pod7.slice/cri-containerd-", kContainer,
                                        ".scope\n"));
  const LaunchFacts facts = Read({"HOSTNAME=train-0"});
  EXPECT_EQ(facts.container, "0123456789ab");
  EXPECT_EQ(facts.pod, "train-0");
}

constexpr char kPodUid[] = "6f1c2a34-0b5d-4e6f-8a9b-0123456789ab";

TEST_F(LaunchFactsTest, TheControlGroupTellsThePodsUid) {
  const std::string with_underscores = absl::StrReplaceAll(kPodUid, {{"-", "_"}});
  for (const std::string& path : {
           absl::StrCat("/kubepods/burstable/pod", kPodUid, "/", kContainer),
           absl::StrCat("/kubepods/pod", kPodUid, "/", kContainer),
           absl::StrCat("/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod",
                        with_underscores, ".slice/cri-containerd-", kContainer, ".scope"),
           absl::StrCat("/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-pod",
                        with_underscores, ".slice/crio-", kContainer, ".scope"),
           // An agent in a control group namespace of its own.
           absl::StrCat("/../../kubepods-burstable-pod", with_underscores, ".slice/", kContainer),
       }) {
    proc_.Write("20/cgroup", absl::StrCat("0::", path, "\n"));
    EXPECT_EQ(Read({"POD_NAME=a"}).pod_uid, kPodUid) << path;
  }
}

TEST_F(LaunchFactsTest, AControlGroupThatThePodMadeDoesNotTellItsUid) {
  proc_.Write("20/cgroup", absl::StrCat("0::/kubepods/pod", kPodUid, "/", kContainer,
                                        "/pod00000000-0b5d-4e6f-8a9b-0123456789ab\n"));
  EXPECT_EQ(Read({}).pod_uid, kPodUid);
  EXPECT_EQ(Read({"POD_UID=00000000-0b5d-4e6f-8a9b-0123456789ab"}).pod_uid, kPodUid);
}

TEST_F(LaunchFactsTest, ThePodsUidComesFromTheEnvironmentWhereTheControlGroupIsHidden) {
  for (const std::string& path : {
           std::string("/"),
           absl::StrCat("/../cri-containerd-", kContainer, ".scope"),
           // A static pod's hash.
           absl::StrCat("/kubepods/burstable/pod0123456789abcdef0123456789abcdef/", kContainer),
           // No form of a kubelet.
           absl::StrCat("/kubepods/tripod", kPodUid),
           absl::StrCat("/kubepods/pod", kPodUid, "0"),
       }) {
    proc_.Write("20/cgroup", absl::StrCat("0::", path, "\n"));
    EXPECT_EQ(Read({"POD_NAME=a"}).pod_uid, "") << path;
    EXPECT_EQ(Read({absl::StrCat("POD_UID=", kPodUid)}).pod_uid, kPodUid) << path;
  }
  EXPECT_EQ(Read({"POD_UID=someone's"}).pod_uid, "");
}

TEST_F(LaunchFactsTest, AContainerWithoutKubernetesIsNotAPod) {
  proc_.Write("20/cgroup", absl::StrCat("12:devices:/docker/", kContainer, "\n0::/x\n"));
  const LaunchFacts facts = Read({"HOSTNAME=0123456789ab"});
  EXPECT_EQ(facts.container, "0123456789ab");
  EXPECT_EQ(facts.pod, "");
}

TEST_F(LaunchFactsTest, FindsTheContainerByItsMountsIfTheControlGroupIsHidden) {
  proc_.Write("20/cgroup", "0::/\n");
  proc_.Write("20/mountinfo",
              absl::StrCat("30 25 0:24 / /var/lib/docker/containers/", std::string(64, 'f'),
                           "/mounts/shm rw - tmpfs shm rw\n"
                           "36 25 8:1 /var/lib/docker/containers/",
                           kContainer, "/hostname /etc/hostname rw - ext4 /dev/sda1 rw\n"));
  EXPECT_EQ(Read({}).container, "0123456789ab");
}

TEST_F(LaunchFactsTest, AProcessOfTheHostIsInNoContainer) {
  proc_.Write("20/cgroup", "0::/user.slice/user-0.slice/session-1.scope\n");
  proc_.Write("20/mountinfo", absl::StrCat("30 25 0:24 / /var/lib/docker/containers/", kContainer,
                                           "/mounts/shm rw - tmpfs shm rw\n"));
  EXPECT_EQ(Read({}).container, "");
}

TEST_F(LaunchFactsTest, ThePidInsideDiffersInAPidNamespaceOnly) {
  EXPECT_EQ(Read({}).inner_pid, 0);
  proc_.Write("20/task/20/stat", "20 (train) S 1 1 1 0 -1 0 0 0 0 0 1 1 0 0 20 0 1 0 200 0\n");
  proc_.Write("20/task/20/status", "NSpid:\t20\t7\n");
  EXPECT_EQ(Read({}).inner_pid, 7);
  proc_.Write("20/task/20/status", "NSpid:\t20\n");
  EXPECT_EQ(Read({}).inner_pid, 0);
}

TEST_F(LaunchFactsTest, TakesTheGpuOfTheLocalRankFromTheVisibleDevices) {
  const std::string devices = absl::StrCat("CUDA_VISIBLE_DEVICES=", kUuid, ",", kOtherUuid);
  EXPECT_EQ(Read({devices, "RANK=9", "LOCAL_RANK=1"}).gpu_uuid, kOtherUuid);
  EXPECT_EQ(Read({devices, "RANK=9"}).gpu_uuid, "") << "either of two";
  EXPECT_EQ(Read({devices, "RANK=9", "LOCAL_RANK=2"}).gpu_uuid, "");
  EXPECT_EQ(
      Read({absl::StrCat("NVIDIA_VISIBLE_DEVICES=", kUuid), "RANK=9", "LOCAL_RANK=0"}).gpu_uuid,
      kUuid);
  EXPECT_EQ(Read({absl::StrCat("CUDA_VISIBLE_DEVICES=MIG-", kUuid), "RANK=9"}).gpu_uuid,
            absl::StrCat("MIG-", kUuid));
}

TEST_F(LaunchFactsTest, FindsTheGpuByItsNumberAmongEqualGpus) {
  AddGpu("0000:3b:00.0", "NVIDIA H100", kUuid);
  AddGpu("0000:5e:00.0", "NVIDIA H100", kOtherUuid);
  EXPECT_EQ(Read({"RANK=9", "LOCAL_RANK=1"}).gpu_uuid, kOtherUuid);
  EXPECT_EQ(Read({"RANK=9", "LOCAL_RANK=0", "CUDA_VISIBLE_DEVICES=1,0"}).gpu_uuid, kOtherUuid);
  EXPECT_EQ(Read({"RANK=9", "LOCAL_RANK=5", "CUDA_VISIBLE_DEVICES=1"}).gpu_uuid, kOtherUuid);
  EXPECT_EQ(Read({"RANK=9", "LOCAL_RANK=2"}).gpu_uuid, "");
  EXPECT_EQ(Read({"RANK=9"}).gpu_uuid, "");
  EXPECT_EQ(Read({"RANK=9", "LOCAL_RANK=0", "NVIDIA_VISIBLE_DEVICES=3"}).gpu_uuid, "")
      << "the container numbers its devices anew";
}

TEST_F(LaunchFactsTest, NamesNoGpuWhereCudasOrderIsNotKnown) {
  AddGpu("0000:3b:00.0", "NVIDIA H100", kUuid);
  AddGpu("0000:5e:00.0", "NVIDIA A100", kOtherUuid);
  EXPECT_EQ(Read({"RANK=9", "LOCAL_RANK=1"}).gpu_uuid, "");
  EXPECT_EQ(Read({"RANK=9", "LOCAL_RANK=1", "CUDA_DEVICE_ORDER=PCI_BUS_ID"}).gpu_uuid, kOtherUuid);
}

TEST_F(LaunchFactsTest, KeepsTheTextsOfAHostileEnvironmentShort) {
  SetOwner(geteuid());
  const LaunchFacts facts =
      Read({absl::StrCat("NODE_NAME=", std::string(100'000, 'x')), "MASTER_PORT=1",
            "MASTER_ADDR=a\x1b[31m\nb", absl::StrCat("POD_NAME=", std::string(100'000, 'x'))});
  EXPECT_LE(facts.node.size(), 255u);
  EXPECT_LE(facts.pod.size(), 520u);
  EXPECT_EQ(facts.launch.find('\x1b'), std::string::npos);
  EXPECT_EQ(facts.launch.find('\n'), std::string::npos);
}

}  // namespace
}  // namespace rollcall
