// SPDX-License-Identifier: Apache-2.0
// What two samples of a process say about its motion.
#include "daemon/agents/stack_motion.h"

#include <gtest/gtest.h>

#include "python_frame.h"
#include "rollcall/v1/incident.pb.h"

namespace rollcall {
namespace {

constexpr int32_t kMain = 100, kHelper = 101;

v1::ThreadStack* AddThread(int32_t tid, v1::ProcessStack* stack) {
  stack->set_pid(kMain);
  v1::ThreadStack* thread = stack->add_threads();
  thread->set_tid(tid);
  return thread;
}

// The main thread of a training program that waits in a framework's call at this line, and a thread
// of the framework at that line of its own.
v1::ProcessStack Sample(int line, int helper_line) {
  v1::ProcessStack stack;
  v1::ThreadStack* main = AddThread(kMain, &stack);
  AddPythonFrame("/usr/lib/python3/dist-packages/ray/_private/worker.py", "get", 2500, main);
  AddPythonFrame("/home/user/train.py", "train", line, main);
  AddPythonFrame("/usr/lib/python3/dist-packages/ray/_private/utils.py", "poll", helper_line,
                 AddThread(kHelper, &stack));
  return stack;
}

TEST(StackMotionTest, IgnoresTheFrameworksOwnThreadsAsProgress) {
  EXPECT_EQ(MotionBetween(Sample(7, 10), Sample(7, 11)), Motion::kFrozen);
}

TEST(StackMotionTest, AnotherLineOfTheProgramIsProgress) {
  EXPECT_EQ(MotionBetween(Sample(7, 10), Sample(8, 10)), Motion::kMoving);
}

TEST(StackMotionTest, AThreadThatBeginsInTheProgramIsProgress) {
  v1::ProcessStack after = Sample(7, 10);
  AddPythonFrame("/home/user/data.py", "load", 3, AddThread(102, &after));
  EXPECT_EQ(MotionBetween(Sample(7, 10), after), Motion::kMoving);
}

TEST(StackMotionTest, TheSameFramesWithCpuTimeAreSpinning) {
  v1::ProcessStack after = Sample(7, 10);
  after.set_cpu_seconds(1);
  EXPECT_EQ(MotionBetween(Sample(7, 10), after), Motion::kSpinning);
}

// A server of a framework whose threads never show a line of the program.
TEST(StackMotionTest, WithoutAThreadOfTheProgramAllThreadsCount) {
  v1::ProcessStack before = Sample(7, 10), after = Sample(7, 11);
  for (v1::ProcessStack* stack : {&before, &after}) {
    stack->mutable_threads(0)->mutable_frames()->RemoveLast();
  }
  EXPECT_EQ(MotionBetween(before, after), Motion::kMoving);
}

TEST(StackMotionTest, ASampleWithoutFramesSaysNothing) {
  EXPECT_EQ(MotionBetween({}, Sample(7, 10)), Motion::kUnknown);
}

}  // namespace
}  // namespace rollcall
