// SPDX-License-Identifier: Apache-2.0
// How the culprit's stack departs from that of a waiting rank, in words.
#include "daemon/words/places.h"

#include <gtest/gtest.h>

#include <string>

namespace rollcall {
namespace {

using Kind = StackDeparture::Kind;

// Rank 3 stands at line 20 of `train`, and a rank that waits stands at line 24.
Verdict Departs(Kind kind) {
  Verdict v;
  v.culprits.resize(1);
  v.culprits[0].rank = 3;
  v.places.resize(1);
  v.places[0].program = {{"train", "/x/train.py", 20, true, {}}};
  v.departure.kind = kind;
  v.departure.function = "train";
  v.departure.culprit_line = 20;
  v.departure.waiter_line = 24;
  return v;
}

TEST(DepartureInWordsTest, NamesTheBranchThatOnlyOneSideIsIn) {
  Verdict v = Departs(Kind::kExtra);
  v.departure.condition_line = 18;
  EXPECT_EQ(DepartureInWords(v),
            "rank 3 is at line 20 of `train`, in the branch of line 18, and a rank that waits at "
            "line 24");
}

TEST(DepartureInWordsTest, NamesTheConditionThatDecidesBetweenTwoBranches) {
  Verdict v = Departs(Kind::kExtra);
  v.departure.condition_line = 18;
  v.departure.decides_at = 17;
  EXPECT_EQ(DepartureInWords(v),
            "rank 3 is at line 20 of `train`, in another branch of the condition of line 17, and a "
            "rank that waits at line 24");
}

TEST(DepartureInWordsTest, SaysWhatMayEndAPassBeforeTheCall) {
  Verdict v = Departs(Kind::kSkipped);
  v.departure.skips_at = 22;
  EXPECT_EQ(
      DepartureInWords(v),
      "rank 3 is at line 20 of `train` again, a rank that waits still at line 24; line 22 may "
      "end a pass before that call");
}

TEST(DepartureInWordsTest, NamesTheBranchThatLeavesBeforeTheCall) {
  Verdict v = Departs(Kind::kSkipped);
  v.departure.condition_line = 18;
  v.departure.leaves_branch = true;
  EXPECT_EQ(DepartureInWords(v),
            "rank 3 is at line 20 of `train`, in the branch of line 18, which leaves before line "
            "24, at which a rank waits");
}

TEST(DepartureInWordsTest, SaysNothingWithoutALineOfBothSides) {
  Verdict v = Departs(Kind::kExtra);
  v.departure.waiter_line = 0;
  EXPECT_EQ(DepartureInWords(v), "");
}

}  // namespace
}  // namespace rollcall
