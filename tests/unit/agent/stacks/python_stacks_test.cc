// SPDX-License-Identifier: Apache-2.0
// Python frames of real interpreters at known lines, for every version that this machine has.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "agent/stacks/ptrace_stack_taker.h"
#include "agent/stacks/stack_reader.h"
#include "eventually.h"
#include "patient_limits.h"
#include "python_interpreters.h"
#include "victim_process.h"

namespace rollcall {
namespace {

using testing::AnyOf;
using testing::EndsWith;
using testing::HasSubstr;

constexpr const char* kScript = ROLLCALL_PYTHON_VICTIM;

// Line numbers of "# MARK name".
std::map<std::string, int> ReadMarks() {
  std::map<std::string, int> marks;
  std::ifstream file(kScript);
  std::string line;
  for (int number = 1; std::getline(file, line); ++number) {
    const size_t mark = line.find("# MARK ");
    if (mark != std::string::npos) marks[line.substr(mark + 7)] = number;
  }
  return marks;
}

std::vector<Frame> PythonFrames(const ThreadStack& thread) {
  std::vector<Frame> frames;
  for (const Frame& frame : thread.frames) {
    if (frame.python) frames.push_back(frame);
  }
  return frames;
}

const Frame* FindPython(const ThreadStack& thread, const std::string& function) {
  for (const Frame& frame : thread.frames) {
    if (frame.python && testing::Value(frame.function, EndsWith(function))) return &frame;
  }
  return nullptr;
}

// The number of samples in tests with many; ROLLCALL_STACK_ROUNDS sets it.
int Rounds(int otherwise) {
  const char* rounds = getenv("ROLLCALL_STACK_ROUNDS");
  return rounds != nullptr ? std::atoi(rounds) : otherwise;
}

// The C library may make the system call in internal functions without names.
// From 2.41 on, glibc's functions that may block call the kernel through three of its own.
bool IsWayIntoKernel(const Frame& frame) {
  return frame.function.find("syscall_cancel") != std::string::npos;
}

bool BeginsIn(const ThreadStack& thread, const std::string& function) {
  for (const Frame& frame : thread.frames) {
    if (frame.function.find(function) != std::string::npos) return !frame.python;
    if (!frame.function.empty() && !IsWayIntoKernel(frame)) return false;
  }
  return false;
}

class PythonStacksTest : public testing::TestWithParam<int> {
 protected:
  void SetUp() override {
    interpreter_ = FindInterpreter(GetParam());
    if (interpreter_.empty()) {
      GTEST_SKIP() << "this machine has no "
                   << (GetParam() == kSystemPython ? "/usr/bin/python3"
                                                   : "python3." + std::to_string(GetParam()));
    }
  }

  std::vector<std::string> Command(const std::string& mode) const {
    return {interpreter_, kScript, mode};
  }

  ProcessStack Take(const VictimProcess& victim, const TakeLimits& limits = PatientLimits()) {
    return reader_.TakeAndUnwind(&taker_, victim.pid(), limits);
  }

  static bool IsAnyIn(const ProcessStack& process, const std::string& function) {
    return std::any_of(process.threads.begin(), process.threads.end(),
                       [&](const auto& thread) { return FindPython(thread, function) != nullptr; });
  }

  // Returns the thread inside this Python function.
  static ThreadStack ThreadIn(const ProcessStack& process, const std::string& function) {
    for (const ThreadStack& thread : process.threads) {
      if (FindPython(thread, function) != nullptr) return thread;
    }
    ADD_FAILURE() << "no thread is in " << function;
    return {};
  }

  // Samples until a stack has the wanted frames: a thread may not have reached its line yet.
  template <typename Holds>
  ProcessStack TakeUntil(const VictimProcess& victim, Holds holds) {
    ProcessStack process;
    EXPECT_TRUE(Eventually([&] { return holds(process = Take(victim)); }));
    return process;
  }

  std::string interpreter_;
  const std::map<std::string, int> marks_ = ReadMarks();
  PtraceStackTaker taker_;
  StackReader reader_;
};

TEST_P(PythonStacksTest, ShowsFunctionsFilesAndLinesThroughAGenerator) {
  VictimProcess victim(Command("plain"));
  ASSERT_TRUE(victim.WaitForAll('S'));
  const ProcessStack process = Take(victim);
  EXPECT_EQ(process.error, "");
  const ThreadStack thread = ThreadIn(process, "consume");
  const std::vector<Frame> frames = PythonFrames(thread);
  ASSERT_GE(frames.size(), 5u) << FormatThreadStack(thread);
  const struct {
    const char* function;
    const char* mark;
  } kExpected[] = {{"wait_for_ever", "lock"},
                   {"<genexpr>", "generator"},
                   {"wait_in_a_generator", "generator"},
                   {"consume", "consume"}};
  for (size_t i = 0; i < std::size(kExpected); ++i) {
    EXPECT_THAT(frames[i].function, EndsWith(kExpected[i].function));
    EXPECT_EQ(frames[i].source_file, kScript);
    EXPECT_EQ(frames[i].line, marks_.at(kExpected[i].mark)) << FormatThreadStack(thread);
  }
  EXPECT_THAT(frames[4].function, EndsWith("run"));
  EXPECT_THAT(frames[4].source_file, EndsWith("/threading.py"));
}

TEST_P(PythonStacksTest, InsertsPythonFramesAtTheirEvaluatorsAroundACallback) {
  VictimProcess victim(Command("plain"));
  ASSERT_TRUE(victim.WaitForAll('S'));
  const ThreadStack thread = ThreadIn(Take(victim), "called_back");
  std::vector<std::string> order;
  for (const Frame& frame : thread.frames) {
    if (frame.python || frame.function.compare(0, 5, "qsort") == 0) order.push_back(frame.function);
  }
  ASSERT_GE(order.size(), 4u) << FormatThreadStack(thread);
  EXPECT_EQ(order[0], "called_back");
  EXPECT_THAT(order[1], EndsWith("<lambda>"));
  EXPECT_THAT(order[2], HasSubstr("qsort"));
  EXPECT_EQ(FindPython(thread, "called_back")->line, marks_.at("callback"));
  ASSERT_NE(FindPython(thread, "call_from_c"), nullptr);
  EXPECT_THAT(FindPython(thread, "call_from_c")->line,
              AnyOf(marks_.at("qsort"), marks_.at("qsort") + 1));
  EXPECT_EQ(thread.note, "");
}

TEST_P(PythonStacksTest, ShowsTheMainThreadInsideASystemCall) {
  VictimProcess victim(Command("plain"));
  ASSERT_TRUE(victim.WaitForAll('S'));
  const ThreadStack thread = Take(victim).threads.at(0);
  EXPECT_TRUE(BeginsIn(thread, "read")) << FormatThreadStack(thread);
  const std::vector<Frame> frames = PythonFrames(thread);
  ASSERT_EQ(frames.size(), 4u) << FormatThreadStack(thread);
  EXPECT_EQ(frames[0].function, "read_for_ever");
  EXPECT_EQ(frames[0].line, marks_.at("read"));
  EXPECT_THAT(frames[1].function, EndsWith("<lambda>"));
  EXPECT_THAT(frames[2].function, EndsWith("validate"));
  if (GetParam() >= 11) {
    EXPECT_EQ(frames[2].function, "Trainer.validate");
  }
  EXPECT_EQ(frames[2].line, marks_.at("lambda"));
  EXPECT_EQ(frames[3].function, "<module>");
  EXPECT_EQ(thread.gil, PythonLock::kNone);
}

TEST_P(PythonStacksTest, KeepsNamesThatAreNotAscii) {
  VictimProcess victim(Command("plain"));
  ASSERT_TRUE(victim.WaitForAll('S'));
  const ThreadStack thread = ThreadIn(Take(victim), "gr\xc3\xbc\xc3\x9f\x65");
  EXPECT_EQ(PythonFrames(thread)[0].line, marks_.at("unicode"));
}

TEST_P(PythonStacksTest, HasTheThreadNamesOfTheProgram) {
  VictimProcess victim(Command("named"));
  ASSERT_TRUE(victim.WaitForAll('S'));
  const ProcessStack process = Take(victim);
  EXPECT_EQ(ThreadIn(process, "wait_as_named").name, "prefetch of the r\xc3\xa4umlich data");
  EXPECT_EQ(ThreadIn(process, "wait_as_loaded").name, "loaded");
  EXPECT_EQ(ThreadIn(process, "wait_as_looked_at").name, "looked at");
}

TEST_P(PythonStacksTest, HasTheExceptionThatAThreadIsHandling) {
  VictimProcess victim(Command("handling"));
  ASSERT_TRUE(victim.WaitForAll('S'));
  const std::string kCutText = std::string(200, 'x') + " of ...";  // no part of the password
  std::string many_bytes;
  for (int i = 0; i < 200; ++i) many_bytes += "\xe5\xa3\x8a";
  const struct {
    const char* function;
    const char* type;
    const char* text;
    const char* mark;
    const char* raised_in;
  } kExpected[] = {
      {"wait_in_except", "ValueError", "bad shard 3", "raised", "load_shard"},
      {"wait_in_finally", "KeyError", "'label'", "looked up", "wait_in_finally"},
      {"wait_in_exit", "FileNotFoundError", "2, 'No such file or directory'", "opened", "leave"},
      {"wait_in_generator_end", "JSONDecodeError",
       "Expecting property name enclosed in double quotes: line 1 column 2 (char 1)", "parsed",
       "leave_a_generator"},
      {"wait_with_a_long_text", "ConnectionError", kCutText.c_str(), "refused",
       "wait_with_a_long_text"},
      {"wait_with_a_text_of_many_bytes", "ValueError", many_bytes.c_str(), "found broken",
       "wait_with_a_text_of_many_bytes"},
  };
  const ProcessStack process = TakeUntil(victim, [&](const ProcessStack& taken) {
    return std::all_of(std::begin(kExpected), std::end(kExpected),
                       [&](const auto& expected) { return IsAnyIn(taken, expected.function); });
  });
  for (const auto& expected : kExpected) {
    const ThreadStack thread = ThreadIn(process, expected.function);
    EXPECT_EQ(thread.exception.type, expected.type) << FormatThreadStack(thread);
    EXPECT_EQ(thread.exception.text, expected.text);
    EXPECT_EQ(thread.exception.line, marks_.at(expected.mark));
    EXPECT_EQ(thread.exception.function, expected.raised_in);
    EXPECT_EQ(thread.exception.file, kScript);
    EXPECT_FALSE(thread.keeps_process);
  }
  EXPECT_EQ(ThreadIn(process, "wait_after_handling").exception.type, "");
  const ThreadStack keeper = ThreadIn(process, "wait_as_named");
  EXPECT_TRUE(keeper.keeps_process);
  EXPECT_EQ(keeper.exception.type, "");
}

TEST_P(PythonStacksTest, ShowsTheHolderOfTheLockThatIsStuckInC) {
  VictimProcess victim(Command("held"));
  const ProcessStack process = TakeUntil(victim, [](const ProcessStack& p) {
    return p.threads.at(0).gil == PythonLock::kHolds && FindPython(p.threads[0], "hold_the_lock");
  });
  const ThreadStack& thread = process.threads.at(0);
  EXPECT_TRUE(BeginsIn(thread, "pause")) << FormatThreadStack(thread);
  EXPECT_EQ(FindPython(thread, "hold_the_lock")->line, marks_.at("held"));
  for (size_t i = 1; i < process.threads.size(); ++i) {
    EXPECT_NE(process.threads[i].gil, PythonLock::kHolds);
  }
}

TEST_P(PythonStacksTest, ShowsTheHolderOfTheLockAndTheWaitingThreads) {
  VictimProcess victim(Command("spin"));
  const auto both_spin = [](const ProcessStack& p) {
    int waits = 0, holds = 0;
    for (const ThreadStack& thread : p.threads) {
      if (FindPython(thread, "spin") == nullptr) continue;
      waits += thread.gil == PythonLock::kWaits;
      holds += thread.gil == PythonLock::kHolds;
    }
    return waits == 1 && holds == 1;
  };
  TakeUntil(victim, both_spin);
}

TEST_P(PythonStacksTest, ReadsAStoppedProcessAndLeavesItStopped) {
  VictimProcess victim(Command("plain"));
  ASSERT_TRUE(victim.WaitForAll('S'));
  kill(victim.pid(), SIGSTOP);
  ASSERT_TRUE(victim.WaitForAll('T'));
  EXPECT_EQ(FindPython(Take(victim).threads.at(0), "read_for_ever")->line, marks_.at("read"));
  EXPECT_TRUE(victim.WaitForAll('T'));
}

TEST_P(PythonStacksTest, ShowsBothEndsOfARecursionOfFiveThousand) {
  VictimProcess victim(Command("recursion"));
  ASSERT_TRUE(victim.WaitForAll('S'));
  const ProcessStack process = Take(victim);
  const ThreadStack thread = ThreadIn(process, "recurse");
  const std::vector<Frame> frames = PythonFrames(thread);
  EXPECT_EQ(frames.at(0).line, marks_.at("deepest"));
  EXPECT_EQ(frames.at(1).line, marks_.at("recursion"));
  EXPECT_LE(thread.frames.size(), 257u);
  EXPECT_THAT(thread.note, HasSubstr("frames in the middle are left out"));
  // The sample has the outer end: the frame of threading.py that started the thread.
  EXPECT_THAT(frames.back().function, EndsWith("_bootstrap"));
}

TEST_P(PythonStacksTest, SeesIntoASubinterpreter) {
  VictimProcess victim(Command("subinterpreter"));
  ASSERT_TRUE(victim.WaitForAll('S'));
  const ThreadStack thread = ThreadIn(Take(victim), "wait_in_there");
  EXPECT_EQ(FindPython(thread, "wait_in_there")->line, 6);
  EXPECT_NE(FindPython(thread, "<module>"), nullptr);
}

TEST_P(PythonStacksTest, TakesStacksOfThreadsThatRunStartAndEnd) {
  VictimProcess victim(Command("busy"));
  size_t whole = 0, all = 0;
  for (int i = 0; i < Rounds(100); ++i) {
    // A thread that ends never stops: the time for one thread passes.
    const ProcessStack process = Take(victim, TakeLimits());
    ASSERT_FALSE(process.threads.empty());
    for (const ThreadStack& thread : process.threads) {
      if (FindPython(thread, "_bootstrap") == nullptr) continue;
      ++all;
      const std::vector<Frame> frames = PythonFrames(thread);
      whole += std::all_of(frames.begin(), frames.end(), [](const Frame& frame) {
        return frame.function != "<unreadable Python frame>" && !frame.source_file.empty();
      });
    }
  }
  EXPECT_GT(all, 100u);
  EXPECT_EQ(whole, all);
  EXPECT_EQ(kill(victim.pid(), 0), 0);
}

TEST_P(PythonStacksTest, SurvivesManySamples) {
  const struct {
    const char* mode;
    const char* function;
  } kStates[] = {{"plain", "read_for_ever"},
                 {"held", "hold_the_lock"},
                 {"spin", "spin"},
                 {"subinterpreter", "wait_in_there"}};
  for (const auto& state : kStates) {
    VictimProcess victim(Command(state.mode));
    const auto is_there = [&](const ProcessStack& process) {
      return std::any_of(
          process.threads.begin(), process.threads.end(),
          [&](const ThreadStack& thread) { return FindPython(thread, state.function) != nullptr; });
    };
    TakeUntil(victim, is_there);
    for (int i = 0; i < Rounds(20); ++i) ASSERT_TRUE(is_there(Take(victim))) << state.mode;
    EXPECT_EQ(kill(victim.pid(), 0), 0);
  }
}

INSTANTIATE_TEST_SUITE_P(Python3, PythonStacksTest, testing::Range(8, 15));
INSTANTIATE_TEST_SUITE_P(System, PythonStacksTest, testing::Values(kSystemPython));

}  // namespace
}  // namespace rollcall
