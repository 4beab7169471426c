// SPDX-License-Identifier: Apache-2.0
#include "base/json/strict_json.h"

#include <gtest/gtest.h>

namespace rollcall {
namespace {

TEST(StrictJsonTest, AnObjectIsRead) {
  const auto object = ParseStrictObject(R"({"a": {"b": "c"}, "b": [1, 2.5, null, true]})");
  ASSERT_TRUE(object.ok()) << object.status();
  EXPECT_EQ((*object)["a"]["b"], "c");
  EXPECT_EQ(TextMember((*object)["a"], "b"), "c");
  EXPECT_EQ(TextMember(*object, "a"), "");
  EXPECT_EQ(TextMember(*object, "none"), "");
}

TEST(StrictJsonTest, WhatCanBeUnderstoodTwoWaysIsRefused) {
  for (const std::string& bad :
       {std::string(R"({"sub": "a", "sub": "b"})"), std::string(R"({"a": {"b": 1, "b": 1}})"),
        std::string(R"({"s\u0075b": "a", "sub": "b"})"), std::string(R"({"a": "b\u0000c"})"),
        std::string(R"({"a\n": 1})"), std::string("{\"a\": \"\0\"}", 10), std::string("{}{}"),
        std::string("{"), std::string(), std::string("[]"), std::string("\"a\""),
        std::string("{\"a\": \"\xff\"}"), std::string("{\"a\": NaN}"), std::string("{/* no */}"),
        std::string(300'000, '['), std::string(R"({"a":1e999})")}) {
    EXPECT_FALSE(ParseStrictObject(bad).ok()) << bad.substr(0, 40);
  }
}

TEST(StrictJsonTest, EightLevelsAreReadAndNineAreNot) {
  EXPECT_TRUE(ParseStrictObject(R"({"a":[[[[[[[]]]]]]]})").ok());
  EXPECT_FALSE(ParseStrictObject(R"({"a":[[[[[[[[]]]]]]]]})").ok());
}

}  // namespace
}  // namespace rollcall
