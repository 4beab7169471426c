// SPDX-License-Identifier: Apache-2.0
// Stacks of a rank in every state, by both ways, again and again: right frames, and nothing that
// the rank could notice. ROLLCALL_STACK_ROUNDS sets the number of rounds.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "agent/processes/proc_stat.h"
#include "agent/stacks/ptrace_stack_taker.h"
#include "agent/stacks/signal_stack_taker.h"
#include "agent/stacks/stack_reader.h"
#include "tests/unit/support/victim_process.h"

namespace rollcall {
namespace {

using testing::HasSubstr;

int Rounds() {
  const char* rounds = getenv("ROLLCALL_STACK_ROUNDS");
  return rounds != nullptr ? atoi(rounds) : 200;
}

bool HasFunction(const ThreadStack& thread, const std::string& function) {
  for (const Frame& frame : thread.frames) {
    if (frame.function.find(function) != std::string::npos) return true;
  }
  return false;
}

// The parameter: whether the stacks are taken from inside.
class StackStatesTest : public testing::TestWithParam<bool> {
 protected:
  StackStatesTest() {
    char path[] = "/tmp/rollcall-states-XXXXXX";
    directory_ = mkdtemp(path);
    setenv("ROLLCALL_DIR", directory_.c_str(), 1);
    if (GetParam()) {
      taker_ = std::make_unique<SignalStackTaker>();
    } else {
      taker_ = std::make_unique<PtraceStackTaker>();
    }
  }
  ~StackStatesTest() override { std::filesystem::remove_all(directory_); }

  static std::vector<std::string> Command(const std::string& mode) {
    return {"/usr/bin/env", std::string("LD_PRELOAD=") + ROLLCALL_LIBRARY,
            std::string("LD_LIBRARY_PATH=") + ROLLCALL_SIM_DIR, STACK_STATES, mode};
  }

  std::map<std::string, ThreadStack> Take(pid_t pid) {
    const ProcessStack process = reader_.TakeAndUnwind(taker_.get(), pid, TakeLimits());
    EXPECT_EQ(process.error, "");
    std::map<std::string, ThreadStack> threads;
    for (const ThreadStack& thread : process.threads) threads[thread.name] = thread;
    return threads;
  }

  std::string directory_;
  std::unique_ptr<StackTaker> taker_;
  StackReader reader_;
};

TEST_P(StackStatesTest, ShowsWhereEachThreadStands) {
  VictimProcess victim(Command("quiet"));
  ASSERT_TRUE(victim.WaitForAll('S'));
  // The one that throws stands still a little later than it first sleeps.
  auto threads = Take(victim.pid());
  for (int i = 0; i < 100 && !HasFunction(threads["exception"], "StandInFutex"); ++i) {
    threads = Take(victim.pid());
  }
  const struct {
    const char* thread;
    const char* function;
    bool from_inside;
  } kExpected[] = {{"futex", "states::StandInFutex", true},
                   {"read", "states::StandInRead", true},
                   {"handler", "states::StandInHandler", true},
                   {"handler", "<signal handler called>", true},
                   {"handler", "states::RaiseSignal", true},
                   {"deep", "states::Recurse", true},
                   {"exception", "states::ThrowThroughAWait", true},
                   {"nanosleep", "states::StandInNanosleep", false},
                   {"poll", "states::StandInPoll", false},
                   {"epoll", "states::StandInEpoll", false},
                   {"select", "states::StandInSelect", false},
                   {"sigwait", "states::StandInSigwait", false},
                   {"pause", "states::StandInPause", false},
                   {"blocked", "states::StandWithSignalsBlocked", false}};
  for (const auto& expected : kExpected) {
    const auto thread = threads.find(expected.thread);
    ASSERT_NE(thread, threads.end()) << expected.thread;
    if (GetParam() && !expected.from_inside) {
      EXPECT_TRUE(thread->second.frames.empty()) << FormatThreadStack(thread->second);
      EXPECT_NE(thread->second.note, "") << expected.thread;
      EXPECT_NE(thread->second.wchan, "") << expected.thread;
    } else {
      EXPECT_TRUE(HasFunction(thread->second, expected.function))
          << FormatThreadStack(thread->second);
    }
  }
  const ThreadStack& deep = threads.at("deep");
  if (GetParam()) {
    EXPECT_THAT(deep.note, HasSubstr("the copied part of the stack ends here"));
  } else {
    EXPECT_TRUE(HasFunction(deep, "states::StandDeep")) << deep.note;
    EXPECT_THAT(deep.note, HasSubstr("frames in the middle are left out"));
  }
  EXPECT_EQ(victim.Ask(), "noticed 0 ");
}

TEST_P(StackStatesTest, IsNotNoticedByThreadsThatStand) {
  VictimProcess victim(Command("quiet"));
  ASSERT_TRUE(victim.WaitForAll('S'));
  int taken = 0;
  std::string late;  // a busy machine gives some threads no time to answer
  for (int i = 0; i < Rounds(); ++i) {
    const RawSample sample = taker_->Take(victim.pid(), TakeLimits());
    ASSERT_EQ(sample.error, "") << i;
    for (const RawThread& thread : sample.threads) {
      if (thread.how == HowTaken::kFailed && absl::StrContains(thread.error, "in time")) {
        absl::StrAppend(&late, thread.name, ": ", thread.error, "\n");
        continue;
      }
      EXPECT_NE(thread.how, HowTaken::kFailed) << thread.name << ": " << thread.error;
      ++taken;
    }
  }
  EXPECT_GT(taken, std::count(late.begin(), late.end(), '\n')) << late;
  EXPECT_EQ(victim.Ask(), "noticed 0 ");
}

TEST_P(StackStatesTest, IsNotNoticedByThreadsThatAllocateLoadThrowPrintAndEnd) {
  VictimProcess victim(Command("busy"));
  int seen = 0;
  for (int i = 0; i < Rounds(); ++i) {
    const RawSample sample = taker_->Take(victim.pid(), TakeLimits());
    ASSERT_EQ(sample.error, "") << i;
    if (i % 10 != 0) continue;
    const ProcessStack process = reader_.Unwind(sample, TakeLimits());
    for (const ThreadStack& thread : process.threads) {
      // A busy machine gives it no time to answer.
      if (thread.name != "spin" || absl::StrContains(thread.note, "in time")) continue;
      EXPECT_TRUE(HasFunction(thread, "states::Spin")) << FormatThreadStack(thread);
      ++seen;
    }
  }
  EXPECT_GT(seen, 0);
  EXPECT_EQ(victim.Ask(), "noticed 0 ");
}

TEST_P(StackStatesTest, LeavesNothingInTheSegmentsFolderButTheSegment) {
  VictimProcess victim(Command("quiet"));
  Take(victim.pid());
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(directory_)) {
    EXPECT_EQ(entry.path().extension(), ".seg");
    ++files;
  }
  EXPECT_EQ(files, 1);
}

INSTANTIATE_TEST_SUITE_P(Ways, StackStatesTest, testing::Bool(), [](const auto& info) {
  return info.param ? std::string("FromInside") : std::string("FromOutside");
});

}  // namespace
}  // namespace rollcall
