// SPDX-License-Identifier: Apache-2.0
#include "service/suggest.h"

#include <gtest/gtest.h>

namespace rollcall {
namespace {

const std::vector<std::string> kWords = {"run", "status", "stacks", "--hang-after"};

TEST(SuggestTest, FindsWordsWithWrongMissingAddedAndSwappedLetters) {
  EXPECT_EQ(Nearest("statis", kWords), "status");
  EXPECT_EQ(Nearest("stats", kWords), "status");
  EXPECT_EQ(Nearest("sttaus", kWords), "status");
  EXPECT_EQ(Nearest("runn", kWords), "run");
  EXPECT_EQ(Nearest("--hang-aftr", kWords), "--hang-after");
}

TEST(SuggestTest, SaysNothingWhereNoWordIsNear) {
  EXPECT_EQ(Nearest("frobnicate", kWords), "");
  EXPECT_EQ(Nearest("", kWords), "");
  EXPECT_EQ(Nearest("xy", kWords), "");
  EXPECT_EQ(Nearest(std::string(100000, 'a'), kWords), "");
}

}  // namespace
}  // namespace rollcall
