// SPDX-License-Identifier: Apache-2.0
// The habit of a rank, learned from sequences of letters: each letter is a kind of call.
#include "daemon/model/habit.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace rollcall {
namespace {

std::string Times(int n, const std::string& step) {
  std::string calls;
  for (int i = 0; i < n; ++i) calls += step;
  return calls;
}

std::vector<CallToken> Tokens(const std::string& calls) { return {calls.begin(), calls.end()}; }

struct CallCase {
  const char* name;
  std::string past;
  char call;
  Conduct conduct;
  size_t period = 0;
};

void PrintTo(const CallCase& c, std::ostream* out) { *out << c.name; }

// An epoch: ten steps, then an evaluation.
const std::string kEpoch = Times(10, "abc") + "e";

const CallCase kCallCases[] = {
    {"no_past", "", 'a', Conduct::kUnknown},
    {"the_call_of_the_step", Times(20, "abc"), 'a', Conduct::kKept, 3},
    {"a_call_that_is_in_no_step", Times(20, "abc"), 'x', Conduct::kBroken, 3},
    {"a_step_lacks_a_call", Times(20, "abc") + "a", 'c', Conduct::kBroken, 3},
    {"few_steps", Times(5, "abc"), 'x', Conduct::kUnknown},
    {"three_long_steps", Times(3, "abcdefghijkl"), 'x', Conduct::kBroken, 12},
    {"warm_up", "wwvw" + Times(3, "aab") + Times(20, "abc"), 'x', Conduct::kBroken, 3},
    {"a_step_of_one_call", Times(50, "a"), 'x', Conduct::kBroken, 1},
    {"layers_within_the_first_step", Times(32, "g"), 'r', Conduct::kUnknown},
    {"layers_within_a_later_step", Times(4, Times(64, "g") + "r") + Times(63, "g"), 'r',
     Conduct::kBroken, 65},
    {"accumulation", Times(12, "ggggs"), 'g', Conduct::kKept, 5},
    {"accumulation_ends_early", Times(12, "ggggs") + "gg", 's', Conduct::kBroken, 5},
    {"the_evaluation_comes_in_its_turn", Times(5, kEpoch) + Times(10, "abc"), 'e', Conduct::kKept,
     31},
    {"the_evaluation_does_not_come", Times(5, kEpoch) + Times(10, "abc"), 'a', Conduct::kBroken,
     31},
    {"the_evaluation_comes_early", Times(5, kEpoch) + Times(9, "abc"), 'e', Conduct::kBroken, 31},
    {"evaluations_at_any_time", Times(20, "abc") + "e" + Times(31, "abc") + "e" + Times(17, "abc"),
     'e', Conduct::kUnknown, 3},
    {"a_step_after_evaluations_at_any_time",
     Times(20, "abc") + "e" + Times(31, "abc") + "e" + Times(17, "abc"), 'a', Conduct::kKept, 3},
    {"no_step_repeats", "abcacbbacbcaabcbacbabcabbcacbabcacbabacbcabcbabacbabcacb", 'x',
     Conduct::kUnknown},
};

class JudgeCallTest : public testing::TestWithParam<CallCase> {};

TEST_P(JudgeCallTest, JudgesTheCallByTheCallsBefore) {
  const CallCase& c = GetParam();
  const Judged judged = JudgeCall(Tokens(c.past + c.call), c.past.size());
  EXPECT_EQ(judged.conduct, c.conduct);
  EXPECT_EQ(judged.habit.period, c.period);
}

INSTANTIATE_TEST_SUITE_P(All, JudgeCallTest, testing::ValuesIn(kCallCases),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(JudgeCallTest, TheHabitCountsTheCallsThatKeepIt) {
  const std::string past = "wv" + Times(20, "abc");
  const Judged judged = JudgeCall(Tokens(past + "a"), past.size());
  EXPECT_EQ(judged.habit.kept, 60u);
  EXPECT_EQ(judged.habit.steps(), 20u);
}

struct SlipCase {
  const char* name;
  std::string calls;
  Slip::Kind kind;
  std::string slipped;
};

void PrintTo(const SlipCase& c, std::ostream* out) { *out << c.name; }

// s and r: a send and a receive, which concern the caller.
const SlipCase kSlipCases[] = {
    {"none", Times(20, "sra"), Slip::Kind::kNone, ""},
    {"too_short", Times(3, "sra"), Slip::Kind::kUnknown, ""},
    {"a_receive_is_skipped", Times(20, "sra") + "sa", Slip::Kind::kSkipped, "r"},
    {"both_are_skipped", Times(20, "sra") + "a", Slip::Kind::kSkipped, "sr"},
    {"a_receive_is_skipped_and_the_rank_goes_on", Times(20, "srabc") + "sabcsra",
     Slip::Kind::kSkipped, "r"},
    {"an_extra_send_at_the_end", Times(20, "sra") + "srs", Slip::Kind::kExtra, "s"},
    {"an_extra_send_and_the_rank_goes_on", Times(20, "sra") + "srsa", Slip::Kind::kExtra, "s"},
    {"an_extra_send_in_a_short_step", Times(24, "sa") + "ssa", Slip::Kind::kExtra, "s"},
    {"an_evaluation_and_then_a_receive_is_skipped", Times(20, "srab") + "esrabsab",
     Slip::Kind::kSkipped, "r"},
    {"an_evaluation_is_no_slip", Times(20, "srab") + "esrabsr", Slip::Kind::kNone, ""},
    {"another_call_is_skipped", Times(20, "srab") + "srb", Slip::Kind::kUnknown, ""},
    {"the_end_of_the_loop", Times(20, "srab") + "xyzw", Slip::Kind::kUnknown, ""},
};

class FindSlipTest : public testing::TestWithParam<SlipCase> {};

TEST_P(FindSlipTest, FindsTheFirstSlipThatConcernsTheCaller) {
  const std::string& calls = GetParam().calls;
  const Slip slip =
      FindSlip(Tokens(calls), 16, [&](size_t i) { return calls[i] == 's' || calls[i] == 'r'; });
  std::string slipped;
  for (const size_t i : slip.calls) slipped += calls[i];
  EXPECT_EQ(slip.kind, GetParam().kind);
  EXPECT_EQ(slipped, GetParam().slipped);
}

INSTANTIATE_TEST_SUITE_P(All, FindSlipTest, testing::ValuesIn(kSlipCases),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace rollcall
