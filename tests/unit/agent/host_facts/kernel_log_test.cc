// SPDX-License-Identifier: Apache-2.0
// Messages of the kernel, in its own words.
#include "agent/host_facts/kernel_log.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "absl/strings/match.h"
#include "host_tree.h"

namespace rollcall {
namespace {

constexpr int64_t kSecond = 1'000'000'000;

TEST(KernelLogTest, ReadsTimesAndLeavesOutContinuations) {
  const auto records = ParseKernelLog(
      "6,339,5140900,-;NET: Registered protocol family 10\n"
      " SUBSYSTEM=net\n"
      "3,340,9000000,-,caller=T17;mlx5_core: Link down; again\n"
      "half a record",
      10'000'000);
  ASSERT_EQ(records.size(), 2u);
  EXPECT_EQ(records[0].age_ns, 4'859'100'000);
  EXPECT_EQ(records[1].age_ns, kSecond);
  EXPECT_EQ(records[1].text, "mlx5_core: Link down; again");
}

TEST(KernelLogTest, LeavesOutWhatIsOlderThanAnHour) {
  EXPECT_TRUE(ParseKernelLog("6,1,1000000,-;old\n", 3'602'000'000).empty());
}

TEST(KernelLogTest, ARecordOfAnotherClockIsNeverFromTheFuture) {
  EXPECT_EQ(ParseKernelLog("6,1,9000000,-;early\n", 8'000'000)[0].age_ns, 0);
}

struct Case {
  const char* name;
  const char* text;
  HostFactKind kind;
  const char* subject;
  int64_t value;
  int32_t pid;
};

void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

using K = HostFactKind;

const Case kCases[] = {
    {"an_xid",
     "NVRM: Xid (PCI:0000:3b:00): 79, pid=4121, name=python3, GPU has fallen off the bus.", K::kXid,
     "GPU 0000:3b:00.0", 79, 4121},
    {"an_xid_of_no_process",
     "NVRM: Xid (PCI:0000:3b:00): 74, pid='<unknown>', name=<unknown>, NVLink: fatal error",
     K::kXid, "GPU 0000:3b:00.0", 74, 0},
    {"an_sxid", "nvidia-nvswitch3: SXid (PCI:0000:c4:00.0): 20034, Fatal, Link 32 LTSSM Fault Up",
     K::kSxid, "0000:c4:00.0", 20034, 0},
    {"an_oom_kill",
     "Out of memory: Killed process 4121 (python3) total-vm:1kB, anon-rss:1kB, UID:0 pgtables:1kB",
     K::kOomKill, "", 0, 4121},
    {"an_oom_kill_in_a_group",
     "Memory cgroup out of memory: Killed process 4122 (pt_data_worker) total-vm:1kB", K::kOomKill,
     "", 0, 4122},
    {"a_hung_task", "INFO: task python3:4121 blocked for more than 122 seconds.", K::kHungTask, "",
     0, 4121},
    {"a_hung_task_with_a_colon", "INFO: task kworker/u8:2:77 blocked for more than 122 seconds.",
     K::kHungTask, "", 0, 77},
    {"a_soft_lockup", "watchdog: BUG: soft lockup - CPU#3 stuck for 22s! [python3:4121]",
     K::kLockup, "", 0, 4121},
    {"a_stall_of_no_process", "rcu: INFO: rcu_sched self-detected stall on CPU: 3", K::kLockup, "",
     0, 0},
    {"a_silent_nfs_server", "nfs: server fs1 not responding, still trying", K::kServerSilent, "fs1",
     0, 0},
    {"a_silent_lustre_server",
     "Lustre: scratch-OST0003-osc-ff: Connection to scratch-OST0003 (at 10.0.0.5@o2ib) was lost; "
     "in "
     "progress operations using this service will wait for recovery to complete",
     K::kServerSilent, "scratch-OST0003", 0, 0},
    {"a_disk", "blk_update_request: I/O error, dev nvme0n1, sector 123 op 0x0:(READ)", K::kIoError,
     "nvme0n1", 0, 0},
    {"a_disk_that_does_not_answer", "nvme nvme1: I/O 5 QID 3 timeout, aborting", K::kIoError,
     "nvme1", 0, 0},
    {"a_read_only_file_system", "EXT4-fs (sda1): Remounting filesystem read-only", K::kIoError,
     "sda1", 0, 0},
    {"a_link_by_interface", "mlx5_core 0000:98:00.0 ens3: Link down", K::kLinkDown, "mlx5_2 port 1",
     0, 0},
    {"a_link_by_address", "mlx5_core 0000:98:00.0: Port: 2 Link DOWN", K::kLinkDown,
     "mlx5_2 port 2", 0, 0},
    {"a_link_by_device", "infiniband mlx5_0: Port: 1 Link DOWN", K::kLinkDown, "mlx5_0 port 1", 0,
     0},
    {"a_network_card_that_does_not_send",
     "NETDEV WATCHDOG: ens3 (mlx5_core): transmit queue 3 timed out", K::kNicError, "mlx5_2 port 1",
     0, 0},
    {"a_pcie_error", "pcieport 0000:97:01.0: AER: Uncorrected (Fatal) error received: 0000:98:00.0",
     K::kPcieError, "0000:97:01.0", 0, 0},
    {"a_machine_check", "[Hardware Error]: Uncorrected, software restartable error.",
     K::kMachineCheck, "", 0, 0},
    // What says nothing about a hang.
    {"another_link", "ata1: SATA link down (SStatus 0 SControl 300)", K::kUnknown, "", 0, 0},
    {"a_virtual_link", "docker0: link is down", K::kUnknown, "", 0, 0},
    {"a_corrected_error", "[Hardware Error]: Corrected error, no action required.", K::kUnknown, "",
     0, 0},
    {"a_corrected_pcie_error", "pcieport 0000:97:01.0: AER: Corrected error received", K::kUnknown,
     "", 0, 0},
    {"an_ordinary_line", "python3[4121]: segfault at 0 ip 0 sp 0 error 4", K::kUnknown, "", 0, 0},
};

class KernelLogMessageTest : public testing::TestWithParam<Case> {};

TEST_P(KernelLogMessageTest, IsReadAsTheKernelMeansIt) {
  const HostTree host;
  const KernelFact read =
      ReadKernelRecord({kSecond, GetParam().text}, DeviceNames(HostFiles(host.root())));
  EXPECT_EQ(InfoOf(read.fact.kind).text, std::string(InfoOf(GetParam().kind).text));
  EXPECT_EQ(read.fact.subject, GetParam().subject);
  EXPECT_EQ(read.fact.value, GetParam().value);
  EXPECT_EQ(read.fact.pid, GetParam().pid);
}

INSTANTIATE_TEST_SUITE_P(Messages, KernelLogMessageTest, testing::ValuesIn(kCases),
                         [](const auto& info) { return std::string(info.param.name); });

constexpr pid_t kOwnPid = 4121;

std::vector<Fact> FactsOf(const std::vector<KernelRecord>& records) {
  const HostTree host;
  return FactsOfKernelLog(records, DeviceNames(HostFiles(host.root())), {4120, kOwnPid});
}

TEST(KernelLogTest, AServerThatIsBackIsNotAFact) {
  EXPECT_TRUE(FactsOf({{9 * kSecond, "nfs: server fs1 not responding, still trying"},
                       {2 * kSecond, "nfs: server fs1 OK"}})
                  .empty());
  EXPECT_EQ(FactsOf({{9 * kSecond, "nfs: server fs1 OK"},
                     {2 * kSecond, "nfs: server fs1 not responding, still trying"}})
                .size(),
            1u);
}

TEST(KernelLogTest, ALinkThatIsBackHasFlapped) {
  const auto facts = FactsOf({{9 * kSecond, "mlx5_core 0000:98:00.0 ens3: Link down"},
                              {2 * kSecond, "mlx5_core 0000:98:00.0 ens3: Link up"}});
  ASSERT_EQ(facts.size(), 1u);
  EXPECT_EQ(facts[0].kind, HostFactKind::kLinkFlap);
  EXPECT_EQ(facts[0].age_ns, 9 * kSecond);
}

TEST(KernelLogTest, AStormOfMessagesIsAFewFacts) {
  std::vector<KernelRecord> storm;
  for (int i = 0; i < 1000; ++i) {
    storm.push_back({(1000 - i) * kSecond, "blk_update_request: I/O error, dev sda, sector 1"});
  }
  const auto facts = FactsOf(storm);
  ASSERT_EQ(facts.size(), 4u);
  EXPECT_EQ(facts[0].age_ns, kSecond) << "the newest";
}

TEST(KernelLogTest, AStormAboutOthersHidesNothingAboutTheJobsProcesses) {
  std::vector<KernelRecord> records = {
      {99 * kSecond, "Memory cgroup out of memory: Killed process 4121 (python3)"},
      {98 * kSecond, "INFO: task python3:4121 blocked for more than 122 seconds."}};
  for (int i = 0; i < 9; ++i) {
    records.push_back({kSecond, "Memory cgroup out of memory: Killed process 77 (neighbour)"});
    records.push_back({kSecond, "INFO: task kworker/u8:2:88 blocked for more than 122 seconds."});
  }
  const auto facts = FactsOf(records);
  EXPECT_EQ(facts.size(), 4 + 4 + 2u);
  EXPECT_EQ(std::count_if(facts.begin(), facts.end(),
                          [](const Fact& fact) { return fact.pid == kOwnPid; }),
            2);
}

TEST(KernelLogTest, GroupsWithoutMemoryDoNotHideAHostWithoutMemory) {
  std::vector<KernelRecord> records = {{99 * kSecond, "Out of memory: Killed process 66 (a)"}};
  for (int i = 0; i < 9; ++i) {
    records.push_back({kSecond, "Memory cgroup out of memory: Killed process 77 (neighbour)"});
  }
  const auto facts = FactsOf(records);
  ASSERT_EQ(facts.size(), 5u);
  EXPECT_EQ(facts.back().pid, 66);
}

}  // namespace
}  // namespace rollcall
