// SPDX-License-Identifier: Apache-2.0
// The library's signals reach no thread whose stack for signals has no room for them: without the
// library such a thread would never have got one.
#include <fcntl.h>
#include <sys/stat.h>

#include "agent/outside/moved_bytes.h"
#include "agent/processes/proc_maps.h"
#include "agent/stacks/segment_stack_requests.h"
#include "agent/stacks/signal_stack_taker.h"
#include "library_steps.h"
#include "patient_limits.h"

namespace rollcall {
namespace {

class LibrarySignalStacksTest : public LibraryStepsTest {
 protected:
  ~LibrarySignalStacksTest() override {
    if (pid_ <= 0) return;
    kill(pid_, SIGKILL);
    WaitFor(pid_);
  }

  std::string Fifo(int number) {
    const std::string fifo = absl::StrCat(scratch_.string(), "/fifo", number);
    mkfifo(fifo.c_str(), 0600);
    return fifo;
  }

  std::string WaitAt(int fifo) {
    return absl::StrCat(" env=STUB_FIFO=", Fifo(fifo), " stream_wait");
  }

  // Returns once its main thread waits at the FIFO of this number. Closing what comes back lets it
  // go on.
  int StartAndMeet(const std::string& steps, int fifo) {
    pid_ = Start(Command(steps), {{"STUB_BLOCK", "cudaStreamSynchronize"}});
    return Meet(fifo);
  }
  int Meet(int fifo) { return open(Fifo(fifo).c_str(), O_WRONLY | O_CLOEXEC); }

  static RawSample Ask(pid_t pid) { return SignalStackTaker().Take(pid, PatientLimits()); }

  static int Answered(const RawSample& sample) {
    return static_cast<int>(std::count_if(sample.threads.begin(), sample.threads.end(),
                                          [](const RawThread& thread) { return thread.taken(); }));
  }

  bool Lives() const { return waitpid(pid_, nullptr, WNOHANG) == 0; }

  pid_t pid_ = 0;
};

TEST_F(LibrarySignalStacksTest, AsksNoThreadWithASmallSignalStack) {
  for (const char* steps : {"id init=2,0 signal_stack=2048", "signal_stack=2048 id init=2,0"}) {
    const int fifo = StartAndMeet(steps + WaitAt(0), 0);
    const RawSample sample = Ask(pid_);
    EXPECT_TRUE(sample.refused) << steps;
    EXPECT_NE(sample.error.find("small"), std::string::npos) << sample.error;
    EXPECT_TRUE(Lives()) << steps;
    close(fifo);
    EXPECT_EQ(WaitFor(std::exchange(pid_, 0)), 0) << Stderr();
    StartOver();
  }
}

TEST_F(LibrarySignalStacksTest, AsksNoProcessThatTheKernelWouldKillForTheAnswer) {
  const int fifo = StartAndMeet("id init=2,0 forbid_pread" + WaitAt(0), 0);
  const RawSample sample = Ask(pid_);
  ASSERT_EQ(sample.threads.size(), 1u) << sample.error;
  EXPECT_NE(sample.threads[0].error.find("seccomp"), std::string::npos) << sample.threads[0].error;
  EXPECT_TRUE(Lives());
  close(fifo);
  EXPECT_EQ(WaitFor(std::exchange(pid_, 0)), 0) << Stderr();
}

TEST_F(LibrarySignalStacksTest, IgnoresAFilterFromBeforeTheFirstCommunicator) {
  const int fifo = StartAndMeet("forbid_reboot id init=2,0" + WaitAt(0), 0);
  const RawSample sample = Ask(pid_);
  EXPECT_EQ(sample.threads.empty() ? "" : sample.threads[0].error, "");
  close(fifo);
}

TEST_F(LibrarySignalStacksTest, ARequestUnderWayIsAnsweredOnTheThreadsOwnStack) {
  const int fifo = StartAndMeet("id init=2,0" + WaitAt(0) + " signal_stack=2048" + WaitAt(1), 0);
  std::ifstream file(absl::StrCat("/proc/", pid_, "/maps"));
  const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  auto requests = SegmentStackRequests::Open("/proc", pid_, ParseProcMaps(text));
  ASSERT_TRUE(requests.ok()) << requests.status();
  close(fifo);
  const int second = Meet(1);
  RawThread main;
  main.tid = pid_;
  (*requests)->RequestStacks({&main}, 1 << 20, 10'000'000'000, INT64_MAX);
  EXPECT_TRUE(main.taken()) << main.error;
  EXPECT_TRUE(Lives());
  close(second);
  EXPECT_EQ(WaitFor(std::exchange(pid_, 0)), 0) << Stderr();
}

TEST_F(LibrarySignalStacksTest, AnswersSigquitOnTheThreadsOwnStackIfTheSignalStackIsSmall) {
  const int fifo = StartAndMeet("id init=2,0 signal_stack=2048" + WaitAt(0), 0);
  kill(pid_, SIGQUIT);
  EXPECT_TRUE(Eventually([&] { return !Stderr().empty() || !Lives(); }));
  EXPECT_NE(Stderr().find("no agent of Rollcall answers"), std::string::npos) << Stderr();
  EXPECT_TRUE(Lives());
  close(fifo);
  EXPECT_EQ(WaitFor(std::exchange(pid_, 0)), 0);
}

TEST_F(LibrarySignalStacksTest, AUsualSignalStackIsLargeEnough) {
  const int fifo = StartAndMeet("id init=2,0 signal_stack=8192" + WaitAt(0), 0);
  const RawSample sample = Ask(pid_);
  EXPECT_FALSE(sample.refused) << sample.error;
  EXPECT_EQ(Answered(sample), 1);
  close(fifo);
  EXPECT_EQ(WaitFor(std::exchange(pid_, 0)), 0) << Stderr();
}

// The agent leaves out what these counts say, and compares the rest with the next sample.
TEST_F(LibrarySignalStacksTest, WhatASampleAddsToTheCountersOfTheProcessIsKnown) {
  const int fifo = StartAndMeet("id init=2,0" + WaitAt(0), 0);
  RawSample sample = Ask(pid_);
  ASSERT_TRUE(Eventually([&] {
    sample = Ask(pid_);
    return !sample.threads.empty() && sample.threads[0].state == 'S' && Answered(sample) == 1;
  }));
  const auto moved = ReadMovedBytes("/proc", pid_);
  const RawSample next = Ask(pid_);
  EXPECT_EQ(next.threads[0].switches,
            sample.threads[0].switches + sample.threads[0].sample_switches);
  EXPECT_GT(next.threads[0].sample_switches, 0u);
  EXPECT_GT(ReadMovedBytes("/proc", pid_), moved) << "it reads its own stacks";
  close(fifo);
}

TEST_F(LibrarySignalStacksTest, AThreadWithTheSmallestStackAnswers) {
  const int fifo = StartAndMeet(absl::StrCat("id init=2,0 env=STUB_FIFO=", Fifo(1),
                                             " wait_in_small_thread=16384 met", WaitAt(0)),
                                0);
  const RawSample sample = Ask(pid_);
  EXPECT_FALSE(sample.refused) << sample.error;
  EXPECT_EQ(Answered(sample), 2);
  EXPECT_TRUE(Lives());
  close(fifo);
  EXPECT_EQ(WaitFor(std::exchange(pid_, 0)), 0) << Stderr();
}

}  // namespace
}  // namespace rollcall
