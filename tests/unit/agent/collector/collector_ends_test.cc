// SPDX-License-Identifier: Apache-2.0
// The end of processes in a collector's ticks. Real processes end in different ways.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "agent/collector/collector.h"
#include "base/durations.h"
#include "base/monotonic_clock.h"
#include "base/steady_clock.h"
#include "collector_fixture.h"
#include "eventually.h"

namespace rollcall {
namespace {

namespace fs = std::filesystem;

struct EndCase {
  const char* name;
  bool marked;  // the library has set the exit mark
  void (*end)(Child*);
  v1::Evidence::Liveness liveness;
  int code, signal;
};

class EndTest : public CollectorTest, public testing::WithParamInterface<EndCase> {};

TEST_P(EndTest, IsReportedOnceWithTheLastCalls) {
  const EndCase& how = GetParam();
  Child child;
  const uint32_t comm = segment_.AddComm(5, 0, 2);
  WriteSegment(child, &segment_);
  Collector collector(Options());
  collector.Collect(kSecond, false);

  segment_.AddAllReduce(comm, 5000);
  if (how.marked) segment_.header()->exit_mark = 1;
  segment_.Write(SegmentPath(&segment_));
  how.end(&child);
  const v1::Tick tick = collector.Collect(2 * kSecond, false);
  const v1::Evidence& evidence = Only(tick).evidence();
  EXPECT_EQ(evidence.liveness(), how.liveness);
  EXPECT_EQ(evidence.exit_code(), how.code);
  EXPECT_EQ(evidence.exit_signal(), how.signal);
  EXPECT_EQ(evidence.ended_ns(), 2 * kSecond);
  EXPECT_EQ(evidence.ended_after_ns(), kSecond);
  ASSERT_EQ(Only(tick).communicators_size(), 1);
  EXPECT_EQ(Only(tick).communicators(0).entered(), 1u);
  EXPECT_EQ(collector.Collect(3 * kSecond, false).processes_size(), 0);
  EXPECT_EQ(Only(collector.Collect(4 * kSecond, true)).evidence().liveness(), how.liveness);
}

INSTANTIATE_TEST_SUITE_P(
    Ways, EndTest,
    testing::Values(
        EndCase{"Exit", true, [](Child* c) { c->Exit(0); }, v1::Evidence::EXITED, 0, 0},
        // os._exit(0) runs no destructors, and is a normal exit too.
        EndCase{"UnmarkedExit", false, [](Child* c) { c->Exit(0); }, v1::Evidence::EXITED, 0, 0},
        EndCase{"MarkedFailure", true, [](Child* c) { c->Exit(3); }, v1::Evidence::EXITED, 3, 0},
        EndCase{"UnmarkedFailure", false, [](Child* c) { c->Exit(3); }, v1::Evidence::DIED, 3, 0},
        EndCase{"Signal", false, [](Child* c) { c->Kill(); }, v1::Evidence::DIED, -1, SIGKILL}),
    [](const auto& info) { return std::string(info.param.name); });

// A child of vfork that ends by exit() sets the mark in the memory of its parent.
TEST_F(CollectorTest, AnExitMarkOfAProcessThatLivesOnDoesNotCount) {
  segment_.AddComm(5, 0, 2);
  segment_.header()->exit_mark = 1;
  segment_.header()->exit_ticks = static_cast<uint64_t>(MonotonicNs());
  const int64_t marked_ns = SteadyNs();
  const auto end_after = [&](int64_t lives_on_for_ns) {
    Child child;
    WriteSegment(child, &segment_);
    Collector collector(Options());
    collector.Collect(marked_ns + kSecond, false);
    collector.Collect(marked_ns + lives_on_for_ns, false);
    child.Kill();
    const v1::Tick tick = collector.Collect(marked_ns + lives_on_for_ns + kSecond, false);
    fs::remove(SegmentPath(&segment_));
    return Only(tick).evidence().liveness();
  };
  EXPECT_EQ(end_after(590 * kSecond), v1::Evidence::EXITED);
  EXPECT_EQ(end_after(610 * kSecond), v1::Evidence::DIED);
}

TEST_F(CollectorTest, OfflineOnlyTheExitMarkShowsTheEnd) {
  segment_.AddComm(5, 0, 2);
  segment_.Write(SegmentPath(&segment_));
  Collector unmarked(Options(/*live=*/false));
  EXPECT_EQ(Only(unmarked.Collect(0, true)).evidence().liveness(), v1::Evidence::UNKNOWN);
  segment_.header()->exit_mark = 1;
  segment_.header()->exit_ticks = 9000;
  segment_.Write(SegmentPath(&segment_));
  Collector marked(Options(/*live=*/false));
  const v1::Tick tick = marked.Collect(0, true);
  EXPECT_EQ(Only(tick).evidence().liveness(), v1::Evidence::EXITED);
  EXPECT_GT(Only(tick).evidence().ended_ns(), 0);
}

TEST_F(CollectorTest, ReportsTheLaunchOfARankBeforeAndAfterItsFirstCall) {
  const std::string folder = absl::StrCat("ROLLCALL_DIR=", folder_.string());
  const pid_t pid = fork();
  if (pid == 0) {
    const char* environment[] = {"RANK=3",
                                 "TORCHELASTIC_RESTART_COUNT=1",
                                 "MASTER_ADDR=node-7",
                                 "MASTER_PORT=29500",
                                 "NODE_NAME=gpu-17",
                                 "LD_PRELOAD=" ROLLCALL_LIBRARY,
                                 folder.c_str(),
                                 nullptr};
    execle("/bin/sleep", "sleep", "100", nullptr, environment);
    _exit(1);
  }
  const auto check = [](const v1::Tick& tick, bool has_segment) {
    const v1::Identity& identity = Only(tick).identity();
    EXPECT_EQ(identity.has_segment(), has_segment);
    EXPECT_TRUE(identity.has_attempt());
    EXPECT_EQ(identity.attempt(), 1);
    EXPECT_EQ(identity.restarts(), "TORCHELASTIC_RESTART_COUNT=1");
    EXPECT_EQ(identity.launch(), absl::StrCat(geteuid(), " node-7:29500"));
    EXPECT_EQ(identity.node(), "gpu-17");
    EXPECT_TRUE(identity.has_uid());
    EXPECT_EQ(identity.uid(), getuid());
    EXPECT_NEAR(static_cast<double>(SteadyNs() - identity.started_ns()), 0, 60e9);
  };
  Collector collector(Options());
  v1::Tick tick;
  int64_t now_ns = 0;
  ASSERT_TRUE(Eventually([&] {
    tick = collector.Collect(now_ns += 10 * kSecond, true);
    return tick.processes_size() > 0;
  }));
  check(tick, /*has_segment=*/false);
  segment_.AddAllReduce(segment_.AddComm(5, 0, 2), 5000);
  segment_.BelongTo(pid, ReadProcStat("/proc", pid)->start_time);
  segment_.Write(SegmentPath(&segment_));
  collector.Collect(20'001 * kSecond, true);
  check(collector.Collect(20'002 * kSecond, true), /*has_segment=*/true);
  kill(pid, SIGKILL);
}

// It may be dead two seconds later.
TEST_F(CollectorTest, FindsARankAsSoonAsItHasLoadedTheLibrary) {
  std::ofstream(folder_ / "loaded").close();
  Collector collector(Options());
  EXPECT_EQ(collector.Collect(10 * kSecond, false).processes_size(), 0);
  const std::string folder = absl::StrCat("ROLLCALL_DIR=", folder_.string());
  const std::string preload = "LD_PRELOAD=" ROLLCALL_LIBRARY;
  const std::string mark = absl::StrCat("ROLLCALL_LOADED=", (folder_ / "loaded").string());
  const auto marked = fs::last_write_time(folder_ / "loaded");
  const pid_t pid = fork();
  if (pid == 0) {
    const char* environment[] = {"RANK=3", preload.c_str(), folder.c_str(), mark.c_str(), nullptr};
    execle("/bin/sleep", "sleep", "100", nullptr, environment);
    _exit(1);
  }
  ASSERT_TRUE(Eventually([&] { return fs::last_write_time(folder_ / "loaded") != marked; }));
  // Not yet time for the usual scan.
  const v1::Tick tick = collector.Collect(10 * kSecond + kSecond / 2, false);
  EXPECT_EQ(Only(tick).identity().global_rank(), 3);
  kill(pid, SIGKILL);
}

TEST_F(CollectorTest, ReadsTheLaunchAgainWhenTheEnvironmentCouldNotBeRead) {
  const Child child;
  const fs::path proc = folder_ / "proc";
  const fs::path files = proc / std::to_string(child.pid());
  fs::create_directories(files);
  const std::string self = std::to_string(getpid());
  fs::create_symlink(self, proc / "self");
  fs::create_symlink("/proc/" + self, proc / self);
  for (const char* name : {"ns", "stat", "status", "task"}) {
    fs::create_symlink(absl::StrCat("/proc/", child.pid(), "/", name), files / name);
  }
  CollectorOptions options = Options();
  options.proc_root = proc;
  segment_.AddAllReduce(segment_.AddComm(5, 0, 2), 5000);
  WriteSegment(child, &segment_);
  Collector collector(options);
  EXPECT_FALSE(Only(collector.Collect(10 * kSecond, true)).identity().has_attempt());
  std::ofstream(files / "environ") << "ROLLCALL_ATTEMPT=2" << '\0';
  EXPECT_EQ(Only(collector.Collect(12 * kSecond, false)).identity().attempt(), 2);
  const v1::Tick last = collector.Collect(14 * kSecond, false);
  for (const v1::ProcessUpdate& update : last.processes()) EXPECT_FALSE(update.has_identity());
}

// On a loaded machine a rank may end between two ticks.
TEST_F(CollectorTest, ReportsTheCallsOfARankThatEndedBeforeItsSegmentWasFound) {
  const std::string folder = absl::StrCat("ROLLCALL_DIR=", folder_.string());
  const pid_t pid = fork();
  if (pid == 0) {
    const char* environment[] = {"RANK=3", "LD_PRELOAD=" ROLLCALL_LIBRARY, folder.c_str(), nullptr};
    execle("/bin/sleep", "sleep", "100", nullptr, environment);
    _exit(1);
  }
  Collector collector(Options());
  v1::Tick tick;
  int64_t now_ns = 0;
  ASSERT_TRUE(Eventually([&] {
    tick = collector.Collect(now_ns += 10 * kSecond, true);
    return tick.processes_size() > 0;
  }));
  EXPECT_EQ(Only(tick).identity().global_rank(), 3);
  const auto stat = ReadProcStat("/proc", pid);
  ASSERT_TRUE(stat.ok());
  kill(pid, SIGKILL);
  waitpid(pid, nullptr, 0);
  EXPECT_EQ(Only(collector.Collect(20'000 * kSecond, true)).evidence().liveness(),
            v1::Evidence::DIED);
  segment_.AddAllReduce(segment_.AddComm(5, 0, 2), 5000);
  segment_.BelongTo(pid, stat->start_time);
  segment_.header()->life_lock = 1;
  segment_.Write(SegmentPath(&segment_));
  collector.Collect(20'001 * kSecond, true);
  tick = collector.Collect(20'002 * kSecond, true);
  EXPECT_EQ(Only(tick).communicators_size(), 1);
  EXPECT_EQ(Only(tick).evidence().liveness(), v1::Evidence::DIED);
}

TEST_F(CollectorTest, KeepsTheSegmentWhileAForkedChildHoldsTheLock) {
  Child child;
  segment_.AddComm(5, 0, 2);
  segment_.header()->life_lock = 1;
  WriteSegment(child, &segment_);
  LifeLock lock(SegmentPath(&segment_));
  CollectorOptions options = Options();
  options.keep_ended_ns = kSecond;
  Collector collector(options);
  collector.Collect(kSecond, false);
  child.Kill();
  const v1::Tick tick = collector.Collect(2 * kSecond, false);
  EXPECT_EQ(Only(tick).evidence().liveness(), v1::Evidence::DIED) << "the kernel reports the end";
  collector.Collect(9 * kSecond, false);
  EXPECT_TRUE(fs::exists(SegmentPath(&segment_)));
  lock.Release();
}

TEST_F(CollectorTest, DeletesSegmentsOfEndedProcessesAfterTheLimit) {
  Child child;
  segment_.AddComm(5, 0, 2);
  WriteSegment(child, &segment_);
  CollectorOptions options = Options();
  options.keep_ended_ns = 60 * kSecond;
  Collector collector(options);
  collector.Collect(kSecond, false);
  child.Exit(0);
  collector.Collect(2 * kSecond, false);
  collector.Collect(62 * kSecond, false);
  EXPECT_TRUE(fs::exists(SegmentPath(&segment_)));
  collector.Collect(63 * kSecond, false);
  EXPECT_FALSE(fs::exists(SegmentPath(&segment_)));
  EXPECT_EQ(collector.Collect(64 * kSecond, true).processes_size(), 0);
}

// A segment of a process in a pid namespace that this /proc does not show.
class UnseenTest : public CollectorTest {
 protected:
  void WriteUnseen(bool life_lock) {
    segment_.AddAllReduce(segment_.AddComm(5, 0, 2), 5000);
    segment_.BelongTo(getpid(), 88);
    segment_.header()->pid_namespace = 12;
    segment_.header()->life_lock = life_lock ? 1 : 0;
    segment_.Write(SegmentPath(&segment_));
  }
  CollectorOptions Keeping(int64_t keep_ended_ns) const {
    CollectorOptions options = Options();
    options.keep_ended_ns = keep_ended_ns;
    return options;
  }
};

TEST_F(UnseenTest, IsUnknownAndItsSegmentIsKeptWhileItsLockIsHeld) {
  WriteUnseen(true);
  LifeLock lock(SegmentPath(&segment_));
  Collector collector(Keeping(kSecond));
  const v1::Tick tick = collector.Collect(kSecond, true);
  EXPECT_EQ(Only(tick).evidence().liveness(), v1::Evidence::UNKNOWN);
  EXPECT_EQ(Only(tick).communicators_size(), 1);
  EXPECT_EQ(Only(tick).pid(), getpid());
  EXPECT_FALSE(collector.served().Has({getpid(), 88})) << "in this namespace the pid is the test's";
  collector.Collect(100 * kSecond, true);
  EXPECT_TRUE(fs::exists(SegmentPath(&segment_)));
}

TEST_F(UnseenTest, EndsWithUnknownStatusWhenTheLockIsFreeAndTheSegmentGone) {
  WriteUnseen(true);
  LifeLock lock(SegmentPath(&segment_));
  Collector collector(Keeping(10 * kSecond));
  collector.Collect(kSecond, true);
  lock.Release();
  const v1::Tick tick = collector.Collect(2 * kSecond, false);
  EXPECT_EQ(Only(tick).evidence().liveness(), v1::Evidence::ENDED);
  EXPECT_EQ(Only(tick).evidence().exit_code(), -1);
  EXPECT_EQ(Only(tick).evidence().ended_ns(), 2 * kSecond);
  collector.Collect(20 * kSecond, false);
  EXPECT_FALSE(fs::exists(SegmentPath(&segment_)));
}

TEST_F(UnseenTest, HasExitedIfItsSegmentHasTheExitMark) {
  segment_.header()->exit_mark = 1;
  WriteUnseen(true);
  Collector collector(Keeping(0));
  EXPECT_EQ(Only(collector.Collect(kSecond, true)).evidence().liveness(), v1::Evidence::EXITED);
}

TEST_F(UnseenTest, BelongsToTheOwnerOfItsSegment) {
  WriteUnseen(true);
  Collector collector(Keeping(0));
  const v1::Identity identity = Only(collector.Collect(kSecond, true)).identity();
  ASSERT_TRUE(identity.has_uid());
  EXPECT_EQ(identity.uid(), geteuid());
}

TEST_F(UnseenTest, WithoutALockTheEndIsUnknownAndNothingIsDeleted) {
  WriteUnseen(false);
  Collector collector(Keeping(kSecond));
  for (int64_t second : {1, 10, 100, 1000}) {
    const v1::Tick tick = collector.Collect(second * kSecond, true);
    EXPECT_EQ(Only(tick).evidence().liveness(), v1::Evidence::UNKNOWN);
  }
  EXPECT_TRUE(fs::exists(SegmentPath(&segment_)));
}

TEST_F(UnseenTest, DeletesOnlyTheFileThatItHasRead) {
  WriteUnseen(true);
  Collector collector(Keeping(10 * kSecond));
  collector.Collect(kSecond, true);
  fs::remove(SegmentPath(&segment_));
  segment_.Write(SegmentPath(&segment_));
  LifeLock lock(SegmentPath(&segment_));
  collector.Collect(20 * kSecond, false);
  EXPECT_TRUE(fs::exists(SegmentPath(&segment_)));
}

}  // namespace
}  // namespace rollcall
