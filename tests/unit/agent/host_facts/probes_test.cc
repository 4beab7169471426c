// SPDX-License-Identifier: Apache-2.0
// What the probes find in the files of a host.
#include "agent/host_facts/probes.h"

#include <gtest/gtest.h>

#include <functional>

#include "absl/strings/str_cat.h"
#include "host_tree.h"

namespace rollcall {
namespace {

using K = HostFactKind;

ProbeInput InputFor(const HostTree& host) {
  return {HostFiles(host.root()), {HostTree::kPid}, 0, ""};
}

const Fact* Find(const ProbeResult& result, HostFactKind kind, const std::string& subject = "") {
  for (const Fact& fact : result.facts) {
    if (fact.kind == kind && (subject.empty() || fact.subject == subject)) return &fact;
  }
  return nullptr;
}

std::function<void()>* between_samples = nullptr;

// The probe's result if the file holds `before` at its first look, and `after` at the second.
ProbeResult WhileChanging(const HostTree& host, const std::string& file, const std::string& before,
                          const std::string& after, ProbeResult (*probe)(const ProbeInput&)) {
  host.Write(file, before);
  std::function<void()> change = [&] { host.Write(file, after); };
  between_samples = &change;
  ProbeInput input = InputFor(host);
  input.pause = [](int64_t /*ns*/) { (*between_samples)(); };
  return probe(input);
}

TEST(ProbesTest, AHealthyHostShowsNothingButItsState) {
  const HostTree host;
  for (const std::string& name : HostProbes()) {
    const ProbeResult result = FindProbe(name)->run(InputFor(host));
    EXPECT_EQ(result.outcome, ProbeOutcome::kOk) << name << ": " << result.note;
    for (const Fact& fact : result.facts) {
      const bool is_state = fact.kind == K::kIbPort || fact.kind == K::kIbRate ||
                            fact.kind == K::kNetLink || fact.kind == K::kMemoryLow ||
                            fact.kind == K::kCpuSpeed || fact.kind == K::kMount ||
                            fact.kind == K::kClockUnsynchronized;  // of the machine that runs this
      EXPECT_TRUE(is_state) << name << ": " << InfoOf(fact.kind).text;
    }
  }
}

TEST(ProbesTest, APortHasItsState) {
  const HostTree host;
  host.Write(HostTree::Port("mlx5_2") + "state", "1: DOWN\n");
  host.Write(HostTree::Port("mlx5_2") + "phys_state", "2: Polling\n");
  host.Write(HostTree::Port("mlx5_2") + "counters/link_downed", "3\n");
  const ProbeResult result = ProbeInfiniband(InputFor(host));
  const Fact* port = Find(result, K::kIbPort, "mlx5_2 port 1");
  ASSERT_NE(port, nullptr);
  EXPECT_EQ(port->value, 1);
  EXPECT_EQ(port->text, "DOWN, Polling");
  EXPECT_EQ(Find(result, K::kIbPort, "mlx5_0 port 1")->value, 4);
  EXPECT_EQ(Find(result, K::kIbRate, "mlx5_0 port 1")->value, 400);
  EXPECT_EQ(Find(result, K::kIbLinkDowned)->value, 3);
}

TEST(ProbesTest, APortWhoseCountersGrowCountsTheGrowth) {
  const HostTree host;
  const ProbeResult errors = WhileChanging(host, HostTree::Port("mlx5_2") + "counters/symbol_error",
                                           "2\n", "9\n", ProbeInfiniband);
  const Fact* grown = Find(errors, K::kIbLinkErrors);
  ASSERT_NE(grown, nullptr);
  EXPECT_EQ(grown->subject, "mlx5_2 port 1");
  EXPECT_EQ(grown->value, 7);
  EXPECT_EQ(grown->text, "symbol_error +7");
  EXPECT_EQ(Find(errors, K::kIbRetransmits), nullptr);
  const ProbeResult again =
      WhileChanging(host, HostTree::Port("mlx5_0") + "hw_counters/local_ack_timeout_err", "4\n",
                    "44\n", ProbeInfiniband);
  ASSERT_NE(Find(again, K::kIbRetransmits, "mlx5_0 port 1"), nullptr);
  EXPECT_EQ(Find(again, K::kIbRetransmits)->value, 40);
}

TEST(ProbesTest, ACounterThatWasSetBackHasNotGrown) {
  const HostTree host;
  const ProbeResult result = WhileChanging(host, HostTree::Port("mlx5_2") + "counters/symbol_error",
                                           "2000\n", "1\n", ProbeInfiniband);
  EXPECT_EQ(Find(result, K::kIbLinkErrors), nullptr);
}

TEST(ProbesTest, AHostWithoutInfinibandHasNoSuchPart) {
  const HostTree host;
  host.Remove("sys/class/infiniband");
  EXPECT_EQ(ProbeInfiniband(InputFor(host)).outcome, ProbeOutcome::kAbsent);
}

TEST(ProbesTest, AnInterfaceWithoutCarrierAndLostPackets) {
  const HostTree host;
  host.Write("sys/class/net/ens3/carrier", "0\n");
  const ProbeResult result =
      WhileChanging(host, "sys/class/net/ens3/statistics/tx_dropped", "1\n", "31\n", ProbeNetwork);
  EXPECT_EQ(Find(result, K::kNetLink, "ens3")->value, 0);
  EXPECT_EQ(Find(result, K::kNetLink, "ens1")->value, 1);
  ASSERT_NE(Find(result, K::kNetDrops, "ens3"), nullptr);
  EXPECT_EQ(Find(result, K::kNetDrops)->value, 30);
}

TEST(ProbesTest, TcpThatSendsAgain) {
  const HostTree host;
  const ProbeResult result =
      WhileChanging(host, "proc/net/snmp", "Tcp: RtoAlgorithm RetransSegs InErrs\nTcp: 1 7 0\n",
                    "Tcp: RtoAlgorithm RetransSegs InErrs\nTcp: 1 57 0\n", ProbeNetwork);
  ASSERT_NE(Find(result, K::kTcpRetransmits), nullptr);
  EXPECT_EQ(Find(result, K::kTcpRetransmits)->value, 50);
}

TEST(ProbesTest, AFrozenGroupOfEitherVersion) {
  const HostTree host;
  host.Write(HostTree::Group() + "cgroup.events", "populated 1\nfrozen 1\n");
  ASSERT_NE(Find(ProbeCgroups(InputFor(host)), K::kCgroupFrozen), nullptr);
  EXPECT_EQ(Find(ProbeCgroups(InputFor(host)), K::kCgroupFrozen)->pid, HostTree::kPid);
  const HostTree old;
  old.Write(HostTree::Proc() + "cgroup", "3:freezer:/job_7\n2:cpu,cpuacct:/job_7\n");
  old.Write("sys/fs/cgroup/freezer/job_7/freezer.state", "FROZEN\n");
  EXPECT_NE(Find(ProbeCgroups(InputFor(old)), K::kCgroupFrozen), nullptr);
  old.Write("sys/fs/cgroup/freezer/job_7/freezer.state", "THAWED\n");
  EXPECT_EQ(Find(ProbeCgroups(InputFor(old)), K::kCgroupFrozen), nullptr);
}

TEST(ProbesTest, ALimitThatHoldsProcessesBack) {
  const HostTree host;
  const ProbeResult cpu =
      WhileChanging(host, HostTree::Group() + "cpu.stat", "throttled_usec 1000\n",
                    "throttled_usec 801000\n", ProbeCgroups);
  ASSERT_NE(Find(cpu, K::kCgroupThrottled), nullptr);
  EXPECT_EQ(Find(cpu, K::kCgroupThrottled)->value, 800);
  const ProbeResult memory =
      WhileChanging(host, HostTree::Group() + "memory.events", "max 5\noom_kill 1\n",
                    "max 25\noom_kill 1\n", ProbeCgroups);
  EXPECT_EQ(Find(memory, K::kCgroupMemory)->value, 20);
  EXPECT_EQ(Find(memory, K::kCgroupOom)->value, 1);
}

TEST(ProbesTest, PressureAndSwapping) {
  const HostTree host;
  host.Write("proc/pressure/memory", "some avg10=80.00 avg60=0\nfull avg10=42.50 avg60=0\n");
  host.Write("proc/meminfo", "MemTotal: 1000 kB\nMemAvailable: 20 kB\n");
  const ProbeResult result = WhileChanging(host, "proc/vmstat", "pswpin 5\npswpout 6\n",
                                           "pswpin 5\npswpout 9006\n", ProbePressure);
  EXPECT_EQ(Find(result, K::kMemoryPressure)->value, 42);
  EXPECT_EQ(Find(result, K::kMemoryLow)->value, 2);
  EXPECT_EQ(Find(result, K::kSwapping)->value, 9000);
}

TEST(ProbesTest, AThreadThatStaysInTheKernelIsNamedWithItsFunction) {
  const HostTree host;
  host.AddThread(4130, 'D', "rpc_wait_bit_killable");
  host.AddThread(4131, 'D', "rpc_wait_bit_killable");
  const ProbeResult result = ProbeTasks(InputFor(host));
  ASSERT_NE(Find(result, K::kTaskBlocked), nullptr);
  EXPECT_EQ(Find(result, K::kTaskBlocked)->value, 2);
  EXPECT_EQ(Find(result, K::kTaskBlocked)->text, "rpc_wait_bit_killable");
}

TEST(ProbesTest, AThreadThatRanInBetweenIsNotBlocked) {
  const HostTree host;
  host.AddThread(4130, 'D', "io_schedule");
  const ProbeResult result =
      WhileChanging(host, HostTree::Thread(4130) + "status", "voluntary_ctxt_switches:\t3\n",
                    "voluntary_ctxt_switches:\t4\n", ProbeTasks);
  EXPECT_EQ(Find(result, K::kTaskBlocked), nullptr);
}

TEST(ProbesTest, FileSystemsOfServersComeFirstAndOnce) {
  const HostTree host;
  const ProbeResult result = ListMounts(InputFor(host));
  ASSERT_EQ(result.facts.size(), 2u);
  EXPECT_EQ(result.facts[0].subject, "/mnt/data 1");
  EXPECT_EQ(result.facts[0].text, "nfs4 fs1:/export");
  EXPECT_EQ(result.facts[0].pid, HostTree::kPid);
  EXPECT_EQ(result.facts[1].subject, "/");
}

TEST(ProbesTest, AFileSystemWithRoomIsNotAFact) {
  const HostTree host;
  ProbeInput input = InputFor(host);
  input.path = "/proc";
  const ProbeResult result = AskFileSystem(input);
  EXPECT_EQ(result.outcome, ProbeOutcome::kOk);
  input.path = "/nowhere";
  EXPECT_EQ(AskFileSystem(input).outcome, ProbeOutcome::kFailed);
}

TEST(ProbesTest, ACpuThatIsSlowOrHot) {
  const HostTree host;
  host.Write("sys/devices/system/cpu/cpu0/cpufreq/scaling_cur_freq", "800000\n");
  const ProbeResult result =
      WhileChanging(host, "sys/devices/system/cpu/cpu0/thermal_throttle/package_throttle_count",
                    "3\n", "9\n", ProbeClock);
  EXPECT_EQ(Find(result, K::kCpuSpeed)->value, 22);
  EXPECT_EQ(Find(result, K::kCpuThrottled)->value, 6);
}

TEST(ProbesTest, AnUnreadableLogIsDenied) {
  const HostTree host;
  host.Remove("dev/kmsg");
  EXPECT_EQ(ProbeKernelLog(InputFor(host)).outcome, ProbeOutcome::kAbsent);
}

TEST(FactLinesTest, SurviveTheWay) {
  ProbeResult result;
  result.facts.push_back({K::kXid, "GPU 0000:3b:00.0", 79, "fell\toff\nthe bus", 5, 4121});
  result.note = "n";
  const ProbeResult read = FromLines(ToLines(result));
  ASSERT_EQ(read.facts.size(), 1u);
  EXPECT_EQ(read.outcome, ProbeOutcome::kOk);
  EXPECT_EQ(read.facts[0].text, "fell off the bus");
  EXPECT_EQ(read.facts[0].value, 79);
  EXPECT_EQ(read.facts[0].pid, 4121);
  EXPECT_EQ(read.facts[0].age_ns, 5);
}

// Its secrets are redacted later, by the agent.
TEST(FactLinesTest, ALineThatIsCutShowsNoPartOfASecret) {
  ProbeResult result;
  const std::string before = "CIFS: VFS: " + std::string(kMostFactText - 29, 'x') + " ";
  result.facts.push_back(
      {K::kServerSilent, "store", 0, before + "smb://me:hunter22@store/data", 0, 0});
  const ProbeResult read = FromLines(ToLines(result));
  ASSERT_EQ(read.facts.size(), 1u);
  EXPECT_EQ(read.facts[0].text, before + "...");
}

TEST(FactLinesTest, AProbeThatDiedHasWhatItFoundBefore) {
  const ProbeResult read = FromLines("xid\tGPU 0\t79\t0\t0\ttext\nxid\tGPU 1\t7");
  EXPECT_EQ(read.outcome, ProbeOutcome::kFailed);
  EXPECT_EQ(read.facts.size(), 1u);
}

TEST(FactLinesTest, HostileLinesAreLeftOut) {
  std::string lines =
      "no_such_kind\ta\t1\t0\t0\tt\nxid\ta\tb\t0\t0\tt\nxid\ta\t1\t-5\t0\tt\n\t\t\n";
  for (int i = 0; i < 2000; ++i) absl::StrAppend(&lines, "xid\ta\t1\t0\t0\tt\n");
  absl::StrAppend(&lines, "end\tok\t", std::string(5000, 'x'), "\n");
  const ProbeResult read = FromLines(lines);
  EXPECT_EQ(read.facts.size(), kMostHostFacts);
  EXPECT_EQ(read.outcome, ProbeOutcome::kOk);
  EXPECT_LE(read.note.size(), kMostFactText);
}

}  // namespace
}  // namespace rollcall
