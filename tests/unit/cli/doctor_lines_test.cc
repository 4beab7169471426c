// SPDX-License-Identifier: Apache-2.0
#include "cli/doctor_lines.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace rollcall {
namespace {

using doctor::Finding;
using doctor::State;

Finding Of(State state) {
  Finding finding;
  finding.id = "a-check";
  finding.judgement = {state, "what is there", ""};
  return finding;
}

std::string FirstLine(const std::vector<State>& states) {
  std::vector<Finding> findings;
  for (const State state : states) findings.push_back(Of(state));
  return DoctorLines(findings).front().text;
}

TEST(DoctorLinesTest, BeginWithTheOutcome) {
  EXPECT_EQ(FirstLine({State::kOk, State::kOk, State::kNotApplicable}),
            "Rollcall can work here: 2 checks passed and 1 did not apply.");
  EXPECT_EQ(FirstLine({State::kOk, State::kWarning}),
            "Rollcall can work here, with 1 warning; 1 check passed.");
  EXPECT_EQ(FirstLine({State::kProblem, State::kWarning, State::kWarning, State::kOk}),
            "Rollcall has found 1 problem and 2 warnings; 1 check passed.");
}

TEST(DoctorLinesTest, ShowAProblemInTheFirstLinesColour) {
  EXPECT_EQ(DoctorLines({Of(State::kProblem)}).front().style, LineStyle::kBad);
  EXPECT_EQ(DoctorLines({Of(State::kWarning)}).front().style, LineStyle::kTitle);
}

}  // namespace
}  // namespace rollcall
