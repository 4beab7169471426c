// SPDX-License-Identifier: Apache-2.0
// Watches real children end, with pidfds and as on a kernel without pidfds.
#include "agent/processes/process_watch.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "agent/processes/pidfd.h"
#include "agent/processes/proc_stat.h"
#include "agent/processes/spare_threads.h"
#include "eventually.h"
#include "file_server.h"
#include "temporary_tree.h"

namespace rollcall {
namespace {

// A child process that waits until the test ends it.
class Child {
 public:
  Child() {
    if (pipe(ends_) != 0) std::abort();
    pid_ = fork();
    if (pid_ == 0) {
      close(ends_[1]);
      int code = 0;
      if (read(ends_[0], &code, sizeof(code)) != sizeof(code)) _exit(99);
      _exit(code);
    }
    close(ends_[0]);
    id_ = {pid_, ReadProcStat("/proc", pid_)->start_time};
  }
  ~Child() {
    close(ends_[1]);
    if (!collected_) Collect();
  }

  const ProcessId& id() const { return id_; }
  void Exit(int code) {
    ASSERT_EQ(write(ends_[1], &code, sizeof(code)), static_cast<ssize_t>(sizeof(code)));
    WaitForEnd();
  }
  void Kill(int signal) {
    kill(pid_, signal);
    WaitForEnd();
  }
  void Collect() {
    waitpid(pid_, nullptr, 0);
    collected_ = true;
  }

 private:
  void WaitForEnd() {
    siginfo_t info;
    waitid(P_PID, pid_, &info, WEXITED | WNOWAIT);
  }

  int ends_[2];
  pid_t pid_;
  ProcessId id_;
  bool collected_ = false;
};

absl::StatusOr<int> NoPidfds(pid_t) { return absl::UnimplementedError("an old kernel"); }

// Runs each test with pidfds and without.
class ProcessWatchTest : public ::testing::TestWithParam<bool> {
 protected:
  ProcessWatchTest() : watch_("/proc", nullptr, GetParam() ? OpenPidfd : NoPidfds) {}

  ProcessWatch watch_;
};

TEST_P(ProcessWatchTest, ReportsNothingWhileTheProcessLives) {
  Child child;
  watch_.Add(child.id());
  EXPECT_TRUE(watch_.Poll().empty());
}

TEST_P(ProcessWatchTest, ReportsTheExitCodeOfAZombie) {
  Child child;
  watch_.Add(child.id());
  child.Exit(42);
  const auto ends = watch_.Poll();
  ASSERT_EQ(ends.size(), 1u);
  EXPECT_EQ(ends[0].process, child.id());
  EXPECT_EQ(ends[0].exit_code, 42);
  EXPECT_EQ(ends[0].signal, std::nullopt);
}

TEST_P(ProcessWatchTest, ReportsTheSignalThatEndedIt) {
  Child child;
  watch_.Add(child.id());
  child.Kill(SIGKILL);
  const auto ends = watch_.Poll();
  ASSERT_EQ(ends.size(), 1u);
  EXPECT_EQ(ends[0].exit_code, std::nullopt);
  EXPECT_EQ(ends[0].signal, SIGKILL);
}

TEST_P(ProcessWatchTest, ReportsAnEndOnce) {
  Child child;
  watch_.Add(child.id());
  child.Exit(0);
  EXPECT_EQ(watch_.Poll().size(), 1u);
  EXPECT_TRUE(watch_.Poll().empty());
}

TEST_P(ProcessWatchTest, TakesAReusedPidAsTheEndOfTheFirstProcess) {
  Child child;
  watch_.Add({child.id().pid, child.id().start_time - 1});
  const auto ends = watch_.Poll();
  ASSERT_EQ(ends.size(), 1u);
  EXPECT_EQ(ends[0].exit_code, std::nullopt);
  EXPECT_EQ(ends[0].signal, std::nullopt);
}

TEST_P(ProcessWatchTest, ReportsTheEndOfAProcessAddedAfterIt) {
  Child child;
  child.Exit(0);
  child.Collect();
  watch_.Add(child.id());
  ASSERT_EQ(watch_.Poll().size(), 1u);
}

TEST_P(ProcessWatchTest, DoesNotReportARemovedProcess) {
  Child child;
  watch_.Add(child.id());
  watch_.Remove(child.id());
  child.Exit(1);
  EXPECT_TRUE(watch_.Poll().empty());
}

TEST_P(ProcessWatchTest, ReportsOnlyTheEndedOnesOfManyProcesses) {
  Child first;
  Child second;
  Child third;
  for (const Child* child : {&first, &second, &third}) watch_.Add(child->id());
  second.Exit(5);
  const auto ends = watch_.Poll();
  ASSERT_EQ(ends.size(), 1u);
  EXPECT_EQ(ends[0].process, second.id());
  EXPECT_TRUE(watch_.Poll().empty());
}

INSTANTIATE_TEST_SUITE_P(Kernels, ProcessWatchTest, ::testing::Bool(),
                         [](const auto& info) { return info.param ? "pidfd" : "proc_only"; });

TEST(PidfdTest, HasTheStatusOfACollectedProcess) {
  Child child;
  ProcessWatch watch;
  watch.Add(child.id());
  const auto pidfd = OpenPidfd(child.id().pid);
  ASSERT_TRUE(pidfd.ok()) << pidfd.status();
  child.Kill(SIGTERM);
  child.Collect();
  const bool kernel_can_say = PidfdWaitStatus(*pidfd).has_value();
  close(*pidfd);
  const auto ends = watch.Poll();
  ASSERT_EQ(ends.size(), 1u);
  if (!kernel_can_say) GTEST_SKIP() << "needs Linux 6.15: PIDFD_INFO_EXIT";
  EXPECT_EQ(ends[0].signal, SIGTERM);
}

// A main thread may end by pthread_exit() while other threads continue to train.
TEST(ProcessWatchProcOnlyTest, AZombieMainThreadWithLivingOthersHasNotEnded) {
  TemporaryTree proc;
  const std::string rest = " 1 1 1 0 -1 0 0 0 0 0 1 1 0 0 20 0 2 0 500 0 0\n";
  proc.Write("77/stat", "77 (rank) Z" + rest);
  proc.Write("77/task/77/stat", "77 (rank) Z" + rest);
  proc.Write("77/task/78/stat", "78 (rank) S" + rest);
  ProcessWatch watch(proc.root(), nullptr, NoPidfds);
  watch.Add({77, 500});
  EXPECT_TRUE(watch.Poll().empty());
  proc.Remove("77/task/78");
  EXPECT_EQ(watch.Poll().size(), 1u);
}

// Without permission the kernel shows status 0, which is not proof of a normal exit.
TEST(ProcessWatchProcOnlyTest, DoesNotTakeAHiddenStatusForANormalExit) {
  TemporaryTree proc;
  std::string stat = "77 (rank) Z 1 1 1 0 -1 0 0 0 0 0 1 1 0 0 20 0 1 0 500";
  for (int field = 23; field <= 52; ++field) stat += " 0";
  proc.Write("77/stat", stat);
  ProcessWatch watch(proc.root(), nullptr, NoPidfds);
  watch.Add({77, 500});
  const auto hidden = watch.Poll();
  ASSERT_EQ(hidden.size(), 1u);
  EXPECT_EQ(hidden[0].exit_code, std::nullopt);
  proc.Link("77/ns/user", "user:[4026531837]");
  watch.Add({77, 500});
  const auto permitted = watch.Poll();
  ASSERT_EQ(permitted.size(), 1u);
  EXPECT_EQ(permitted[0].exit_code, 0);
}

// /proc/PID/stat blocks while the process is inside exec() and its file server does not answer.
class BlockingStatTest : public ::testing::Test {
 protected:
  // The stat of process `pid`, on a file server.
  void Serve(pid_t pid, const std::string& text) {
    server_ = std::make_unique<FileServer>(proc_.root() + "/served", "stat",
                                           std::vector<char>(text.begin(), text.end()));
    proc_.Link(std::to_string(pid) + "/stat", proc_.root() + "/served/stat");
  }
  // Whether `call` returned while the server did not answer.
  bool Ends(const std::function<void()>& call) {
    std::promise<void> done;
    std::future<void> ended = done.get_future();
    std::thread watchdog([&] {
      if (ended.wait_for(kPatience) != std::future_status::ready) server_->Kill();
    });
    call();
    done.set_value();
    watchdog.join();
    return server_->IsThere();
  }

  static constexpr char kAlive[] = "77 (rank) S 1 1 1 0 -1 0 0 0 0 0 1 1 0 0 20 0 2 0 500 0 0\n";
  TemporaryTree proc_;
  std::unique_ptr<FileServer> server_;
  const std::shared_ptr<SpareThreads> threads_ = std::make_shared<SpareThreads>();
};

TEST_F(BlockingStatTest, BlocksNoCallerWithoutPidfds) {
  Serve(77, kAlive);
  if (!server_->problem().empty()) GTEST_SKIP() << server_->problem();
  ProcessWatch watch(proc_.root(), threads_, NoPidfds);
  watch.Add({77, 500});
  EXPECT_TRUE(watch.Poll().empty());
  server_->StopAt(FUSE_READ);
  EXPECT_TRUE(Ends([&] { EXPECT_TRUE(watch.Poll().empty()); }));
  EXPECT_TRUE(Eventually([this] { return server_->HasStopped(); }));
  server_->Kill();  // the read fails: no proof of an end
  EXPECT_TRUE(watch.Poll().empty());
}

TEST_F(BlockingStatTest, OfANewProcessIsReadAgainAndItsEndIsReported) {
  Child child;
  std::string text;
  std::getline(std::ifstream("/proc/" + std::to_string(child.id().pid) + "/stat"), text);
  Serve(child.id().pid, text);
  if (!server_->problem().empty()) GTEST_SKIP() << server_->problem();
  ProcessWatch watch(proc_.root(), threads_, OpenPidfd);
  server_->StopAt(FUSE_READ);
  EXPECT_TRUE(Ends([&] { watch.Add(child.id()); }));
  EXPECT_TRUE(Eventually([this] { return server_->HasStopped(); }));
  child.Exit(42);
  EXPECT_TRUE(watch.Poll().empty()) << "the pid is not verified yet";
  server_->GoOn();
  std::vector<ProcessEnd> ends;
  ASSERT_TRUE(Eventually([&] { return !(ends = watch.Poll()).empty(); }));
  ASSERT_EQ(ends.size(), 1u);
  EXPECT_EQ(ends[0].process, child.id());
}

}  // namespace
}  // namespace rollcall
