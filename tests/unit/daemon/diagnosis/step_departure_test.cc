// SPDX-License-Identifier: Apache-2.0
// The odd call of a rank, and the step that it repeats.
#include "daemon/diagnosis/step_departure.h"

#include <gtest/gtest.h>

#include <string>

namespace rollcall {
namespace {

struct Case {
  const char* name;
  const char* calls;  // a letter each, the odd one last
  char others;
  DivergenceKind kind;
  bool is_usual = true;
  bool is_earlier = false;
};

const Case kCases[] = {
    {"leaves_two_of_eight_out", "ABCDEFGHABCDEFGHABCDEFGHABE", 'C', DivergenceKind::kSkipped},
    {"begins_its_step_again", "ABCDEFABCDEFABCDEFABA", 'C', DivergenceKind::kExtra},
    {"repeats_a_call", "ABCDABCDABCDABB", 'C', DivergenceKind::kExtra},
    {"others_make_a_call_that_no_step_had", "ABABABABA", 'C', DivergenceKind::kSkipped},
    {"others_are_ahead_in_the_step", "ABCABCABCA", 'C', DivergenceKind::kReplaced},
    {"a_call_that_no_step_has", "ABCABCABCAX", 'B', DivergenceKind::kReplaced, false},
    {"as_far_ahead_as_behind", "ABABABB", 'A', DivergenceKind::kReplaced},
    {"two_steps_are_no_habit", "ABCDABCDAC", 'B', DivergenceKind::kReplaced, false},
    {"a_run_inside_a_step_is_no_step", "AAABBBBAAABBBBAAABBBBAAAA", 'B', DivergenceKind::kExtra},
    {"no_calls", "", 'A', DivergenceKind::kReplaced, false},
    {"a_pass_more_with_calls_like_those_behind", "ABBACABBACABBACABA", 'B', DivergenceKind::kExtra,
     true, true},
    {"a_pass_without_its_last_call", "ABCABCABCABA", 'C', DivergenceKind::kSkipped, true, true},
    {"half_a_pass", "ABABABABAA", 'B', DivergenceKind::kReplaced, true, true},
};

class StepDepartureTest : public testing::TestWithParam<Case> {};

TEST_P(StepDepartureTest, TheShorterWayIsGuessed) {
  const Case& c = GetParam();
  const std::string letters = c.calls;
  const StepDeparture found = DepartFromStep({letters.begin(), letters.end()},
                                             static_cast<CallToken>(c.others), c.is_earlier);
  EXPECT_EQ(found.kind, c.kind);
  EXPECT_EQ(found.is_usual, c.is_usual);
}

INSTANTIATE_TEST_SUITE_P(Cases, StepDepartureTest, testing::ValuesIn(kCases),
                         [](const auto& row) { return std::string(row.param.name); });

}  // namespace
}  // namespace rollcall
