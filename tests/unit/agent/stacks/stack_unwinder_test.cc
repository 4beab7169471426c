// SPDX-License-Identifier: Apache-2.0
// Unwinds the copied stacks of real processes and finds their names: every kind of frame in a
// training job.
#include "agent/stacks/stack_unwinder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <random>

#include "agent/stacks/ptrace_stack_taker.h"
#include "agent/stacks/stack_reader.h"
#include "patient_limits.h"
#include "victim_process.h"

namespace rollcall {
namespace {

std::vector<std::string> Functions(const ThreadStack& thread) {
  std::vector<std::string> names;
  for (const Frame& frame : thread.frames) names.push_back(frame.function);
  return names;
}

const Frame* FindFrame(const ThreadStack& thread, const std::string& function) {
  for (const Frame& frame : thread.frames) {
    if (frame.function == function) return &frame;
  }
  return nullptr;
}

// Whether the functions of `expected` follow one another from some frame on.
bool HasRun(const ThreadStack& thread, const std::vector<std::string>& expected) {
  const std::vector<std::string> names = Functions(thread);
  return std::search(names.begin(), names.end(), expected.begin(), expected.end()) != names.end();
}

class StackUnwinderTest : public ::testing::Test {
 protected:
  ThreadStack Find(const ProcessStack& process, const std::string& name) {
    for (const ThreadStack& thread : process.threads) {
      if (thread.name == name) return thread;
    }
    ADD_FAILURE() << "no thread " << name << ": " << process.error;
    return {};
  }

  // A thread of the blocked victim. The victim has ended before unwinding starts.
  ThreadStack StackOf(const std::string& name, const std::string& program = "stack_victim") {
    return Find(reader_.Unwind(TakeBlocked(program), TakeLimits()), name);
  }

  RawSample TakeBlocked(const std::string& program = "stack_victim",
                        const TakeLimits& limits = PatientLimits()) {
    VictimProcess victim(program);
    EXPECT_TRUE(victim.WaitForAll('S'));
    return PtraceStackTaker().Take(victim.pid(), limits);
  }

  StackReader reader_;
  ModuleFiles files_;
};

TEST_F(StackUnwinderTest, UnwindsBlockedThreadsOfAnEndedProcess) {
  const ProcessStack process = reader_.Unwind(TakeBlocked(), TakeLimits());
  EXPECT_EQ(process.error, "");
  EXPECT_EQ(process.method, "ptrace");
  const struct {
    const char* thread;
    const char* function;
  } kExpected[] = {{"futex", "victim::WaitInFutex()"},
                   {"read", "victim::ReadFromPipe()"},
                   {"nanosleep", "victim::SleepLong()"}};
  for (const auto& expected : kExpected) {
    const ThreadStack thread = Find(process, expected.thread);
    EXPECT_TRUE(HasRun(thread, {expected.function, "victim::RunRole(void*)"}))
        << FormatThreadStack(thread);
    EXPECT_EQ(thread.note, "") << FormatThreadStack(thread);
    EXPECT_GE(thread.frames.size(), 4u);  // the system call below, the thread's start above
  }
  EXPECT_NE(FindFrame(process.threads[0], "main"), nullptr);
}

TEST_F(StackUnwinderTest, HasFileLineModuleAndBuildId) {
  const ThreadStack thread = StackOf("futex");
  const Frame* frame = FindFrame(thread, "victim::WaitInFutex()");
  ASSERT_NE(frame, nullptr);
  EXPECT_NE(frame->source_file.find("stack_victim.cc"), std::string::npos);
  EXPECT_GT(frame->line, 0);
  EXPECT_EQ(frame->module, VictimPath("stack_victim"));
  EXPECT_EQ(frame->build_id.size(), 40u);
}

TEST_F(StackUnwinderTest, FollowsADeepRecursion) {
  const ThreadStack thread = StackOf("recursion");
  const auto names = Functions(thread);
  EXPECT_EQ(std::count(names.begin(), names.end(), "victim::Recurse(int)"), 41)
      << FormatThreadStack(thread);
  EXPECT_TRUE(HasRun(thread, {"victim::RunRole(void*)"}));
}

TEST_F(StackUnwinderTest, ReportsTheEndOfTheCopyIfTheStackIsLonger) {
  TakeLimits limits = PatientLimits();
  limits.stack_bytes = 64 << 10;
  const ThreadStack thread =
      Find(reader_.Unwind(TakeBlocked("stack_victim", limits), limits), "wide");
  const auto names = Functions(thread);
  const auto found = std::count(names.begin(), names.end(), "victim::RecurseWide(int)");
  EXPECT_GE(found, 12);  // 64 KiB, about 4 KiB for each frame
  EXPECT_LE(found, 16);
  EXPECT_EQ(thread.note, "the copied part of the stack ends here");
}

TEST_F(StackUnwinderTest, LeavesOutFramesBeyondTheLimit) {
  TakeLimits limits = PatientLimits();
  limits.max_frames = 5;
  const ThreadStack thread = Find(reader_.Unwind(TakeBlocked(), limits), "recursion");
  EXPECT_EQ(thread.frames.size(), 5u);
  EXPECT_EQ(thread.note, "more than 5 frames; the outer ones are left out");
}

TEST_F(StackUnwinderTest, KeepsOfAllThreadsTogetherNoMoreThanTheirLimit) {
  TakeLimits limits = PatientLimits();
  limits.all_frame_bytes = 11 * 2000;
  const ProcessStack process = reader_.Unwind(TakeBlocked(), limits);
  size_t bytes = 0;
  for (const ThreadStack& thread : process.threads) {
    for (const Frame& frame : thread.frames) bytes += sizeof(frame) + frame.function.size();
  }
  EXPECT_LE(bytes, limits.all_frame_bytes);
  EXPECT_GT(bytes, limits.all_frame_bytes / 4);
  EXPECT_THAT(Find(process, "recursion").note, testing::HasSubstr("left out"));
}

TEST_F(StackUnwinderTest, FindsNamesInACompressedSymbolTable) {
  const ThreadStack thread = StackOf("recursion", "stack_victim_minidebug");
  EXPECT_TRUE(HasRun(thread, {"victim::RunRole(void*)"})) << FormatThreadStack(thread);
}

TEST_F(StackUnwinderTest, LeavesOutTheMiddleOfADeepStackAndReportsIt) {
  TakeLimits limits = PatientLimits();
  limits.kept_frames = 16;
  const ThreadStack thread = Find(reader_.Unwind(TakeBlocked(), limits), "recursion");
  ASSERT_EQ(thread.frames.size(), 17u) << FormatThreadStack(thread);
  EXPECT_THAT(thread.frames[12].function, testing::MatchesRegex("<[0-9]+ frames left out>"));
  EXPECT_TRUE(HasRun(thread, {"victim::RunRole(void*)"}));
  EXPECT_THAT(thread.note, testing::HasSubstr("frames in the middle are left out"));
}

TEST_F(StackUnwinderTest, UnwindsThroughASharedLibrary) {
  const ThreadStack thread = StackOf("library");
  EXPECT_TRUE(HasRun(thread, {"victim::WaitInFutex()", "(anonymous namespace)::Inner(void (*)())",
                              "victim_library_call"}))
      << FormatThreadStack(thread);
  EXPECT_TRUE(HasRun(thread, {"victim::RunRole(void*)"}));
  EXPECT_NE(FindFrame(thread, "victim_library_call")->module.find("libvictim_library.so"),
            std::string::npos);
}

TEST_F(StackUnwinderTest, FollowsFramePointersWithoutUnwindInformation) {
  const ThreadStack thread = StackOf("no unwind");
  EXPECT_TRUE(HasRun(thread, {"victim::WaitInFutex()", "(anonymous namespace)::Inner(void (*)())",
                              "victim_no_unwind_call"}))
      << FormatThreadStack(thread);
  EXPECT_TRUE(HasRun(thread, {"victim::RunRole(void*)"})) << FormatThreadStack(thread);
  EXPECT_NE(thread.note.find("frame pointers"), std::string::npos);
}

TEST_F(StackUnwinderTest, UsesTheTablesOfTheDebuggerIfThereAreNoOthers) {
  const ThreadStack thread = StackOf("debug frame");
  EXPECT_TRUE(HasRun(thread, {"victim::WaitInFutex()", "(anonymous namespace)::Inner(void (*)())",
                              "victim_debug_frame_call"}))
      << FormatThreadStack(thread);
  EXPECT_TRUE(HasRun(thread, {"victim::RunRole(void*)"})) << FormatThreadStack(thread);
  EXPECT_EQ(thread.note, "");
}

TEST_F(StackUnwinderTest, ShowsInlinedCallsWithTheirOwnLines) {
  const ThreadStack thread = StackOf("inlined");
  ASSERT_TRUE(
      HasRun(thread, {"victim::WaitInFutex()", "victim::InlinedCallee()", "victim::CallInlined()"}))
      << FormatThreadStack(thread);
  const Frame* callee = FindFrame(thread, "victim::InlinedCallee()");
  const Frame* caller = FindFrame(thread, "victim::CallInlined()");
  EXPECT_TRUE(callee->inlined);
  EXPECT_FALSE(caller->inlined);
  EXPECT_EQ(callee->address, caller->address);
  EXPECT_LT(callee->line, caller->line);
}

TEST_F(StackUnwinderTest, UnwindsThroughASignalHandlerAndACallToNull) {
  const ThreadStack thread = StackOf("in (handler) x");
  EXPECT_TRUE(HasRun(
      thread, {"victim::WaitInSignalHandler()", "victim::OnFault(int)", "<signal handler called>"}))
      << FormatThreadStack(thread);
  EXPECT_NE(FindFrame(thread, "victim::CallThroughNull()"), nullptr) << FormatThreadStack(thread);
  EXPECT_NE(FindFrame(thread, "victim::RunRole(void*)"), nullptr) << FormatThreadStack(thread);
}

TEST_F(StackUnwinderTest, UnwindsAStrippedProgramToModuleAndOffset) {
  const ThreadStack thread = StackOf("recursion", "stack_victim_stripped");
  const auto in_victim = [](const Frame& frame) {
    return frame.module == VictimPath("stack_victim_stripped");
  };
  ASSERT_GE(std::count_if(thread.frames.begin(), thread.frames.end(), in_victim), 43);
  // The offsets are the same as in the program with symbols.
  const auto frame = std::find_if(thread.frames.begin(), thread.frames.end(), in_victim);
  EXPECT_EQ(frame->function, "");
  ProcMap map;
  map.start = 0;
  map.end = 1;
  map.path = VictimPath("stack_victim");
  const auto file = files_.Find(getpid(), map);
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ(Symbolizer().Resolve(*file, frame->module_offset - 1).back().function,
            "victim::WaitInFutex()");
  EXPECT_EQ(frame->build_id, (*file)->build_id());
}

TEST_F(StackUnwinderTest, UnwindsARunningThread) {
  VictimProcess victim("stack_victim", "busy");
  PtraceStackTaker taker;
  const ThreadStack thread =
      Find(reader_.TakeAndUnwind(&taker, victim.pid(), PatientLimits()), "busy");
  EXPECT_TRUE(HasRun(thread, {"victim::BusyLoop()", "victim::RunRole(void*)"}))
      << FormatThreadStack(thread);
}

TEST_F(StackUnwinderTest, NamesTheVdso) {
  VictimProcess victim("stack_victim", "busy");
  PtraceStackTaker taker;
  ThreadStack thread;
  const auto in_vdso = [&thread] {
    return !thread.frames.empty() && thread.frames[0].module == "[vdso]";
  };
  for (int attempt = 0; attempt < 200 && !in_vdso(); ++attempt) {
    thread = Find(reader_.TakeAndUnwind(&taker, victim.pid(), PatientLimits()), "vdso");
  }
  ASSERT_TRUE(in_vdso()) << FormatThreadStack(thread);
  EXPECT_NE(thread.frames[0].function.find("clock_gettime"), std::string::npos)
      << FormatThreadStack(thread);
  EXPECT_NE(FindFrame(thread, "victim::ReadClock()"), nullptr) << FormatThreadStack(thread);
}

TEST_F(StackUnwinderTest, KeepsTheReasonWhyAThreadWasNotTaken) {
  RawSample sample;
  RawThread thread;
  thread.tid = 5;
  thread.error = "left alone: in an uninterruptible wait in the kernel";
  sample.threads.push_back(thread);
  const ProcessStack process = reader_.Unwind(sample, TakeLimits());
  EXPECT_EQ(process.threads[0].note, thread.error);
  EXPECT_TRUE(process.threads[0].frames.empty());
}

// Unwinding ends within its limit for any contents of the stack.
TEST_F(StackUnwinderTest, SurvivesRandomStacksAndRegisters) {
  const RawSample original = TakeBlocked();
  std::mt19937_64 random(20240501);
  TakeLimits limits = PatientLimits();
  limits.max_frames = 64;
  for (int round = 0; round < 300; ++round) {
    RawSample sample = original;
    for (RawThread& thread : sample.threads) {
      for (int i = 0; i < 20; ++i) thread.stack[random() % thread.stack.size()] = random();
      auto* registers = reinterpret_cast<uint8_t*>(&thread.registers);
      if (round % 3 == 0) registers[random() % sizeof(thread.registers)] = random();
      if (round % 7 == 0) thread.stack.resize(random() % thread.stack.size());
    }
    SampleModules modules(sample, &files_);
    StackUnwinder unwinder(sample, &modules);
    for (const RawThread& thread : sample.threads) {
      EXPECT_LE(unwinder.Unwind(thread, limits.max_frames).frames.size(), limits.max_frames);
    }
  }
}

}  // namespace
}  // namespace rollcall
