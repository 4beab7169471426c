// SPDX-License-Identifier: Apache-2.0
#include "cli/remote/look_stream.h"

#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "cli/remote/look_frame.h"
#include "cli/remote/remote_script.h"

namespace rollcall {
namespace {

using State = LookStream::State;

constexpr uint64_t kRoom = 1 << 20;

TEST(LookStreamTest, ALookAfterTheGreetingOfALoginIsFoundInAnyPieces) {
  ByteBudget budget(kRoom);
  const std::string text = "Welcome!\nrollcall-look ffff 3\nrollcall-look ab 5\nhel\nothers";
  for (size_t piece = 1; piece <= text.size(); ++piece) {
    LookStream stream("ab", &budget);
    for (size_t at = 0; at < text.size(); at += piece) stream.Add(text.substr(at, piece));
    EXPECT_EQ(stream.state(), State::kDone) << piece;
    EXPECT_EQ(stream.look(), "hel\no") << piece;
  }
}

TEST(LookStreamTest, TheProgramIsAskedForBeforeTheLook) {
  ByteBudget budget(kRoom);
  LookStream stream("ab", &budget);
  EXPECT_EQ(stream.Add("motd"), State::kWaits);
  EXPECT_EQ(stream.Add("\n" + NeedsProgramLine("cd") + "\n"), State::kWaits);
  EXPECT_EQ(stream.Add(NeedsProgramLine("ab") + "\r\n"), State::kNeedsProgram);
  EXPECT_EQ(stream.Add(LookHead("ab") + "2\nok"), State::kDone);
  EXPECT_EQ(stream.look(), "ok");
}

TEST(LookStreamTest, SizesThatAreNotAllowedFail) {
  ByteBudget budget(kRoom);
  for (const char* size : {"-1", "0", "x", "", "99999999999999999999", "16777217"}) {
    LookStream stream("ab", &budget);
    EXPECT_EQ(stream.Add(LookHead("ab") + size + "\n"), State::kFailed) << size;
  }
  LookStream largest("ab", &budget);
  EXPECT_EQ(largest.Add(LookHead("ab") + "16777216\n"), State::kWaits);
}

TEST(LookStreamTest, RubbishWithoutEndFails) {
  ByteBudget budget(kRoom);
  LookStream stream("ab", &budget);
  size_t sent = 0;
  while (stream.Add(std::string(1000, '\0')) == State::kWaits) sent += 1000;
  EXPECT_EQ(stream.state(), State::kFailed);
  EXPECT_LE(sent, LookStream::kMostGreeting);
  LookStream lines("ab", &budget);
  while (lines.Add("y\n") == State::kWaits) {
  }
  EXPECT_EQ(lines.state(), State::kFailed);
}

// The first two arrive at one time.
TEST(LookStreamTest, LooksThatArriveShareOneBudget) {
  ByteBudget budget(10);
  {
    LookStream one("ab", &budget), two("ab", &budget);
    EXPECT_EQ(one.Add(LookHead("ab") + "8\nhello"), State::kWaits);
    EXPECT_EQ(two.Add(LookHead("ab") + "8\nhello"), State::kWaits);
    EXPECT_EQ(one.Add("you"), State::kFailed);
    EXPECT_EQ(one.error(), "what it sent is too large");
  }
  LookStream three("ab", &budget);
  EXPECT_EQ(three.Add(LookHead("ab") + "8\nhello, y"), State::kDone);
}

}  // namespace
}  // namespace rollcall
