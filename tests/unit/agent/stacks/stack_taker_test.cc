// SPDX-License-Identifier: Apache-2.0
// Takes stacks of real processes: the copies, the threads that the taker skips, and the victims,
// which must continue afterwards as before.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <future>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "agent/processes/proc_files.h"
#include "agent/processes/proc_stat.h"
#include "agent/processes/trace_refused.h"
#include "agent/stacks/ptrace_stack_taker.h"
#include "agent/stacks/traced_thread.h"
#include "base/result_in_time.h"
#include "eventually.h"
#include "file_server.h"
#include "no_more_threads.h"
#include "patient_limits.h"
#include "temporary_tree.h"
#include "victim_process.h"

namespace rollcall {
namespace {

const RawThread* FindThread(const RawSample& sample, const std::string& name) {
  for (const RawThread& thread : sample.threads) {
    if (thread.name == name) return &thread;
  }
  return nullptr;
}

RawSample Take(pid_t pid, const TakeLimits& limits = PatientLimits()) {
  return PtraceStackTaker().Take(pid, limits);
}

TEST(StackTakerTest, CopiesRegistersAndStackOfEveryThread) {
  VictimProcess victim("stack_victim");
  ASSERT_TRUE(victim.WaitForAll('S'));
  const RawSample sample = Take(victim.pid());
  EXPECT_EQ(sample.error, "");
  EXPECT_EQ(sample.method, "ptrace");
  EXPECT_GT(sample.taken_unix_ns, 0);
  ASSERT_EQ(sample.threads.size(), 11u);
  EXPECT_EQ(sample.threads[0].tid, victim.pid());
  for (const RawThread& thread : sample.threads) {
    EXPECT_EQ(thread.error, "") << thread.name;
    EXPECT_EQ(thread.how, HowTaken::kInterrupted) << thread.name;
    EXPECT_EQ(thread.state, 'S') << thread.name;
    EXPECT_FALSE(thread.stack.empty()) << thread.name;
    EXPECT_EQ(thread.stack_base, StackPointer(thread.registers));
    EXPECT_NE(FindMap(sample.maps, InstructionPointer(thread.registers)), nullptr) << thread.name;
    EXPECT_GT(thread.stopped_ns, 0);
  }
}

TEST(StackTakerTest, SaysThatTheSystemRefusesItAThread) {
  VictimProcess victim("stack_victim");
  const NoMoreThreads refused;
  const RawSample sample = Take(victim.pid());
  EXPECT_THAT(sample.error, testing::HasSubstr("no thread to trace with"));
}

TEST(StackTakerTest, LetsEveryThreadContinue) {
  VictimProcess victim("stack_victim", "busy");
  Take(victim.pid());
  const auto evidence = ReadProcThreads("/proc", victim.pid());
  ASSERT_TRUE(evidence.ok());
  for (const ProcThread& thread : evidence->threads) {
    EXPECT_EQ(thread.tracer, 0) << thread.name;
    EXPECT_NE(thread.state, 't') << thread.name;
  }
  EXPECT_EQ(victim.SignalsHandled(), 0);  // the victim still answers
}

TEST(StackTakerTest, CopiesNoMoreThanTheLimit) {
  VictimProcess victim("stack_victim");
  ASSERT_TRUE(victim.WaitForAll('S'));
  TakeLimits limits = PatientLimits();
  limits.stack_bytes = 1000;
  const RawSample sample = Take(victim.pid(), limits);
  ASSERT_NE(FindThread(sample, "wide"), nullptr);
  EXPECT_EQ(FindThread(sample, "wide")->stack.size(), 1000u);
}

// All threads of a program may stand at the foot of one large stack, which costs the program
// nothing.
TEST(StackTakerTest, CopiesOfAllThreadsTogetherNoMoreThanTheirLimit) {
  VictimProcess victim("stack_victim");
  ASSERT_TRUE(victim.WaitForAll('S'));
  TakeLimits limits = PatientLimits();
  limits.all_stack_bytes = 64 << 10;
  const RawSample sample = Take(victim.pid(), limits);
  size_t bytes = 0;
  for (const RawThread& thread : sample.threads) {
    EXPECT_TRUE(thread.taken()) << thread.name;
    EXPECT_FALSE(thread.stack.empty()) << thread.name;
    bytes += thread.stack.size();
  }
  EXPECT_LE(bytes, limits.all_stack_bytes);
  EXPECT_THAT(sample.error, testing::MatchesRegex("the stacks of [0-9]+ threads are cut: .*"));
}

TEST(StackTakerTest, ManyThreadsGetNoTimeWithoutEnd) {
  EXPECT_EQ(TakeLimits().TotalTimeoutNs(1000), 4'000'000'000);
  EXPECT_EQ(TakeLimits().TotalTimeoutNs(16384), 8'000'000'000);
}

TEST(StackTakerTest, CountsThreadsBeyondTheLimitAsLeftOut) {
  VictimProcess victim("stack_victim");
  TakeLimits limits = PatientLimits();
  limits.max_threads = 3;
  const RawSample sample = Take(victim.pid(), limits);
  EXPECT_EQ(sample.threads.size(), 3u);
  EXPECT_EQ(sample.error, "more than 3 threads; the rest is left out");
}

TEST(StackTakerTest, ListsThreadsItHasNoTimeFor) {
  VictimProcess victim("stack_victim");
  TakeLimits limits;
  limits.total_timeout_ns = 0;
  limits.more_timeout_ns = 0;
  const RawSample sample = Take(victim.pid(), limits);
  ASSERT_EQ(sample.threads.size(), 11u);
  for (const RawThread& thread : sample.threads) {
    EXPECT_EQ(thread.error, "not reached in the time allowed for this process");
    EXPECT_FALSE(thread.name.empty());
  }
}

TEST(StackTakerTest, LeavesAStoppedProcessStopped) {
  VictimProcess victim("stack_victim");
  kill(victim.pid(), SIGSTOP);
  ASSERT_TRUE(victim.WaitForAll('T'));
  const RawSample sample = Take(victim.pid());
  ASSERT_EQ(sample.threads.size(), 11u);
  for (const RawThread& thread : sample.threads) {
    EXPECT_EQ(thread.how, HowTaken::kStopped) << thread.name << " " << thread.error;
    EXPECT_EQ(thread.state, 'T');
    EXPECT_FALSE(thread.stack.empty());
  }
  EXPECT_TRUE(victim.WaitForAll('T'));
  kill(victim.pid(), SIGCONT);
  EXPECT_EQ(victim.SignalsHandled(), 0);
}

TEST(StackTakerTest, CopiesAThreadInAnUninterruptibleWaitWithoutStoppingIt) {
  VictimProcess victim("stack_victim", "vfork");
  ASSERT_NE(victim.WaitForThread("vfork", 'D'), -1);
  const RawSample sample = Take(victim.pid());
  const RawThread* thread = FindThread(sample, "vfork");
  ASSERT_NE(thread, nullptr);
  EXPECT_EQ(thread->how, HowTaken::kWatched);
  EXPECT_EQ(thread->error, "");
  EXPECT_FALSE(thread->stack.empty());
  EXPECT_TRUE(sample.threads[0].taken());
}

TEST(StackTakerTest, SkipsAThreadOfAnotherTracer) {
  VictimProcess victim("stack_victim");
  const pid_t tid = victim.WaitForThread("futex", 'S');
  ASSERT_NE(tid, -1);
  std::promise<bool> seized;
  std::promise<void> done;
  std::thread debugger([&] {
    seized.set_value(ptrace(PTRACE_SEIZE, tid, nullptr, nullptr) == 0);
    done.get_future().wait();
  });
  const bool traced = seized.get_future().get();
  const RawSample sample = Take(victim.pid());
  done.set_value();
  debugger.join();
  ASSERT_TRUE(traced);
  const RawThread* thread = FindThread(sample, "futex");
  ASSERT_NE(thread, nullptr);
  EXPECT_EQ(thread->how, HowTaken::kNotTouched);
  EXPECT_NE(thread->error.find("traces it already"), std::string::npos) << thread->error;
}

TEST(StackTakerTest, DeliversASignalThatArrivesDuringTheStop) {
  VictimProcess victim("stack_victim");
  const pid_t tid = victim.WaitForThread("futex", 'S');
  ASSERT_NE(tid, -1);
  std::thread tracer([&] {
    TracedThread thread(tid);
    ASSERT_TRUE(thread.Seize().ok());
    ASSERT_EQ(syscall(SYS_tgkill, victim.pid(), tid, SIGUSR1), 0);
    EXPECT_EQ(victim.WaitForThread("futex", 't'), tid);  // stopped when the signal arrives
    ASSERT_TRUE(thread.Stop(1'000'000'000).ok());
    EXPECT_EQ(thread.how(), HowTaken::kAtSignal);
    EXPECT_TRUE(thread.Release());
  });
  tracer.join();
  ASSERT_EQ(victim.WaitForThread("futex", 'S'), tid);
  EXPECT_EQ(victim.SignalsHandled(), 1);
}

TEST(StackTakerTest, NeverCollectsAChildOfItsOwnProcess) {
  VictimProcess victim("stack_victim");
  kill(victim.pid(), SIGKILL);
  siginfo_t info;
  ASSERT_EQ(waitid(P_PID, victim.pid(), &info, WEXITED | WNOWAIT), 0);
  const RawSample sample = Take(victim.pid());
  EXPECT_NE(sample.error.find("has ended"), std::string::npos) << sample.error;
  int status = 0;
  EXPECT_EQ(waitpid(victim.pid(), &status, WNOHANG), victim.pid());
  EXPECT_EQ(WTERMSIG(status), SIGKILL);
}

// `rollcall run` is both parent and tracer of the job. The parent must still get the exit status.
TEST(StackTakerTest, LeavesTheStatusOfAChildThatDiesWhileStoppedToItsParent) {
  VictimProcess victim("stack_victim");
  std::thread tracer([&] {
    TracedThread thread(victim.pid());
    ASSERT_TRUE(thread.Seize().ok());
    ASSERT_EQ(kill(victim.pid(), SIGKILL), 0);
    siginfo_t info;
    ASSERT_EQ(waitid(P_PID, victim.pid(), &info, WEXITED | WNOWAIT), 0);
    EXPECT_FALSE(thread.Stop(10'000'000).ok());
    EXPECT_FALSE(thread.Release());
  });
  tracer.join();
  int status = 0;
  EXPECT_EQ(waitpid(victim.pid(), &status, WNOHANG), victim.pid());
  EXPECT_EQ(WTERMSIG(status), SIGKILL);
}

TEST(StackTakerTest, ReportsThatAProcessHasEnded) {
  VictimProcess victim("stack_victim");
  const pid_t pid = victim.pid();
  victim.KillAndCollect();
  const RawSample sample = Take(pid);
  EXPECT_NE(sample.error.find("has ended"), std::string::npos);
  EXPECT_TRUE(sample.threads.empty());
}

TEST(StackTakerTest, RefusesItsOwnProcess) {
  EXPECT_NE(Take(getpid()).error.find("cannot trace itself"), std::string::npos);
}

TEST(StackTakerTest, ReportsTheRemedyIfTracingIsRefused) {
  TemporaryTree proc;
  proc.Write("sys/kernel/yama/ptrace_scope", "1\n");
  const std::string restricted = TraceRefusedMessage(proc.root(), 12);
  EXPECT_NE(restricted.find("kernel.yama.ptrace_scope is 1"), std::string::npos);
  EXPECT_NE(restricted.find("sysctl kernel.yama.ptrace_scope=0"), std::string::npos);
  proc.Write("sys/kernel/yama/ptrace_scope", "0\n");
  const std::string container = TraceRefusedMessage(proc.root(), 12);
  EXPECT_NE(container.find("--cap-add=SYS_PTRACE"), std::string::npos);
  proc.Write("self/status", "Name:\tx\nSeccomp:\t2\n");
  const std::string filter = TraceRefusedMessage(proc.root(), 12);
  EXPECT_NE(filter.find("a seccomp filter forbids"), std::string::npos);
  EXPECT_NE(filter.find("seccomp=unconfined"), std::string::npos);
  proc.Link("self/ns/user", "user:[1]");
  proc.Link("12/ns/user", "user:[2]");
  const std::string other = TraceRefusedMessage(proc.root(), 12);
  EXPECT_NE(other.find("another user namespace (user:[2], this program in user:[1])"),
            std::string::npos);
}

// Measures the time for which taking a stack stops a thread.
TEST(StackTakerTest, StopsEachOf64ThreadsOnlyBriefly) {
  VictimProcess victim("stack_victim", "none", 63);
  ASSERT_TRUE(victim.WaitForAll('S'));
  std::vector<int64_t> stopped;
  int64_t duration = 0;
  constexpr int kRounds = 20;
  const TakeLimits limits = PatientLimits();
  for (int round = 0; round < kRounds; ++round) {
    const RawSample sample = PtraceStackTaker().Take(victim.pid(), limits);
    ASSERT_EQ(sample.threads.size(), 64u);
    duration += sample.duration_ns;
    for (const RawThread& thread : sample.threads) {
      EXPECT_EQ(thread.error, "");
      stopped.push_back(thread.stopped_ns);
    }
  }
  std::sort(stopped.begin(), stopped.end());
  RecordProperty("p50_us", static_cast<int>(stopped[stopped.size() / 2] / 1000));
  RecordProperty("p99_us", static_cast<int>(stopped[stopped.size() * 99 / 100] / 1000));
  RecordProperty("max_us", static_cast<int>(stopped.back() / 1000));
  RecordProperty("process_us", static_cast<int>(duration / kRounds / 1000));
  EXPECT_LT(stopped[stopped.size() / 2], 100'000'000);
}

#ifdef __x86_64__
// Makes a file its stack, and waits for a signal with no page of it in memory.
[[noreturn]] void WaitOnAStackIn(const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  void* const memory = mmap(nullptr, 1 << 16, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
  if (memory == MAP_FAILED) _exit(1);
  while (true) {
    asm volatile("mov %0, %%rsp\n syscall"
                 :
                 : "r"(static_cast<char*>(memory) + 4096), "a"(SYS_pause)
                 : "rcx", "r11", "memory");
  }
}

TEST(StackTakerTest, AStackInAFileWhoseServerDoesNotAnswerIsNotWaitedFor) {
  const TemporaryTree tree;
  const std::string folder = tree.root() + "/server";
  FileServer server(folder, "stack", std::vector<char>(1 << 16));
  if (!server.problem().empty()) GTEST_SKIP() << server.problem();
  const pid_t pid = fork();
  if (pid == 0) WaitOnAStackIn(folder + "/stack");
  const std::string waits = absl::StrCat(SYS_pause, " ");
  ASSERT_TRUE(Eventually([&] {
    return ReadProcFile(ProcPath("/proc", pid, "syscall")).value_or("").rfind(waits, 0) == 0;
  }));
  server.StopAt(FUSE_READ);
  ResultInTime<RawSample> taking([pid] { return Take(pid); });
  const std::optional<RawSample> sample =
      taking.Take(After(std::chrono::nanoseconds(kPatience).count()));
  server.Kill();
  kill(pid, SIGKILL);
  waitpid(pid, nullptr, 0);
  ASSERT_TRUE(sample.has_value()) << "it waits for the server, with the thread stopped";
  ASSERT_EQ(sample->threads.size(), 1u);
  EXPECT_EQ(sample->threads[0].error, "");
  EXPECT_NE(StackPointer(sample->threads[0].registers), 0u);
  EXPECT_TRUE(sample->threads[0].stack.empty());
}
#endif

}  // namespace
}  // namespace rollcall
