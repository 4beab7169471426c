// SPDX-License-Identifier: Apache-2.0
// What the agent does when a daemon asks for the stacks of real processes.
#include "agent/link/stack_service.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>

#include "absl/strings/str_cat.h"
#include "agent/processes/proc_stat.h"

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
                         "and user ",
                         getuid(),
                         " has had a share of them: no stacks taken; ask "
                         "again later, or start rollcall-agent with a larger "
                         "--max-stacks-per-minute"));
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

TEST(StackServiceTest, TakesNoneWhereTheAgentsStacksAreOff) {
  const Sleeper sleeper;
  StackServiceOptions options;
  options.stacks_on = false;
  StackService service = ServiceFor(sleeper.id(), options);
  const v1::ProcessStack stack = service.Take(sleeper.id());
  EXPECT_EQ(stack.threads_size(), 0);
  EXPECT_EQ(stack.error(), "the agent of this host takes no stacks: it runs with --stacks=off");
}

}  // namespace
}  // namespace rollcall
