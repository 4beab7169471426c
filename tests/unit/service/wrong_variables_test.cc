// SPDX-License-Identifier: Apache-2.0
#include "service/wrong_variables.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <CLI/CLI.hpp>

namespace rollcall {
namespace {

// The variable is set after the parsing, so that each CLI11 has ignored it.
class WrongVariablesTest : public testing::Test {
 protected:
  WrongVariablesTest() {
    app_.add_option("--jobs", jobs_, "a limit")->envname("TEST_JOBS")->check(CLI::Range(1, 100));
    app_.parse("", false);
  }
  ~WrongVariablesTest() override { unsetenv("TEST_JOBS"); }

  CLI::App app_;
  int jobs_ = 7;
};

TEST_F(WrongVariablesTest, RefusesAValueThatTheParsingHasIgnored) {
  setenv("TEST_JOBS", "many", 1);
  EXPECT_THROW(RefuseWrongVariables(&app_), CLI::ParseError);
}

TEST_F(WrongVariablesTest, RefusesNothingWithoutAValue) {
  RefuseWrongVariables(&app_);
  setenv("TEST_JOBS", "", 1);
  RefuseWrongVariables(&app_);
  EXPECT_EQ(jobs_, 7);
}

TEST_F(WrongVariablesTest, LooksAtNoVariableOfAFlagThatWasGiven) {
  app_.parse("--jobs=8", false);
  setenv("TEST_JOBS", "many", 1);
  RefuseWrongVariables(&app_);
  EXPECT_EQ(jobs_, 8);
}

}  // namespace
}  // namespace rollcall
