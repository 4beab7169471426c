// SPDX-License-Identifier: Apache-2.0
#include "base/user_names.h"

#include <gtest/gtest.h>

namespace rollcall {
namespace {

TEST(UserNamesTest, ANumberHasTheNameOfItsUser) {
  EXPECT_EQ(UserName(0), "root");
  EXPECT_EQ(UserInWords(0), "root");
}

TEST(UserNamesTest, ANumberWithoutAUserIsANumber) {
  constexpr uint32_t kNobodyHasIt = 4'123'456'789;
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(UserName(kNobodyHasIt), "");
    EXPECT_EQ(UserInWords(kNobodyHasIt), "uid 4123456789");
  }
}

}  // namespace
}  // namespace rollcall
