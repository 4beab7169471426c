// SPDX-License-Identifier: Apache-2.0
#include "agent/link/sample_effects.h"

#include <gtest/gtest.h>

namespace rollcall {
namespace {

constexpr ProcessId kRank = {100, 5};

TEST(SampleEffectsTest, WhatEarlierSamplesHaveAddedIsLeftOut) {
  SampleEffects effects;
  EXPECT_EQ(effects.WithoutSamples(kRank, 100, 50, 2), 50u);
  EXPECT_EQ(effects.WithoutSamples(kRank, 100, 52, 2), 50u);
  EXPECT_EQ(effects.WithoutSamples(kRank, 100, 54, 3), 50u);
  EXPECT_EQ(effects.WithoutSamples(kRank, 100, 157, 2), 150u) << "it has slept 100 times itself";
}

TEST(SampleEffectsTest, EachThreadHasItsOwnAndTheProcessToo) {
  SampleEffects effects;
  EXPECT_EQ(effects.WithoutSamples(kRank, 100, 50, 2), 50u);
  EXPECT_EQ(effects.WithoutSamples(kRank, 101, 9, 2), 9u);
  EXPECT_EQ(effects.WithoutSamples(kRank, SampleEffects::kWholeProcess, 4096, 100), 4096u);
  EXPECT_EQ(effects.WithoutSamples(kRank, SampleEffects::kWholeProcess, 4196, 0), 4096u);
  EXPECT_EQ(effects.WithoutSamples(kRank, 101, 11, 2), 9u);
}

TEST(SampleEffectsTest, AnotherProcessOrThreadWithTheSameNumberHasNone) {
  SampleEffects effects;
  EXPECT_EQ(effects.WithoutSamples(kRank, 100, 50, 2), 50u);
  EXPECT_EQ(effects.WithoutSamples({100, 6}, 100, 50, 2), 50u);
  EXPECT_EQ(effects.WithoutSamples(kRank, 100, 1, 2), 1u);
  EXPECT_EQ(effects.WithoutSamples(kRank, 100, 3, 2), 1u);
}

TEST(SampleEffectsTest, ForgetsAProcessThatWasNotSampledForLong) {
  SampleEffects effects;
  const auto most = static_cast<pid_t>(SampleEffects::kMostProcesses);
  for (pid_t pid = 1; pid <= most; ++pid) effects.WithoutSamples({pid, 1}, pid, 10, 2);
  EXPECT_EQ(effects.WithoutSamples({1, 1}, 1, 12, 2), 10u);
  effects.WithoutSamples({most + 1, 1}, most + 1, 10, 2);
  EXPECT_EQ(effects.WithoutSamples({1, 1}, 1, 14, 2), 10u);
  EXPECT_EQ(effects.WithoutSamples({2, 1}, 2, 12, 2), 12u);
}

TEST(SampleEffectsTest, AProcessWithThreadsWithoutEndIsBounded) {
  SampleEffects effects;
  const auto most = static_cast<pid_t>(SampleEffects::kMostThreads);
  for (pid_t tid = 1; tid <= most; ++tid) effects.WithoutSamples(kRank, tid, 10, 2);
  EXPECT_EQ(effects.WithoutSamples(kRank, most, 12, 2), 10u);
  effects.WithoutSamples(kRank, most + 1, 10, 2);
  EXPECT_EQ(effects.WithoutSamples(kRank, most, 14, 2), 14u) << "forgotten with all others";
}

}  // namespace
}  // namespace rollcall
