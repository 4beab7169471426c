// SPDX-License-Identifier: Apache-2.0
// What an agent tells of its host, tick by tick, from hand-made segments and
// from real processes that end in different ways.
#include "agent/collector.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <future>
#include <thread>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "agent/processes/held_lock.h"
#include "agent/processes/living_threads.h"
#include "agent/processes/proc_stat.h"
#include "file_server.h"
#include "interpose/clock.h"
#include "proto/steady_clock.h"
#include "segment_builder.h"
#include "temporary_tree.h"

namespace rollcall {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kSecond = 1'000'000'000;

// A child that waits until it is told how to end.
class Child {
 public:
  Child() {
    int ends[2];
    EXPECT_EQ(pipe(ends), 0);
    pid_ = fork();
    if (pid_ == 0) {
      close(ends[1]);
      char code = 0;
      _exit(read(ends[0], &code, 1) == 1 ? code : 99);
    }
    close(ends[0]);
    tell_ = ends[1];
  }
  ~Child() {
    if (pid_ > 0) End([this] { kill(pid_, SIGKILL); });
    close(tell_);
  }

  pid_t pid() const { return pid_; }
  uint64_t start_time() const { return ReadProcStat("/proc", pid_)->start_time; }
  void Exit(char code) {
    End([this, code] { EXPECT_EQ(write(tell_, &code, 1), 1); });
  }
  void Kill() {
    End([this] { kill(pid_, SIGKILL); });
  }

 private:
  // Ended, and not yet collected: as an agent finds the processes of others.
  void End(const std::function<void()>& how) {
    how();
    siginfo_t info;
    waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOWAIT);
  }

  pid_t pid_ = -1;
  int tell_ = -1;
};

// Holds the life lock of a segment, as a process does that has mapped it.
class LifeLock {
 public:
  explicit LifeLock(const std::string& path) : fd_(open(path.c_str(), O_RDWR | O_CLOEXEC)) {
    EXPECT_TRUE(TakeLock(fd_));
  }
  ~LifeLock() { Release(); }
  void Release() {
    if (fd_ >= 0) close(fd_);
    fd_ = -1;
  }

 private:
  int fd_;
};

class CollectorTest : public testing::Test {
 protected:
  void SetUp() override {
    char path[] = "/tmp/rollcall-collector-XXXXXX";
    ASSERT_NE(mkdtemp(path), nullptr);
    folder_ = path;
  }
  void TearDown() override {
    fs::remove_all(folder_);
    while (waitpid(-1, nullptr, WNOHANG) > 0) {
    }
  }

  CollectorOptions Options(bool live = true) const {
    CollectorOptions options;
    options.directory = folder_;
    options.discover_directory = folder_;
    options.live = live;
    options.scan_wait_ns = 10 * kSecond;
    return options;
  }

  std::string PathOf(SegmentBuilder* segment) const {
    return absl::StrCat(folder_.string(), "/", segment->header()->pid, "-",
                        segment->header()->start_time, ".seg");
  }
  void WriteOf(const Child& child, SegmentBuilder* segment) {
    segment->BelongTo(child.pid(), child.start_time());
    segment->Write(PathOf(segment));
  }

  fs::path folder_;
  SegmentBuilder segment_;
};

const v1::ProcessUpdate& Only(const v1::Tick& tick) {
  static const v1::ProcessUpdate none;
  EXPECT_EQ(tick.processes_size(), 1);
  return tick.processes_size() == 1 ? tick.processes(0) : none;
}

TEST_F(CollectorTest, ItsFirstTickTellsAllAndTheNextOnlyWhatChanged) {
  const Child child;
  const uint32_t comm = segment_.AddComm(5, 0, 2);
  segment_.AddAllReduce(comm, 5000);
  WriteOf(child, &segment_);
  Collector collector(Options());
  const v1::Tick first = collector.Collect(kSecond, false);
  EXPECT_TRUE(Only(first).has_identity());
  ASSERT_EQ(Only(first).communicators_size(), 1);
  EXPECT_EQ(Only(first).communicators(0).records().op_size(), 1);
  EXPECT_EQ(Only(first).evidence().liveness(), v1::Evidence::ALIVE);

  segment_.AddAllReduce(comm, 6000);
  segment_.Write(PathOf(&segment_));
  const v1::Tick second = collector.Collect(kSecond + 1, false);
  EXPECT_FALSE(Only(second).has_identity());
  ASSERT_EQ(Only(second).communicators_size(), 1);
  EXPECT_EQ(Only(second).communicators(0).entered(), 2u);
  EXPECT_EQ(Only(second).communicators(0).records().op_size(), 1);
  EXPECT_EQ(Only(second).communicators(0).records().first_index(), 1u);
}

TEST_F(CollectorTest, NoNewsIsNoUpdate) {
  const Child child;
  segment_.AddAllReduce(segment_.AddComm(5, 0, 2), 5000);
  WriteOf(child, &segment_);
  Collector collector(Options());
  collector.Collect(10 * kSecond, false);
  for (int i = 0; i < 3; ++i) {
    const v1::Tick tick = collector.Collect(10 * kSecond + i, false);
    for (const v1::ProcessUpdate& update : tick.processes()) {
      EXPECT_EQ(update.communicators_size(), 0);
      EXPECT_FALSE(update.has_identity());
    }
  }
}

TEST_F(CollectorTest, AWholeTickTellsAllAgain) {
  const Child child;
  const uint32_t comm = segment_.AddComm(5, 0, 2);
  for (int i = 0; i < 40; ++i) segment_.AddAllReduce(comm, 5000);
  segment_.entry(comm)->checkpoints[1].position = 16;
  WriteOf(child, &segment_);
  Collector collector(Options());
  collector.Collect(kSecond, true);
  const v1::Tick again = collector.Collect(2 * kSecond, true);
  EXPECT_TRUE(again.whole());
  EXPECT_TRUE(Only(again).has_identity());
  EXPECT_TRUE(Only(again).has_evidence());
  ASSERT_EQ(Only(again).communicators_size(), 1);
  EXPECT_EQ(Only(again).communicators(0).records().op_size(), 40);
  EXPECT_EQ(Only(again).communicators(0).checkpoint_positions_size(), 1);
}

TEST_F(CollectorTest, ASegmentThatComesLaterIsFound) {
  Collector collector(Options());
  EXPECT_EQ(collector.Collect(kSecond, true).processes_size(), 0);
  const Child child;
  segment_.AddComm(5, 0, 2);
  WriteOf(child, &segment_);
  EXPECT_TRUE(Only(collector.Collect(2 * kSecond, false)).identity().has_segment());
}

TEST_F(CollectorTest, AnOpenCallIsToldAgainWhenItHasReturned) {
  const Child child;
  const uint32_t comm = segment_.AddComm(5, 0, 2);
  segment_.AddAllReduce(comm, 5000);
  segment_.record(comm, 0)->returned = 0;
  segment_.entry(comm)->returned = 0;
  WriteOf(child, &segment_);
  Collector collector(Options());
  const v1::Tick open = collector.Collect(kSecond, false);
  EXPECT_EQ(Only(open).communicators(0).records().duration_ns(0), -1);
  segment_.record(comm, 0)->returned = 9000;
  segment_.entry(comm)->returned = 1;
  segment_.Write(PathOf(&segment_));
  const v1::Tick returned = collector.Collect(kSecond + 1, false);
  EXPECT_EQ(Only(returned).communicators(0).records().first_index(), 0u);
  EXPECT_EQ(Only(returned).communicators(0).records().duration_ns(0), 4000);
}

TEST_F(CollectorTest, AProgramThatWasReplacedByExecIsFollowed) {
  const Child child;
  segment_.AddAllReduce(segment_.AddComm(5, 0, 2), 5000);
  WriteOf(child, &segment_);
  Collector collector(Options());
  collector.Collect(kSecond, false);
  // The new program is the same process, and makes a new file of the same name.
  fs::remove(PathOf(&segment_));
  SegmentBuilder fresh;
  fresh.AddAllReduce(fresh.AddComm(77, 1, 2), 5000);
  WriteOf(child, &fresh);
  collector.Collect(2 * kSecond, false);
  const v1::Tick tick = collector.Collect(3 * kSecond, true);
  ASSERT_EQ(Only(tick).communicators_size(), 1);
  EXPECT_EQ(Only(tick).communicators(0).id(), 77u);
}

// As the library writes it: times are the CPU's counter, whose rate has to be
// measured, and each measurement is a little different. The header's clocks are those of a time
// namespace that is a day ahead.
TEST_F(CollectorTest, ByTheCountersClockHardlyAnythingChangesFromTickToTickEither) {
  const Child child;
  const uint32_t comm = segment_.AddComm(5, 0, 2);
  segment::SegmentHeader* header = segment_.header();
  const uint64_t ticks = CounterTicks();
  header->clock_source = segment::ClockSource::kCounter;
  header->first_clock.ticks = ticks / 2;
  const uint64_t up = ClockNs(CLOCK_MONOTONIC);
  header->first_clock.monotonic_ns = up / 2 + 86'400 * uint64_t{kSecond};
  header->first_clock.realtime_ns = ClockNs(CLOCK_REALTIME) - (up - up / 2);
  segment_.entry(comm)->init_entered = ticks - 3000;
  segment_.AddAllReduce(comm, ticks - 2000);
  segment_.AddAllReduce(comm, ticks - 1000);
  segment_.entry(comm)->flags |= segment::kFlagMarkers;
  segment_.lane(comm, 0)->started = 2;
  segment_.lane(comm, 0)->finished = 1;
  WriteOf(child, &segment_);

  Collector collector(Options());
  const v1::Tick first = collector.Collect(kSecond, false);
  ASSERT_EQ(Only(first).communicators_size(), 1);
  const int64_t since = Only(first).communicators(0).waiting_since_ns();
  EXPECT_NEAR(static_cast<double>(SteadyNs() - since), 0, 5e9) << "its start, read as a wait";
  int changes = 0;
  for (int second = 2; second < 20; ++second) {
    const v1::Tick next = collector.Collect(second * kSecond, false);
    for (const v1::ProcessUpdate& update : next.processes()) {
      changes += update.communicators_size();
    }
  }
  EXPECT_LE(changes, 3) << "one for each time that the rate is known much better";
}

TEST_F(CollectorTest, ABlockThatServesAnotherCommunicatorStartsAfresh) {
  const Child child;
  const uint32_t comm = segment_.AddComm(5, 0, 2);
  for (int i = 0; i < 3; ++i) segment_.AddAllReduce(comm, 5000);
  WriteOf(child, &segment_);
  Collector collector(Options());
  collector.Collect(kSecond, false);
  SegmentBuilder reused;
  reused.AddAllReduce(reused.AddComm(6, 1, 2), 8000);
  reused.entry(0)->init_entered = 7000;
  reused.BelongTo(child.pid(), child.start_time());
  reused.Write(PathOf(&reused));
  const v1::Tick tick = collector.Collect(2 * kSecond, false);
  EXPECT_EQ(Only(tick).communicators(0).id(), 6u);
  EXPECT_EQ(Only(tick).communicators(0).records().op_size(), 1);
}

struct EndCase {
  const char* name;
  bool marked;  // by the library, at exit
  void (*end)(Child*);
  v1::Evidence::Liveness liveness;
  int code, signal;
};

class EndTest : public CollectorTest, public testing::WithParamInterface<EndCase> {};

TEST_P(EndTest, IsToldOnceWithItsLastCalls) {
  const EndCase& how = GetParam();
  Child child;
  const uint32_t comm = segment_.AddComm(5, 0, 2);
  WriteOf(child, &segment_);
  Collector collector(Options());
  collector.Collect(kSecond, false);

  segment_.AddAllReduce(comm, 5000);
  if (how.marked) segment_.header()->exit_mark = 1;
  segment_.Write(PathOf(&segment_));
  how.end(&child);
  const v1::Tick tick = collector.Collect(2 * kSecond, false);
  const v1::Evidence& evidence = Only(tick).evidence();
  EXPECT_EQ(evidence.liveness(), how.liveness);
  EXPECT_EQ(evidence.exit_code(), how.code);
  EXPECT_EQ(evidence.exit_signal(), how.signal);
  EXPECT_EQ(evidence.ended_ns(), 2 * kSecond);
  ASSERT_EQ(Only(tick).communicators_size(), 1);
  EXPECT_EQ(Only(tick).communicators(0).entered(), 1u);
  EXPECT_EQ(collector.Collect(3 * kSecond, false).processes_size(), 0);
  EXPECT_EQ(Only(collector.Collect(4 * kSecond, true)).evidence().liveness(), how.liveness);
}

INSTANTIATE_TEST_SUITE_P(
    Ways, EndTest,
    testing::Values(
        EndCase{"Exit", true, [](Child* c) { c->Exit(0); }, v1::Evidence::EXITED, 0, 0},
        // os._exit(0) runs no destructors, and is an end in good order all the same.
        EndCase{"UnmarkedExit", false, [](Child* c) { c->Exit(0); }, v1::Evidence::EXITED, 0, 0},
        EndCase{"MarkedFailure", true, [](Child* c) { c->Exit(3); }, v1::Evidence::EXITED, 3, 0},
        EndCase{"UnmarkedFailure", false, [](Child* c) { c->Exit(3); }, v1::Evidence::DIED, 3, 0},
        EndCase{"Signal", false, [](Child* c) { c->Kill(); }, v1::Evidence::DIED, -1, SIGKILL}),
    [](const auto& info) { return std::string(info.param.name); });

TEST_F(CollectorTest, OfflineTheExitMarkIsAllThereIs) {
  segment_.AddComm(5, 0, 2);
  segment_.Write(PathOf(&segment_));
  Collector unmarked(Options(/*live=*/false));
  EXPECT_EQ(Only(unmarked.Collect(0, true)).evidence().liveness(), v1::Evidence::UNKNOWN);
  segment_.header()->exit_mark = 1;
  segment_.header()->exit_ticks = 9000;
  segment_.Write(PathOf(&segment_));
  Collector marked(Options(/*live=*/false));
  const v1::Tick tick = marked.Collect(0, true);
  EXPECT_EQ(Only(tick).evidence().liveness(), v1::Evidence::EXITED);
  EXPECT_GT(Only(tick).evidence().ended_ns(), 0);
}

TEST_F(CollectorTest, UnreadableFilesAreNamedOnceAndTheRestIsRead) {
  const Child child;
  segment_.AddComm(5, 0, 2);
  WriteOf(child, &segment_);
  std::ofstream(folder_ / "1-2.seg") << "not a segment";
  std::ofstream(folder_ / "notes.txt") << "none of our business";
  Collector collector(Options(/*live=*/false));
  EXPECT_EQ(collector.Collect(0, true).processes_size(), 1);
  const std::vector<std::string> notes = collector.TakeNotes();
  ASSERT_EQ(notes.size(), 1u);
  EXPECT_TRUE(absl::StrContains(notes[0], "1-2.seg"));
  collector.Collect(0, true);
  EXPECT_TRUE(collector.TakeNotes().empty());
}

TEST_F(CollectorTest, ASegmentThatIsJustBeingMadeIsGivenTime) {
  const Child child;
  segment_.AddComm(5, 0, 2);
  segment_.header()->magic = 0;
  WriteOf(child, &segment_);
  Collector collector(Options());
  EXPECT_EQ(collector.Collect(10 * kSecond, false).processes_size(), 0);
  EXPECT_TRUE(collector.TakeNotes().empty());
  segment_.header()->magic = segment::kMagic;
  segment_.Write(PathOf(&segment_));
  EXPECT_EQ(collector.Collect(11 * kSecond, false).processes_size(), 1);
}

// A process that is stopped, or starved, before its segment is complete.
TEST_F(CollectorTest, ASegmentThatIsLongInTheMakingIsNotGivenUpWhileItsLockIsHeld) {
  const Child child;
  segment_.AddComm(5, 0, 2);
  segment_.header()->magic = 0;
  WriteOf(child, &segment_);
  LifeLock lock(PathOf(&segment_));
  Collector collector(Options());
  for (int64_t second = 10; second < 100; ++second) {
    EXPECT_EQ(collector.Collect(second * kSecond, false).processes_size(), 0);
  }
  EXPECT_TRUE(collector.TakeNotes().empty());
  segment_.header()->magic = segment::kMagic;
  segment_.Write(PathOf(&segment_));
  EXPECT_EQ(collector.Collect(200 * kSecond, false).processes_size(), 1);
}

TEST_F(CollectorTest, ASegmentWithoutMagicWhoseLockNobodyHoldsIsGivenUp) {
  const Child child;
  segment_.header()->magic = 0;
  WriteOf(child, &segment_);
  Collector collector(Options());
  collector.Collect(10 * kSecond, false);
  collector.Collect(13 * kSecond, false);
  EXPECT_EQ(collector.TakeNotes().size(), 1u);
}

// Not every tick: there may be many of them, and each costs an open.
TEST_F(CollectorTest, AnUnfinishedSegmentIsOpenedRarelyInTheEnd) {
  const Child child;
  segment_.header()->magic = 0;
  WriteOf(child, &segment_);
  LifeLock lock(PathOf(&segment_));
  Collector collector(Options());
  collector.Collect(10 * kSecond, false);
  collector.Collect(13 * kSecond, false);
  segment_.header()->magic = segment::kMagic;
  segment_.Write(PathOf(&segment_));
  EXPECT_EQ(collector.Collect(13 * kSecond + 1, false).processes_size(), 0);
  EXPECT_EQ(collector.Collect(20 * kSecond, false).processes_size(), 1);
}

TEST_F(CollectorTest, WhatMakesNoSenseIsSaidOnceAndNotEveryTick) {
  const Child child;
  segment_.AddComm(5, /*rank=*/9, /*size=*/2);
  segment_.AddComm(6, 0, 2);
  WriteOf(child, &segment_);
  Collector collector(Options());
  collector.Collect(kSecond, false);
  EXPECT_EQ(collector.TakeNotes().size(), 1u);
  for (int i = 1; i < 5; ++i) {
    collector.Collect(kSecond + i, false);
    EXPECT_TRUE(collector.TakeNotes().empty());
  }
}

// A segment of a process in a pid namespace that cannot be seen from here.
class UnseenTest : public CollectorTest {
 protected:
  void WriteUnseen(bool life_lock) {
    segment_.AddAllReduce(segment_.AddComm(5, 0, 2), 5000);
    segment_.BelongTo(getpid(), 88);
    segment_.header()->pid_namespace = 12;
    segment_.header()->life_lock = life_lock ? 1 : 0;
    segment_.Write(PathOf(&segment_));
  }
  CollectorOptions Keeping(int64_t keep_ended_ns) const {
    CollectorOptions options = Options();
    options.keep_ended_ns = keep_ended_ns;
    return options;
  }
};

TEST_F(UnseenTest, IsUnknownAndItsSegmentKeptWhileItsLockIsHeld) {
  WriteUnseen(true);
  LifeLock lock(PathOf(&segment_));
  Collector collector(Keeping(kSecond));
  const v1::Tick tick = collector.Collect(kSecond, true);
  EXPECT_EQ(Only(tick).evidence().liveness(), v1::Evidence::UNKNOWN);
  EXPECT_EQ(Only(tick).communicators_size(), 1);
  EXPECT_EQ(Only(tick).pid(), getpid());
  EXPECT_FALSE(collector.Serves({getpid(), 88})) << "that is this process here, not that one";
  collector.Collect(100 * kSecond, true);
  EXPECT_TRUE(fs::exists(PathOf(&segment_)));
}

// As on a loaded machine, where a rank may end between two ticks.
TEST_F(CollectorTest, ARankThatEndedBeforeItsSegmentWasFoundHasMadeItsCalls) {
  const std::string folder = absl::StrCat("ROLLCALL_DIR=", folder_.string());
  const pid_t pid = fork();
  if (pid == 0) {
    const char* environment[] = {"RANK=3", "LD_PRELOAD=" ROLLCALL_LIBRARY, folder.c_str(), nullptr};
    execle("/bin/sleep", "sleep", "100", nullptr, environment);
    _exit(1);
  }
  Collector collector(Options());
  v1::Tick tick;
  for (int i = 1; i < 1000 && tick.processes_size() == 0; ++i) {
    usleep(5000);
    tick = collector.Collect(i * 10 * kSecond, true);
  }
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
  segment_.Write(PathOf(&segment_));
  collector.Collect(20'001 * kSecond, true);
  tick = collector.Collect(20'002 * kSecond, true);
  EXPECT_EQ(Only(tick).communicators_size(), 1);
  EXPECT_EQ(Only(tick).evidence().liveness(), v1::Evidence::DIED);
}

TEST_F(UnseenTest, HasEndedNobodyKnowsHowWhenItsLockIsFreeAndThenItsSegmentGoes) {
  WriteUnseen(true);
  LifeLock lock(PathOf(&segment_));
  Collector collector(Keeping(10 * kSecond));
  collector.Collect(kSecond, true);
  lock.Release();
  const v1::Tick tick = collector.Collect(2 * kSecond, false);
  EXPECT_EQ(Only(tick).evidence().liveness(), v1::Evidence::ENDED);
  EXPECT_EQ(Only(tick).evidence().exit_code(), -1);
  EXPECT_EQ(Only(tick).evidence().ended_ns(), 2 * kSecond);
  collector.Collect(20 * kSecond, false);
  EXPECT_FALSE(fs::exists(PathOf(&segment_)));
}

TEST_F(UnseenTest, HasExitedWhenItSaidSo) {
  segment_.header()->exit_mark = 1;
  WriteUnseen(true);
  Collector collector(Keeping(0));
  EXPECT_EQ(Only(collector.Collect(kSecond, true)).evidence().liveness(), v1::Evidence::EXITED);
}

TEST_F(UnseenTest, WithoutALockNobodyKnowsAndNothingIsDeleted) {
  WriteUnseen(false);
  Collector collector(Keeping(kSecond));
  for (int64_t second : {1, 10, 100, 1000}) {
    const v1::Tick tick = collector.Collect(second * kSecond, true);
    EXPECT_EQ(Only(tick).evidence().liveness(), v1::Evidence::UNKNOWN);
  }
  EXPECT_TRUE(fs::exists(PathOf(&segment_)));
}

TEST_F(UnseenTest, OnlyTheFileThatWasReadIsDeleted) {
  WriteUnseen(true);
  Collector collector(Keeping(10 * kSecond));
  collector.Collect(kSecond, true);
  fs::remove(PathOf(&segment_));
  segment_.Write(PathOf(&segment_));
  LifeLock lock(PathOf(&segment_));
  collector.Collect(20 * kSecond, false);
  EXPECT_TRUE(fs::exists(PathOf(&segment_)));
}

TEST_F(CollectorTest, SegmentsOfAnEarlierBootAreLeftOutAndSaidOnce) {
  const Child child;
  segment_.AddComm(5, 0, 2);
  segment_.BelongTo(child.pid(), child.start_time());
  segment_.header()->boot_id[0] = 'x';
  segment_.Write(PathOf(&segment_));
  Collector collector(Options());
  EXPECT_EQ(collector.Collect(kSecond, true).processes_size(), 0);
  EXPECT_EQ(collector.TakeNotes().size(), 1u);
  EXPECT_EQ(collector.Collect(2 * kSecond, true).processes_size(), 0);
  EXPECT_TRUE(collector.TakeNotes().empty());
  EXPECT_TRUE(fs::exists(PathOf(&segment_)));
}

TEST_F(CollectorTest, AForkedChildThatHoldsTheLockKeepsTheSegment) {
  Child child;
  segment_.AddComm(5, 0, 2);
  segment_.header()->life_lock = 1;
  WriteOf(child, &segment_);
  LifeLock lock(PathOf(&segment_));
  CollectorOptions options = Options();
  options.keep_ended_ns = kSecond;
  Collector collector(options);
  collector.Collect(kSecond, false);
  child.Kill();
  const v1::Tick tick = collector.Collect(2 * kSecond, false);
  EXPECT_EQ(Only(tick).evidence().liveness(), v1::Evidence::DIED) << "the kernel says so";
  collector.Collect(9 * kSecond, false);
  EXPECT_TRUE(fs::exists(PathOf(&segment_)));
  lock.Release();
}

TEST_F(CollectorTest, NoWaitBeginsBeforeTheAgentWasHeld) {
  const Child child;
  const uint32_t comm = segment_.AddComm(5, 0, 2);
  segment_.AddAllReduce(comm, 5000);
  segment_.entry(comm)->returned = 0;
  segment_.blocked(0)->tid = static_cast<uint32_t>(child.pid());
  segment_.blocked(0)->op = static_cast<uint32_t>(Op::kAllReduce);
  segment_.blocked(0)->comm = comm;
  segment_.blocked(0)->since = ClockNs(CLOCK_MONOTONIC);
  const uint32_t creating = segment_.AddComm(6, 0, 2);
  segment_.entry(creating)->state = static_cast<uint32_t>(segment::CommState::kInitializing);
  WriteOf(child, &segment_);
  Collector collector(Options());
  const int64_t held_ns = SteadyNs();
  const v1::Tick before = collector.Collect(held_ns, true);
  EXPECT_LT(Only(before).communicators(0).waiting_since_ns(), held_ns);
  EXPECT_GT(Only(before).communicators(0).waiting_since_ns(), 0);
  collector.BeginWaitsAt(held_ns);
  const v1::Tick after = collector.Collect(held_ns + kSecond, false);
  ASSERT_EQ(Only(after).communicators_size(), 2);
  EXPECT_EQ(Only(after).communicators(0).waiting_since_ns(), held_ns);
  EXPECT_EQ(Only(after).communicators(0).host_blocked_since_ns(), held_ns);
  EXPECT_EQ(Only(after).communicators(1).init_entered_ns(), held_ns);
  EXPECT_EQ(Only(after).evidence().blocked(0).since_ns(), held_ns);
}

// A thread that was cancelled in a call leaves its entry as it was.
class CallerTest : public CollectorTest {
 protected:
  void Stand(uint32_t slot, pid_t thread, int64_t for_ns) {
    segment_.blocked(slot)->tid = static_cast<uint32_t>(thread);
    segment_.blocked(slot)->op = static_cast<uint32_t>(Op::kAllReduce);
    segment_.blocked(slot)->comm = 0;
    segment_.blocked(slot)->since = ClockNs(CLOCK_MONOTONIC) - static_cast<uint64_t>(for_ns);
  }
  // As seen `later_ns` from now.
  static v1::ProcessUpdate See(Collector* collector, int64_t later_ns) {
    return Only(collector->Collect(SteadyNs() + later_ns, true));
  }
};

TEST_F(CallerTest, ACallOfAThreadThatHasGoneIsNotTold) {
  const Child child;
  segment_.AddAllReduce(segment_.AddComm(5, 0, 2), 5000);
  segment_.entry(0)->returned = 0;
  Stand(0, getpid(), 0);
  WriteOf(child, &segment_);
  Collector collector(Options());
  EXPECT_EQ(See(&collector, 0).evidence().blocked_size(), 1) << "it may be just ending";
  const v1::ProcessUpdate later = See(&collector, 3 * kSecond);
  EXPECT_EQ(later.evidence().blocked_size(), 0);
  EXPECT_EQ(later.communicators(0).host_blocked_since_ns(), 0);
  Stand(1, child.pid(), 0);
  segment_.Write(PathOf(&segment_));
  EXPECT_EQ(See(&collector, 9 * kSecond).evidence().blocked_size(), 1) << "that one is there";
}

TEST_F(CallerTest, ACallFromBeforeTheThreadThatHasTheNumberIsNotTold) {
  const Child child;
  segment_.AddAllReduce(segment_.AddComm(5, 0, 2), 5000);
  Stand(0, child.pid(), 60 * kSecond);
  WriteOf(child, &segment_);
  Collector collector(Options());
  EXPECT_EQ(See(&collector, 0).evidence().blocked_size(), 0);
}

TEST_F(CallerTest, WhoCannotBeLookedAtIsBelieved) {
  const Child child;
  segment_.AddAllReduce(segment_.AddComm(5, 0, 2), 5000);
  Stand(0, getpid(), 60 * kSecond);
  segment_.BelongTo(getpid(), 88);
  segment_.header()->pid_namespace = 12;
  segment_.header()->life_lock = 1;
  segment_.Write(PathOf(&segment_));
  LifeLock lock(PathOf(&segment_));
  Collector collector(Options());
  EXPECT_EQ(See(&collector, 0).evidence().blocked_size(), 1);
}

TEST(LivingThreadsTest, AreFoundByTheNumbersThatTheyHaveForThemselves) {
  TemporaryTree proc;
  const std::string rest = " 1 1 1 0 -1 0 0 0 0 0 1 1 0 0 20 0 2 0 ";
  proc.Write("77/stat", "77 (rank) S" + rest + "500 0 0\n");
  proc.Write("77/task/77/stat", "77 (rank) S" + rest + "500 0 0\n");
  proc.Write("77/task/77/status", "NSpid:\t77\t1\n");
  proc.Write("77/task/79/stat", "79 (rank) S" + rest + "600 0 0\n");
  proc.Write("77/task/79/status", "NSpid:\t79\t3\n");
  const auto own = FindThreads(proc.root(), {77, 500}, {1, 2, 3}, true);
  EXPECT_EQ(own, (std::map<pid_t, uint64_t>{{1, 500}, {3, 600}}));
  const auto ours = FindThreads(proc.root(), {77, 500}, {77, 78, 79}, false);
  EXPECT_EQ(ours, (std::map<pid_t, uint64_t>{{77, 500}, {79, 600}}));
  EXPECT_FALSE(FindThreads(proc.root(), {77, 499}, {77}, false).has_value()) << "another process";
  EXPECT_FALSE(FindThreads(proc.root(), {78, 500}, {78}, false).has_value()) << "hidden";
  proc.Remove("77/task/79/status");
  EXPECT_FALSE(FindThreads(proc.root(), {77, 500}, {2}, true).has_value()) << "not all is known";
}

TEST_F(CollectorTest, SegmentsOfEndedProcessesAreDeletedInTheEnd) {
  Child child;
  segment_.AddComm(5, 0, 2);
  WriteOf(child, &segment_);
  CollectorOptions options = Options();
  options.keep_ended_ns = 60 * kSecond;
  Collector collector(options);
  collector.Collect(kSecond, false);
  child.Exit(0);
  collector.Collect(2 * kSecond, false);
  collector.Collect(62 * kSecond, false);
  EXPECT_TRUE(fs::exists(PathOf(&segment_)));
  collector.Collect(63 * kSecond, false);
  EXPECT_FALSE(fs::exists(PathOf(&segment_)));
  EXPECT_EQ(collector.Collect(64 * kSecond, true).processes_size(), 0);
}

// The folder lies on a file server, which dies at the first request of a kind.
class DeadServerTest : public CollectorTest {
 protected:
  void Serve(const Child& child) {
    segment_.AddComm(5, 0, 2);
    segment_.BelongTo(child.pid(), child.start_time());
    const std::string name = fs::path(PathOf(&segment_)).filename();
    server_ = std::make_unique<FileServer>(folder_, name, segment_.bytes());
  }
  void TearDown() override {
    server_ = nullptr;
    CollectorTest::TearDown();
  }
  CollectorOptions Keeping(int64_t keep_ended_ns) const {
    CollectorOptions options = Options();
    options.keep_ended_ns = keep_ended_ns;
    return options;
  }
  // Whether the tick came to its end while the server was dead.
  bool TickEnds(Collector* collector, int64_t now_ns) {
    std::promise<void> done;
    std::future<void> ended = done.get_future();
    std::thread watchdog([&] {
      if (ended.wait_for(std::chrono::seconds(10)) != std::future_status::ready) server_->Kill();
    });
    collector->Collect(now_ns, false);
    done.set_value();
    watchdog.join();
    return server_->IsThere();
  }

  std::unique_ptr<FileServer> server_;
};

TEST_F(DeadServerTest, ItsDeletionHoldsUpNoTick) {
  Child child;
  Serve(child);
  if (!server_->problem().empty()) GTEST_SKIP() << server_->problem();
  server_->StopAt(FUSE_UNLINK);
  Collector collector(Keeping(10 * kSecond));
  ASSERT_EQ(collector.Collect(kSecond, true).processes_size(), 1);
  child.Exit(0);
  collector.Collect(2 * kSecond, false);
  EXPECT_TRUE(TickEnds(&collector, 20 * kSecond));
  EXPECT_TRUE(server_->HasStopped()) << "the file was to be deleted";
  EXPECT_TRUE(TickEnds(&collector, 21 * kSecond));
  server_->GoOn();
  for (int i = 0; i < 1000 && fs::exists(PathOf(&segment_)); ++i) usleep(10'000);
  EXPECT_FALSE(fs::exists(PathOf(&segment_)));
  collector.Collect(23 * kSecond, true);
  EXPECT_EQ(collector.Collect(24 * kSecond, true).processes_size(), 0);
}

// As FUSE does, and others that write back what is not theirs to lose.
TEST_F(DeadServerTest, ItsCloseHoldsUpNoTick) {
  Child child;
  Serve(child);
  if (!server_->problem().empty()) GTEST_SKIP() << server_->problem();
  server_->StopAt(FUSE_FLUSH);
  Collector collector(Keeping(10 * kSecond));
  ASSERT_EQ(collector.Collect(kSecond, true).processes_size(), 1);
  child.Exit(0);
  collector.Collect(2 * kSecond, false);
  EXPECT_TRUE(TickEnds(&collector, 20 * kSecond));
  EXPECT_TRUE(server_->HasStopped()) << "the file was to be closed";
}

TEST_F(DeadServerTest, AskingWhetherAFileHasGoneHoldsUpNoTick) {
  const Child child;
  Serve(child);
  if (!server_->problem().empty()) GTEST_SKIP() << server_->problem();
  Collector collector(Keeping(0));
  ASSERT_EQ(collector.Collect(kSecond, true).processes_size(), 1);
  server_->StopAt(FUSE_GETATTR);
  EXPECT_TRUE(TickEnds(&collector, 2 * kSecond));
  EXPECT_TRUE(server_->HasStopped()) << "the file was to be asked";
}

}  // namespace
}  // namespace rollcall
