// SPDX-License-Identifier: Apache-2.0
// The codes of operations that Rollcall does not know.
#include "cli/flight_recorder/operations.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "absl/strings/str_cat.h"

namespace rollcall {
namespace {

TEST(OperationTableTest, UnknownOperationsHaveCodesThatNoCallHas) {
  std::set<std::string> names;
  for (int i = 0; i < 40; ++i) names.insert(absl::StrCat("new_", i));
  const OperationTable table(names);
  std::set<Op> codes;
  for (const std::string& name : names) {
    EXPECT_EQ(OpName(table.FindOp(name)), nullptr) << name;
    codes.insert(table.FindOp(name));
  }
  EXPECT_EQ(codes.size(), 31u) << "those beyond the limit share one";
}

}  // namespace
}  // namespace rollcall
