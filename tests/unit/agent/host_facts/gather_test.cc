// SPDX-License-Identifier: Apache-2.0
// Probes as processes: what they print reaches the agent, and one that hangs delays no other.
#include "agent/host_facts/gather.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "agent/host_facts/probes.h"
#include "agent/processes/proc_stat.h"
#include "base/monotonic_clock.h"
#include "eventually.h"
#include "file_server.h"
#include "host_tree.h"

namespace rollcall {
namespace {

constexpr int64_t kMs = 1'000'000;
constexpr int64_t kLong = 30'000 * kMs;

ProbeCommand Shell(const std::string& key, const std::string& script) {
  return {key, {"/bin/sh", "-c", script}};
}

TEST(ProbeRunnerTest, ReadsWhatProbesPrint) {
  ProbeRunner runner;
  const auto results =
      runner.Run({Shell("a", "printf 'xid\\tGPU 0\\t79\\t0\\t0\\tbus\\nend\\tok\\t\\n'"),
                  Shell("b", "printf 'end\\tdenied\\tno right\\n'"),
                  Shell("c", "exit 3"),
                  {"d", {"/no/such/program"}}},
                 kLong);
  ASSERT_EQ(results.size(), 4u);
  EXPECT_EQ(results[0].outcome, ProbeOutcome::kOk);
  ASSERT_EQ(results[0].facts.size(), 1u);
  EXPECT_EQ(results[0].facts[0].value, 79);
  EXPECT_EQ(results[1].outcome, ProbeOutcome::kDenied);
  EXPECT_EQ(results[1].note, "no right");
  EXPECT_EQ(results[2].outcome, ProbeOutcome::kFailed);
  EXPECT_EQ(results[3].outcome, ProbeOutcome::kFailed);
  EXPECT_TRUE(absl::StrContains(results[3].note, "No such file")) << results[3].note;
  EXPECT_TRUE(Eventually([&] { return runner.CountStuck() == 0; })) << "a process is left over";
}

// As a probe in state D: SIGKILL does not end a process that does not get it. A process that a
// debugger holds is as close as a test comes; see the FUSE test below for the real state.
TEST(ProbeRunnerTest, AProbeThatStopsIsLeftBehindAtItsDeadline) {
  ProbeRunner runner;
  const int64_t begun_ns = MonotonicNs();
  const auto results =
      runner.Run({Shell("stops", "printf 'xid\\tGPU 0\\t79\\t0\\t0\\tbus\\n'; kill -STOP $$"),
                  Shell("ends", "printf 'end\\tok\\t\\n'")},
                 3'000 * kMs);
  EXPECT_LT(MonotonicNs() - begun_ns, 60'000 * kMs);
  EXPECT_EQ(results[0].outcome, ProbeOutcome::kLate);
  EXPECT_EQ(results[0].facts.size(), 1u) << "what it found before it hung is lost";
  EXPECT_EQ(results[1].outcome, ProbeOutcome::kOk);
  EXPECT_TRUE(Eventually([&] { return runner.CountStuck() == 0; })) << "SIGKILL has not ended it";
}

TEST(ProbeRunnerTest, ProbesSeeNoEnvironmentAndNoFilesOfTheAgent) {
  setenv("SECRET_TOKEN", "hunter2", 1);
  const int open_file = open("/dev/null", O_RDONLY | O_CLOEXEC);
  ProbeRunner runner;
  const auto results = runner.Run(
      {Shell("env",
             "n=$(ls /proc/self/fd | wc -l); printf \"end\\tdenied\\t[$SECRET_TOKEN] $n\\n\"")},
      kLong);
  // ls has its three files and the folder.
  EXPECT_EQ(results[0].note, "[] 4");
  unsetenv("SECRET_TOKEN");
  close(open_file);
}

GatherOptions OptionsFor(const HostTree& host) {
  GatherOptions options;
  options.programs = ROLLCALL_PROGRAMS;
  options.root = host.root();
  options.nvml_library = "/no/such/library.so";
  options.interval_ns = 20 * kMs;
  options.deadline_ns = kLong;
  return options;
}

const Fact* Find(const GatheredFacts& gathered, HostFactKind kind) {
  for (const Fact& fact : gathered.facts) {
    if (fact.kind == kind) return &fact;
  }
  return nullptr;
}

ProbeOutcome OutcomeOf(const GatheredFacts& gathered, const std::string& probe) {
  for (const auto& [name, result] : gathered.probes) {
    if (name == probe) return result.outcome;
  }
  ADD_FAILURE() << "no probe " << probe;
  return ProbeOutcome::kFailed;
}

TEST(GathererTest, AllProbesLookAtTheHost) {
  const HostTree host;
  const std::string now_us = absl::StrCat(ReadClockNs(CLOCK_MONOTONIC_RAW) / 1000 - 3'000'000);
  host.Write("dev/kmsg",
             absl::StrCat("3,7,", now_us, ",-;mlx5_core 0000:98:00.0 ens3: Link down\n"));
  host.Write(HostTree::Group() + "cgroup.events", "frozen 1\n");
  Gatherer gatherer(OptionsFor(host));
  const GatheredFacts gathered = gatherer.Gather({HostTree::kPid});
  const Fact* link = Find(gathered, HostFactKind::kLinkDown);
  ASSERT_NE(link, nullptr);
  EXPECT_EQ(link->subject, "mlx5_2 port 1");
  EXPECT_GE(link->age_ns, 3'000 * kMs);
  EXPECT_LT(link->age_ns, 60'000 * kMs);
  EXPECT_NE(Find(gathered, HostFactKind::kCgroupFrozen), nullptr);
  EXPECT_EQ(Find(gathered, HostFactKind::kMount), nullptr) << "mounts are for the agent itself";
  EXPECT_EQ(gathered.probes.size(), HostProbes().size() + 2);
  EXPECT_EQ(OutcomeOf(gathered, "kernel_log"), ProbeOutcome::kOk);
  EXPECT_EQ(OutcomeOf(gathered, "gpu"), ProbeOutcome::kAbsent);
  EXPECT_EQ(OutcomeOf(gathered, "file_system"), ProbeOutcome::kOk);
}

TEST(GathererTest, WithoutItsProgramsItSaysSo) {
  const HostTree host;
  GatherOptions options = OptionsFor(host);
  options.programs = host.root();
  Gatherer gatherer(options);
  const GatheredFacts gathered = gatherer.Gather({HostTree::kPid});
  EXPECT_TRUE(gathered.facts.empty());
  EXPECT_EQ(OutcomeOf(gathered, "network"), ProbeOutcome::kFailed);
}

// The stand-in for NVIDIA's library in a folder of its own, with these GPUs.
class NvmlTest : public testing::Test {
 protected:
  void Prepare(const std::string& gpus) {
    tree_.Write("gpus", gpus);
    std::filesystem::copy_file(STAND_IN_NVML, tree_.root() + "/libnvidia-ml.so.1");
    options_ = OptionsFor(host_);
    options_.nvml_library = tree_.root() + "/libnvidia-ml.so.1";
  }
  std::vector<Fact> Facts(HostFactKind kind) {
    std::vector<Fact> found;
    for (const Fact& fact : gathered_.facts) {
      if (fact.kind == kind) found.push_back(fact);
    }
    return found;
  }

  const HostTree host_;
  const TemporaryTree tree_;
  GatherOptions options_;
  GatheredFacts gathered_;
};

TEST_F(NvmlTest, GpusAreAskedOneByOne) {
  Prepare("3b 16 0 0 4 4121\n86 8 2 64 3 4122\naf lost\n");
  gathered_ = Gatherer(options_).Gather({HostTree::kPid});
  EXPECT_EQ(OutcomeOf(gathered_, "gpu"), ProbeOutcome::kOk);
  ASSERT_EQ(Facts(HostFactKind::kGpuLost).size(), 1u);
  EXPECT_EQ(Facts(HostFactKind::kGpuLost)[0].subject, "GPU 0000:af:00.0");
  EXPECT_EQ(Facts(HostFactKind::kGpuLost)[0].text, "GPU is lost");
  ASSERT_EQ(Facts(HostFactKind::kGpuEcc).size(), 1u);
  EXPECT_EQ(Facts(HostFactKind::kGpuEcc)[0].subject, "GPU 0000:86:00.0");
  EXPECT_EQ(Facts(HostFactKind::kGpuEcc)[0].value, 2);
  ASSERT_EQ(Facts(HostFactKind::kGpuThrottled).size(), 1u);
  EXPECT_EQ(Facts(HostFactKind::kGpuThrottled)[0].text, "too hot, by the hardware");
  ASSERT_EQ(Facts(HostFactKind::kGpuPcieWidth).size(), 2u);
  EXPECT_EQ(Facts(HostFactKind::kGpuPcieWidth)[1].value, 8);
  EXPECT_EQ(Facts(HostFactKind::kGpuPagesPending)[0].text, "rows wait for remapping");
  EXPECT_EQ(Facts(HostFactKind::kNvlinkState)[1].value, 3);
  EXPECT_EQ(Facts(HostFactKind::kNvlinkState)[1].text, "of 4");
  ASSERT_EQ(Facts(HostFactKind::kNvlinkErrors).size(), 1u);
  EXPECT_EQ(Facts(HostFactKind::kNvlinkErrors)[0].value, 5);
  ASSERT_EQ(Facts(HostFactKind::kGpuProcess).size(), 2u);
  EXPECT_EQ(Facts(HostFactKind::kGpuProcess)[0].pid, 4121);
  EXPECT_EQ(Facts(HostFactKind::kGpu)[0].text, "GPU-3b");
}

TEST_F(NvmlTest, ADriverThatHangsLosesNeitherItsFactsNorTheOthers) {
  Prepare("3b 16 0 64 4 4121\n");
  tree_.Write("hangs", "");
  options_.deadline_ns = 3'000 * kMs;
  gathered_ = Gatherer(options_).Gather({HostTree::kPid});
  EXPECT_EQ(OutcomeOf(gathered_, "gpu"), ProbeOutcome::kLate);
  EXPECT_EQ(OutcomeOf(gathered_, "network"), ProbeOutcome::kOk);
  EXPECT_EQ(Facts(HostFactKind::kGpuThrottled).size(), 1u);
  ASSERT_EQ(Facts(HostFactKind::kProbeHangs).size(), 1u);
  EXPECT_EQ(Facts(HostFactKind::kProbeHangs)[0].subject, "gpu");
}

TEST_F(NvmlTest, ADriverThatDoesNotStartSaysWhy) {
  Prepare("");
  tree_.Remove("gpus");
  gathered_ = Gatherer(options_).Gather({HostTree::kPid});
  EXPECT_EQ(OutcomeOf(gathered_, "gpu"), ProbeOutcome::kFailed);
}

// A process that waits for a dead file server is in state D, or as good as that: FUSE lets SIGKILL
// through only while the request is not with the server.
TEST(GathererTest, AFileSystemThatDoesNotAnswerIsNamedWithItsServer) {
  const HostTree host;
  const TemporaryTree folder;
  const std::string point = folder.root() + "/served";
  FileServer server(point, "file", {'x'});
  if (!server.problem().empty()) GTEST_SKIP() << server.problem();
  server.StopAt(FUSE_STATFS);
  // The processes of this test see the mount; its files are those of the recorded host otherwise.
  GatherOptions options = OptionsFor(host);
  options.root = "";
  options.deadline_ns = 5'000 * kMs;
  Gatherer gatherer(options);
  const int64_t begun_ns = MonotonicNs();
  const GatheredFacts gathered = gatherer.Gather({getpid()});
  EXPECT_LT(MonotonicNs() - begun_ns, 60'000 * kMs);
  std::vector<std::string> silent;
  for (const Fact& fact : gathered.facts) {
    if (fact.kind == HostFactKind::kFileSystemSilent)
      silent.push_back(fact.subject + " " + fact.text);
  }
  EXPECT_EQ(silent, std::vector<std::string>{point + " fuse served"});
  server.Kill();
}

}  // namespace
}  // namespace rollcall
