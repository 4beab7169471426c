// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "agent/collector/process_facts.h"
#include "base/durations.h"

namespace rollcall {
namespace {

ProcessReading Reading(char state, uint64_t cpu_ticks) {
  ProcessReading reading;
  reading.stat = ProcStat();
  reading.stat->state = state;
  reading.stat->cpu_ticks = cpu_ticks;
  reading.stat->virtual_bytes = 1;
  return reading;
}

v1::Evidence Reported(const ProcessState& state) {
  v1::Evidence evidence;
  state.Report(&evidence);
  return evidence;
}

TEST(ProcessStateTest, SeesThatTheCpuTimeMovesFromTheSecondReadingOn) {
  ProcessState state;
  state.Take(1 * kSecond, Reading('R', 100));
  EXPECT_FALSE(Reported(state).cpu_moving());
  state.Take(2 * kSecond, Reading('R', 101));
  EXPECT_TRUE(Reported(state).cpu_moving());
  state.Take(3 * kSecond, Reading('S', 101));
  EXPECT_FALSE(Reported(state).cpu_moving());
}

TEST(ProcessStateTest, ReportsAStopByATracerOnlyIfItLasts) {
  ProcessState state;
  state.Take(1 * kSecond, Reading('S', 100));
  state.Take(2 * kSecond, Reading('t', 100));
  EXPECT_EQ(Reported(state).state(), "S") << "somebody takes a stack";
  state.Take(3 * kSecond, Reading('t', 100));
  EXPECT_EQ(Reported(state).state(), "t");
}

TEST(ProcessStateTest, IsDueOnceASecondAndKeepsWhatItKnowsOfAMissingProcess) {
  ProcessState state;
  EXPECT_TRUE(state.IsDue(1 * kSecond));
  state.Take(1 * kSecond, Reading('S', 100));
  EXPECT_FALSE(state.IsDue(2 * kSecond - 1));
  EXPECT_TRUE(state.IsDue(2 * kSecond));
  state.Take(2 * kSecond, ProcessReading());
  EXPECT_TRUE(state.missing());
  EXPECT_EQ(state.had_memory_ns(), 1 * kSecond);
}

}  // namespace
}  // namespace rollcall
