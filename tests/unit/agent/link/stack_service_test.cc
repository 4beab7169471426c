// SPDX-License-Identifier: Apache-2.0
// What the agent does when a daemon asks for the stacks of real processes.
#include "agent/link/stack_service.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/futex.h>
#include <poll.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <ctime>
#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "agent/processes/payer.h"
#include "agent/processes/proc_stat.h"
#include "base/durations.h"
#include "eventually.h"

namespace rollcall {
namespace {

// A child process that sleeps.
class Sleeper {
 public:
  Sleeper() : pid_(fork()) {
    if (pid_ != 0) return;
    while (true) pause();
  }
  ~Sleeper() {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  ProcessId id() const { return {pid_, ReadProcStat("/proc", pid_)->start_time}; }

 private:
  const pid_t pid_;
};

// A program that sleeps, with this variable in its environment.
class Program {
 public:
  explicit Program(const char* variable) : pid_(fork()) {
    char* arguments[] = {const_cast<char*>("sleep"), const_cast<char*>("1000"), nullptr};
    char* environment[] = {const_cast<char*>(variable), nullptr};
    if (pid_ == 0) {
      execve("/bin/sleep", arguments, environment);
      _exit(99);
    }
    // Asleep: the new program has its environment, and no more context switches.
    while (ReadProcStat("/proc", pid_)->name != "sleep" ||
           ReadProcStat("/proc", pid_)->state != 'S') {
      usleep(1000);
    }
  }
  ~Program() {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  ProcessId id() const { return {pid_, ReadProcStat("/proc", pid_)->start_time}; }

  // Each stop and each signal adds one.
  int ContextSwitches() const {
    std::ifstream status(absl::StrCat("/proc/", pid_, "/status"));
    std::string word;
    int count = -1;
    while (status >> word && word != "voluntary_ctxt_switches:") {
    }
    status >> count;
    return count;
  }

 private:
  const pid_t pid_;
};

StackService ServiceFor(ProcessId reported, StackServiceOptions options = {}) {
  options.namer = std::make_shared<StackNamer>(options.proc_root, ROLLCALL_PROGRAMS);
  return {std::move(options), [reported](ProcessId process) { return process == reported; }};
}

TEST(StackServiceTest, TakesTheStacksOfAReportedProcess) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "ThreadSanitizer adds a thread of its own";
#endif
  const Sleeper sleeper;
  StackService service = ServiceFor(sleeper.id());
  const v1::ProcessStack stack = service.Take(sleeper.id());
  EXPECT_EQ(stack.error(), "");
  ASSERT_EQ(stack.threads_size(), 1);
  EXPECT_GT(stack.threads(0).frames_size(), 0);
}

TEST(StackServiceTest, RefusesAProcessThatTheAgentHasNotReported) {
  const Sleeper sleeper, other;
  StackService service = ServiceFor(other.id());
  const v1::ProcessStack stack = service.Take(sleeper.id());
  EXPECT_EQ(stack.threads_size(), 0);
  EXPECT_EQ(stack.error(), "the agent of this host does not watch this process: no stacks taken");
}

TEST(StackServiceTest, RefusesAnotherProcessWithTheSamePid) {
  const Sleeper sleeper;
  ProcessId earlier = sleeper.id();
  --earlier.start_time;
  StackService service = ServiceFor(earlier);
  EXPECT_EQ(service.Take(sleeper.id()).threads_size(), 0);
  EXPECT_EQ(service.Take(earlier).error(), "the process has ended");
}

TEST(StackServiceTest, RefusesMoreThanTheLimitPerMinuteAndSaysSo) {
  const Sleeper sleeper;
  StackServiceOptions options;
  options.max_per_minute = 2;
  StackService service = ServiceFor(sleeper.id(), options);
  EXPECT_EQ(service.Take(sleeper.id()).error(), "");
  EXPECT_EQ(service.Take(sleeper.id()).error(), "");
  const v1::ProcessStack third = service.Take(sleeper.id());
  EXPECT_EQ(third.threads_size(), 0);
  EXPECT_EQ(third.error(),
            absl::StrCat("the agent of this host takes the stacks of at most 2 processes a minute, "
                         "and ",
                         PayerInWords(PayerOfReads("/proc", sleeper.id().pid)),
                         " has had a share of them: no stacks taken; ask "
                         "again later, or start rollcall-agent with a larger "
                         "--max-stacks-per-minute"));
}

TEST(StackServiceTest, TheLookAroundAProcessCountsForItsTime) {
  const Sleeper sleeper;
  int64_t now_ns = 0;
  StackServiceOptions options;
  options.allowance = std::make_shared<StackAllowance>(6);
  options.now_ns = [&now_ns] { return now_ns; };
  options.neighbours = [&now_ns] {
    now_ns += 1000 * kSecond;
    return std::vector<pid_t>();
  };
  ASSERT_TRUE(options.allowance->Take(Payer{4711}, now_ns));
  StackService service = ServiceFor(sleeper.id(), options);
  EXPECT_EQ(service.Take(sleeper.id()).error(), "");
  EXPECT_TRUE(absl::StrContains(service.Take(sleeper.id()).error(), "has had a share of them"));
}

TEST(StackServiceTest, UnknownProcessesCostNothingOfTheLimit) {
  const Sleeper sleeper;
  StackServiceOptions options;
  options.max_per_minute = 1;
  StackService service = ServiceFor(sleeper.id(), options);
  for (int i = 0; i < 10; ++i) service.Take({1'000'000'000, 1});
  EXPECT_EQ(service.Take(sleeper.id()).error(), "");
}

TEST(StackServiceTest, DoesNotTouchAProcessThatSwitchesItsStacksOff) {
  const Program forbids("ROLLCALL_STACKS=off"), permits("ROLLCALL_STACKS=on");
  const int before = forbids.ContextSwitches(), before_permitted = permits.ContextSwitches();
  StackService off = ServiceFor(forbids.id()), on = ServiceFor(permits.id());
  const v1::ProcessStack stack = off.Take(forbids.id());
  EXPECT_EQ(stack.threads_size(), 0);
  EXPECT_EQ(stack.error(),
            "the stacks of this process are switched off (ROLLCALL_STACKS=off in its environment)");
  EXPECT_EQ(forbids.ContextSwitches(), before);
  EXPECT_EQ(on.Take(permits.id()).threads_size(), 1);
  EXPECT_GT(permits.ContextSwitches(), before_permitted) << "the count shows a stop";
}

// A child that does this, and sleeps in it.
class Waiter {
 public:
  explicit Waiter(void (*wait)()) : pid_(fork()) {
    if (pid_ == 0) {
      while (true) wait();
    }
    while (!IsStill()) usleep(1000);
  }
  ~Waiter() {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  ProcessId id() const { return {pid_, ReadProcStat("/proc", pid_)->start_time}; }
  ProcThread Look() const { return *ReadProcThread("/proc", pid_, pid_); }

 private:
  bool IsStill() const {
    const ProcThread before = Look();
    usleep(2000);
    const ProcThread after = Look();
    return after.state == 'S' && before.switches == after.switches;
  }

  const pid_t pid_;
};

struct WayToWait {
  const char* name;
  void (*wait)();
};

void WaitInFutex(const timespec* longest) {
  static uint32_t word = 0;
  syscall(SYS_futex, &word, FUTEX_WAIT, 0, longest, nullptr, 0);
}

const WayToWait kWaysToWait[] = {
    {"in_a_futex", [] { WaitInFutex(nullptr); }},
    {"in_a_futex_with_a_timeout",
     [] {
       const timespec longest = {900, 0};
       WaitInFutex(&longest);
     }},
    {"in_sleep", [] { usleep(900'000'000); }},
    {"in_poll", [] { poll(nullptr, 0, 900'000); }},
    {"in_read",
     [] {
       int ends[2];
       char byte;
       if (pipe(ends) != 0 || read(ends[0], &byte, 1) != 0) _exit(1);
     }},
    {"in_epoll",
     [] {
       epoll_event event = {};
       epoll_wait(epoll_create1(0), &event, 1, -1);
     }},
};

class SwitchesTest : public testing::TestWithParam<WayToWait> {};

// Though each sample makes it sleep twice.
TEST_P(SwitchesTest, AThreadThatWaitsForEverHasAlwaysTheSame) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "ThreadSanitizer adds a thread of its own";
#endif
  const Waiter waiter(GetParam().wait);
  StackService service = ServiceFor(waiter.id());
  const uint64_t own = waiter.Look().switches;
  if (own == 0) GTEST_SKIP() << "this kernel counts no context switches";
  for (int i = 0; i < 4; ++i) {
    const v1::ProcessStack stack = service.Take(waiter.id());
    ASSERT_EQ(stack.threads_size(), 1) << stack.error();
    EXPECT_EQ(stack.threads(0).switches(), own) << "sample " << i;
  }
}

INSTANTIATE_TEST_SUITE_P(All, SwitchesTest, testing::ValuesIn(kWaysToWait),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(SwitchesOfAPollerTest, AreWhatItHasSlept) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "ThreadSanitizer adds a thread of its own";
#endif
  const pid_t pid = fork();
  if (pid == 0) {
    while (true) usleep(500);
  }
  const ProcessId poller = {pid, ReadProcStat("/proc", pid)->start_time};
  StackService service = ServiceFor(poller);
  const auto count = [pid] { return ReadProcThread("/proc", pid, pid)->switches; };
  const v1::ProcessStack before = service.Take(poller);
  const uint64_t then = count();
  while (count() < then + 100) usleep(1000);
  const v1::ProcessStack after = service.Take(poller);
  ASSERT_EQ(after.threads_size(), 1) << after.error();
  EXPECT_GE(after.threads(0).switches(), before.threads(0).switches() + 100);
  kill(pid, SIGKILL);
  waitpid(pid, nullptr, 0);
}

TEST(MovedBytesTest, AreThoseThatTheProcessHasReadAndWritten) {
  int request[2], answer[2];
  ASSERT_EQ(pipe(request), 0);
  ASSERT_EQ(pipe(answer), 0);
  const pid_t pid = fork();
  if (pid == 0) {
    std::vector<char> bytes(1000);
    while (read(request[0], bytes.data(), bytes.size()) > 0) {
      if (write(answer[1], bytes.data(), 1) != 1) _exit(1);
    }
    _exit(0);
  }
  const ProcessId process = {pid, ReadProcStat("/proc", pid)->start_time};
  StackService service = ServiceFor(process);
  const v1::ProcessStack before = service.Take(process), again = service.Take(process);
  if (!before.has_moved_bytes()) GTEST_SKIP() << "this kernel does not count them";
  EXPECT_EQ(again.moved_bytes(), before.moved_bytes());
  std::vector<char> bytes(1000);
  ASSERT_EQ(write(request[1], bytes.data(), bytes.size()), 1000);
  ASSERT_EQ(read(answer[0], bytes.data(), 1), 1);
  // The kernel counts a write after the reader may have it, and before it reads again.
  ASSERT_TRUE(Eventually([pid] { return ReadProcStat("/proc", pid)->state == 'S'; }));
  EXPECT_EQ(service.Take(process).moved_bytes(), before.moved_bytes() + 1001);
  kill(pid, SIGKILL);
  waitpid(pid, nullptr, 0);
  for (const int fd : {request[0], request[1], answer[0], answer[1]}) close(fd);
}

TEST(FileLocksOfAProcessTest, AreInTheSample) {
  if (access("/proc/locks", R_OK) != 0) GTEST_SKIP() << "this kernel lists no locks";
  char path[] = "/tmp/rollcall-locks-XXXXXX";
  const int fd = mkstemp(path);
  ASSERT_EQ(flock(fd, LOCK_EX), 0);
  const pid_t pid = fork();
  if (pid == 0) {
    close(fd);
    _exit(flock(open(path, O_RDWR), LOCK_EX) == 0 ? 0 : 1);
  }
  const ProcessId waiter = {pid, ReadProcStat("/proc", pid)->start_time};
  StackServiceOptions options;
  options.max_per_minute = 0;
  StackService service = ServiceFor(waiter, options);
  v1::ProcessStack stack;
  ASSERT_TRUE(Eventually([&] { return !(stack = service.Take(waiter)).locks().empty(); }));
  ASSERT_EQ(stack.locks_size(), 1) << stack.DebugString();
  EXPECT_TRUE(stack.locks(0).waits());
  EXPECT_EQ(stack.locks(0).holder(), getpid());
  EXPECT_EQ(stack.locks(0).path(), path);
  unlink(path);
  kill(pid, SIGKILL);
  waitpid(pid, nullptr, 0);
  close(fd);
}

TEST(StackServiceTest, TakesNoneWhereTheAgentsStacksAreOff) {
  const Sleeper sleeper;
  StackServiceOptions options;
  options.stacks_on = false;
  StackService service = ServiceFor(sleeper.id(), options);
  const v1::ProcessStack stack = service.Take(sleeper.id());
  EXPECT_EQ(stack.threads_size(), 0);
  EXPECT_EQ(stack.error(), "the agent of this host takes no stacks: it runs with --stacks=off");
}

TEST(StackServiceTest, LooksForTransfersOnlyOfProcessesThatItIsAskedFor) {
  const Sleeper sleeper;
  int looks = 0;
  StackServiceOptions options;
  options.segment_of = [&looks](ProcessId) {
    ++looks;
    return ServedSegment();
  };
  StackService service = ServiceFor(sleeper.id(), options);
  EXPECT_GE(service.Take(sleeper.id()).threads_size(), 1);
  EXPECT_EQ(looks, 0);
  const v1::ProcessStack stack = service.Take(sleeper.id(), false, {7});
  EXPECT_EQ(looks, 1);
  EXPECT_GE(stack.threads_size(), 1) << "a process without a segment has its stacks";
  EXPECT_EQ(stack.network_size(), 0);
}

// They stop and signal no process: the agent reads them from the segment, as all that it reports.
TEST(StackServiceTest, TransfersAreNoStacksThatCanBeOff) {
  const Sleeper sleeper;
  int looks = 0;
  StackServiceOptions options;
  options.stacks_on = false;
  options.segment_of = [&looks](ProcessId) {
    ++looks;
    return ServedSegment();
  };
  StackService service = ServiceFor(sleeper.id(), options);
  EXPECT_EQ(service.TransfersOf(sleeper.id(), {7}).error(), "");
  EXPECT_EQ(looks, 1);
  const v1::ProcessStack refused = service.Take(sleeper.id(), false, {7});
  EXPECT_EQ(refused.threads_size(), 0);
  EXPECT_NE(refused.error(), "");
  EXPECT_EQ(looks, 2) << "the answer says why it has no stacks, and has the transfers";
  EXPECT_NE(service.TransfersOf({1, 1}, {7}).error(), "") << "a process that it does not watch";
  EXPECT_EQ(looks, 2);
}

TEST(StackServiceTest, ReadsTransfersAloneWithoutASampleAndWithoutAShareOfTheSamples) {
  const Sleeper sleeper;
  int looks = 0;
  StackServiceOptions options;
  options.max_per_minute = 1;
  options.segment_of = [&looks](ProcessId) {
    ++looks;
    return ServedSegment();
  };
  StackService service = ServiceFor(sleeper.id(), options);
  for (int i = 1; i < 4; ++i) {
    const v1::ProcessStack transfers = service.TransfersOf(sleeper.id(), {7});
    EXPECT_EQ(looks, i);
    EXPECT_EQ(transfers.pid(), sleeper.id().pid);
    EXPECT_EQ(transfers.threads_size(), 0);
    EXPECT_EQ(transfers.error(), "");
  }
  EXPECT_GE(service.Take(sleeper.id()).threads_size(), 1);
  EXPECT_NE(service.TransfersOf({1, 1}, {7}).error(), "") << "a process that it does not watch";
  EXPECT_EQ(looks, 3);
}

}  // namespace
}  // namespace rollcall
