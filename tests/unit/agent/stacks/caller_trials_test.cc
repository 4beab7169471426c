// SPDX-License-Identifier: Apache-2.0
// Which walk from a candidate is believed, and how long a walk may go on guessing.
#include "agent/stacks/caller_trials.h"

#include <gtest/gtest.h>

namespace rollcall {
namespace {

CallerTrial Trial(CallerRank rank, bool reaches_the_end, int contradictions = 0) {
  CallerCandidate candidate;
  candidate.rank = rank;
  return {candidate, KnownFunction::kNothing, reaches_the_end, contradictions};
}

TEST(CallerTrialsTest, ACallToTheFunctionIsBetterThanAWalkToTheEnd) {
  const CallerTrial calls_it = Trial(CallerRank::kCallsIt, false);
  const CallerTrial ends = Trial(CallerRank::kCallsOther, true);
  EXPECT_TRUE(IsBetter(calls_it, ends));
  EXPECT_FALSE(IsBetter(ends, calls_it));
}

TEST(CallerTrialsTest, FewerContradictionsAreBetter) {
  const CallerTrial fits = Trial(CallerRank::kCallsOther, true);
  EXPECT_TRUE(IsBetter(fits, Trial(CallerRank::kCallsOther, true, 1)));
}

TEST(CallerTrialsTest, GuessesByPlaceAloneAreNotFollowedTwiceInARow) {
  CallerTrials trials;
  const CallerTrial by_place = Trial(CallerRank::kCallsOther, false);
  EXPECT_TRUE(trials.MayGuess(by_place, 5));
  EXPECT_FALSE(trials.MayGuess(by_place, 6));
  EXPECT_TRUE(trials.MayGuess(Trial(CallerRank::kCallsIt, false), 6));
  EXPECT_TRUE(trials.MayGuess(by_place, 8));
}

TEST(CallerTrialsTest, TheSearchesOfAThreadShareTheirLimits) {
  CallerTrials trials;
  EXPECT_TRUE(trials.MaySearch(1 << 20));
  EXPECT_FALSE(trials.MaySearch(1));
  for (int i = 0; i < 128; ++i) EXPECT_TRUE(trials.MayTry());
  EXPECT_FALSE(trials.MayTry());
}

}  // namespace
}  // namespace rollcall
