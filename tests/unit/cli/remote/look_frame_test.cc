// SPDX-License-Identifier: Apache-2.0
#include "cli/remote/look_frame.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "proto/look_limits.h"

namespace rollcall {
namespace {

constexpr uint64_t kMemory = 1 << 28;

v1::HostLook Look(int processes) {
  v1::HostLook look;
  look.set_host("node-1");
  for (int i = 0; i < processes; ++i) look.add_processes()->mutable_process()->set_pid(i + 1);
  return look;
}

absl::StatusOr<v1::HostLook> Parse(const v1::HostLook& look) {
  ByteBudget budget(kMemory);
  return ParseLook(look.SerializeAsString(), &budget);
}

TEST(LookFrameTest, Tokens) {
  EXPECT_TRUE(IsLookToken("0123456789abcdef"));
  for (const char* text : {"", "x", "ab cd", "--a"}) EXPECT_FALSE(IsLookToken(text)) << text;
  EXPECT_FALSE(IsLookToken(std::string(65, 'a')));
}

TEST(LookFrameTest, ALookArrivesAsItWas) {
  const v1::HostLook look = Look(3);
  const std::string bytes = look.SerializeAsString();
  EXPECT_EQ(FramedLook("ab", look), absl::StrCat("rollcall-look ab ", bytes.size(), "\n", bytes));
  EXPECT_EQ(Parse(look)->SerializeAsString(), bytes);
}

TEST(LookFrameTest, ALargeLookComesWithoutItsStacks) {
  v1::HostLook look = Look(1);
  look.mutable_processes(0)->add_samples()->mutable_stack()->set_error(
      std::string(kMostLookBytes, 'x'));
  const std::string framed = FramedLook("ab", look);
  EXPECT_LT(framed.size(), 1000u);
  ByteBudget budget(kMemory);
  const auto parsed = ParseLook(framed.substr(framed.find('\n') + 1), &budget);
  ASSERT_TRUE(parsed.ok());
  EXPECT_EQ(parsed->processes_size(), 1);
  EXPECT_THAT(parsed->unseen(), testing::ElementsAre(testing::HasSubstr("left out")));
}

TEST(LookFrameTest, WhatAStrangerSendsIsCutAndCleaned) {
  v1::HostLook look = Look(5000);
  look.set_host("node\x1b[2J");
  for (int i = 0; i < 100; ++i) look.add_unseen("no\nnews");
  for (int i = 0; i < 50; ++i) look.mutable_processes(0)->add_samples();
  const auto parsed = Parse(look);
  ASSERT_TRUE(parsed.ok());
  EXPECT_EQ(parsed->host(), "node?[2J");
  EXPECT_EQ(parsed->processes_size(), 4096);
  EXPECT_EQ(parsed->processes(0).samples_size(), 8);
  EXPECT_EQ(parsed->unseen_size(), 64);
  EXPECT_EQ(parsed->unseen(0), "no news");
}

TEST(LookFrameTest, RubbishAndWhatIsTooLargeAreErrors) {
  ByteBudget budget(1 << 20);
  EXPECT_FALSE(ParseLook("\xff\xff\xff", &budget).ok());
  // Empty messages: two bytes on the wire, hundreds in memory.
  std::string bomb;
  for (int i = 0; i < 100'000; ++i) bomb += std::string("\x32\x00", 2);
  EXPECT_EQ(ParseLook(bomb, &budget).status().message(), "what it sent is too large");
  EXPECT_TRUE(ParseLook("", &budget).ok());
}

}  // namespace
}  // namespace rollcall
