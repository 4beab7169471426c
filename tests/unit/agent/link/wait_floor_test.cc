// SPDX-License-Identifier: Apache-2.0
// The wait floor, computed from samples of a host's clocks as data.
#include "agent/link/wait_floor.h"

#include <gtest/gtest.h>

namespace rollcall {
namespace {

constexpr int64_t kSecond = 1'000'000'000;
constexpr int64_t kTick = kSecond / 10;
constexpr uint64_t kTicksPerNs = 3;

// A host whose clocks the test sets.
class WaitFloorTest : public testing::Test {
 protected:
  void Pass(int64_t ns) {
    now_.steady_ns += ns;
    now_.boot_ns += ns;
    now_.counter += static_cast<uint64_t>(ns) * kTicksPerNs;
  }
  int64_t Calm(int ticks) {
    int64_t floor = 0;
    for (int i = 0; i < ticks; ++i) {
      Pass(kTick);
      floor = floor_.Update(now_);
    }
    return floor;
  }

  HostInstant now_ = {1'700'000'000 * kSecond, 900 * kSecond, 5'000'000};
  WaitFloor floor_{kTick};
};

TEST_F(WaitFloorTest, AHostThatRunsHasNoFloor) { EXPECT_EQ(Calm(100), 0); }

TEST_F(WaitFloorTest, ALateTickIsNotAPause) {
  Calm(20);
  Pass(2 * kSecond);
  EXPECT_EQ(floor_.Update(now_), 0);
}

TEST_F(WaitFloorTest, APauseOfTheAgentSetsTheFloor) {
  Calm(20);
  Pass(20 * kSecond);
  EXPECT_EQ(floor_.Update(now_), now_.steady_ns);
  const int64_t paused_until = now_.steady_ns;
  EXPECT_EQ(Calm(50), paused_until);
}

TEST_F(WaitFloorTest, ALongTickAllowsAPauseOfTenTicks) {
  WaitFloor slow(kSecond);
  slow.Update(now_);
  Pass(9 * kSecond);
  EXPECT_EQ(slow.Update(now_), 0);
  Pass(11 * kSecond);
  EXPECT_EQ(slow.Update(now_), now_.steady_ns);
}

TEST_F(WaitFloorTest, ASuspendSetsTheFloorAlthoughTheSteadyClockStood) {
  Calm(20);
  now_.boot_ns += 3600 * kSecond;
  Pass(kTick);
  EXPECT_EQ(floor_.Update(now_), now_.steady_ns);
}

TEST_F(WaitFloorTest, AStoppedMachineWithARunningCounterSetsTheFloor) {
  Calm(20);
  now_.counter += static_cast<uint64_t>(30 * kSecond) * kTicksPerNs;
  Pass(kTick);
  EXPECT_EQ(floor_.Update(now_), now_.steady_ns);
}

TEST_F(WaitFloorTest, ARestartedCounterIsMeasuredAgain) {
  Calm(20);
  now_.counter = 7;
  EXPECT_EQ(Calm(30), 0);
}

TEST_F(WaitFloorTest, WithoutACounterTheOtherClocksAreUsed) {
  WaitFloor floor(kTick);
  for (int i = 0; i < 30; ++i) {
    Pass(kTick);
    now_.counter = 0;
    EXPECT_EQ(floor.Update(now_), 0);
  }
  Pass(3 * kSecond);
  now_.counter = 0;
  EXPECT_EQ(floor.Update(now_), now_.steady_ns);
}

}  // namespace
}  // namespace rollcall
