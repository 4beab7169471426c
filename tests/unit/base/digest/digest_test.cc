// SPDX-License-Identifier: Apache-2.0
#include "base/digest/digest.h"

#include <gtest/gtest.h>

namespace rollcall {
namespace {

TEST(DigestTest, Sha256IsThatOfTheStandard) {
  EXPECT_EQ(Sha256Hex("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

TEST(DigestTest, Base64UrlHasOneTextForEachSequenceOfBytes) {
  EXPECT_EQ(ToBase64Url("\xfb\xff"), "-_8");
  EXPECT_EQ(FromBase64Url("-_8"), "\xfb\xff");
  EXPECT_EQ(FromBase64Url(""), "");
  for (const char* bad : {"-_9", "-_8=", "+/8", "-_ 8", "-_8\n", "A", "-_8.", "\xff"}) {
    EXPECT_EQ(FromBase64Url(bad), std::nullopt) << bad;
  }
}

TEST(DigestTest, TextsOfOtherLengthDiffer) {
  EXPECT_TRUE(EqualInConstantTime("abc", "abc"));
  EXPECT_FALSE(EqualInConstantTime("abc", "abd"));
  EXPECT_FALSE(EqualInConstantTime("abc", "ab"));
  EXPECT_FALSE(EqualInConstantTime("", "a"));
}

TEST(DigestTest, RandomBytesDiffer) {
  const auto first = RandomBytes(32);
  ASSERT_TRUE(first.has_value());
  EXPECT_EQ(first->size(), 32u);
  EXPECT_NE(first, RandomBytes(32));
}

}  // namespace
}  // namespace rollcall
