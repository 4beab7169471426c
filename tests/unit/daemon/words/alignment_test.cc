// SPDX-License-Identifier: Apache-2.0
#include "daemon/words/alignment.h"

#include <gtest/gtest.h>

#include <string>

namespace rollcall {
namespace {

// One letter a call, from position 0.
std::vector<HistoryCall> History(const std::string& letters) {
  std::vector<HistoryCall> calls;
  for (size_t i = 0; i < letters.size(); ++i) {
    calls.push_back({i, {Op::kAllReduce, 7, 0, kNoPeer, static_cast<uint64_t>(letters[i])}});
  }
  return calls;
}

struct Case {
  const char* name;
  const char* others;
  const char* culprits;
  DivergenceKind kind;
  uint64_t length;
};

void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

const Case kCases[] = {
    {"one_more", "abcdef", "abXcdef", DivergenceKind::kExtra, 1},
    {"two_more", "abcdef", "abXYcdef", DivergenceKind::kExtra, 2},
    {"one_fewer", "abcdefg", "abdefg", DivergenceKind::kSkipped, 1},
    {"one_replaced", "abcdef", "abXdef", DivergenceKind::kReplaced, 0},
    {"neighbours_swapped", "abcdef", "abdcef", DivergenceKind::kSwapped, 1},
    {"nothing_agrees_afterwards", "abcdef", "abXYZW", DivergenceKind::kReplaced, 0},
    {"equal", "abc", "abc", DivergenceKind::kNone, 0},
    {"one_history_is_shorter", "abcdef", "abc", DivergenceKind::kNone, 0},
    {"frozen_in_the_extra_call", "abcd", "abcX", DivergenceKind::kReplaced, 0},
};

class AlignmentTest : public testing::TestWithParam<Case> {};

TEST_P(AlignmentTest, ClassifiesTheDifference) {
  const Case& c = GetParam();
  const Alignment alignment = Align(History(c.others), History(c.culprits));
  EXPECT_EQ(alignment.kind, c.kind);
  if (c.length != 0) {
    EXPECT_EQ(alignment.length, c.length);
  }
}

INSTANTIATE_TEST_SUITE_P(All, AlignmentTest, testing::ValuesIn(kCases),
                         [](const auto& info) { return info.param.name; });

TEST(AlignmentTest, LinesBeginTwoCallsBeforeTheDifference) {
  const Alignment alignment = Align(History("abcdef"), History("abcXdef"));
  ASSERT_GE(alignment.lines.size(), 3u);
  EXPECT_EQ(alignment.lines[0].position, 1u);
  EXPECT_EQ(alignment.lines[2].others.op, Op::kNone);
  EXPECT_EQ(alignment.lines[2].culprit_position, 3u);
  EXPECT_EQ(alignment.lines[2].culprits.count, static_cast<uint64_t>('X'));
}

TEST(AlignmentTest, LongHistoriesTakeBoundedTime) {
  std::string steps;
  for (int step = 0; step < 25'000; ++step) steps += "abcd";
  const Alignment alignment = Align(History(steps), History("X" + steps));
  EXPECT_EQ(alignment.kind, DivergenceKind::kExtra);
}

}  // namespace
}  // namespace rollcall
