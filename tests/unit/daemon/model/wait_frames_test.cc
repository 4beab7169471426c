// SPDX-License-Identifier: Apache-2.0
#include "daemon/model/waits/wait_frames.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "daemon/model/stand_kinds.h"
#include "interpose/ops.h"

namespace rollcall {
namespace {

// A thread of a program in `step`, which has called this.
StackPlace InCall(const char* function) {
  StackPlace place;
  place.at = "/x/train.py:30 in step";
  place.functions = absl::StrCat(" futex ", function, " train.step ");
  return place;
}

TEST(WaitFramesTest, EachFunctionHasOneRow) {
  std::set<std::pair<std::string, std::string>> known;
#define WAIT_FRAME(kinds, where, name) \
  EXPECT_TRUE(known.emplace(where, name).second) << (where) << " " << (name);
#include "daemon/model/waits/wait_frames.def"
}

// The library records these as waits of the host for its device.
TEST(WaitFramesTest, EachRecordedWaitForADeviceHasARow) {
  int waits = 0;
#define CALL(symbol, op, code, what)                               \
  if (CallKind::k##what == CallKind::kWait) {                      \
    ++waits;                                                       \
    const StackPlace place = InCall(#symbol);                      \
    EXPECT_EQ(StandsIn(place).kind, StandKind::kGpu) << (#symbol); \
  }
#include "interpose/calls.def"
#undef CALL
  EXPECT_GT(waits, 10);
}

TEST(WaitFramesTest, EachKindHasRows) {
  for (waits::Kinds kind = waits::kServerLoop; kind <= waits::kMessage; kind <<= 1) {
    EXPECT_FALSE(WaitFramesOf(static_cast<waits::Kind>(kind)).empty()) << kind;
  }
}

TEST(WaitFramesTest, ANameIsAWaitOfItsKindsOnly) {
  EXPECT_TRUE(IsWait("wait", waits::kPause));
  EXPECT_TRUE(IsWait("wait", waits::kThreadOfLibrary));
  EXPECT_FALSE(IsWait("wait", waits::kLoopInput));
  EXPECT_FALSE(IsWait("waits", waits::kPause));
}

TEST(WaitFramesTest, ATextHasAWaitAsAPart) {
  EXPECT_TRUE(HasWait("c10d::TCPStore::doWait(absl::Span)", waits::kStore));
  EXPECT_TRUE(HasWait("c10d::TCPStore::doWait(absl::Span)", waits::kOtherLibrary));
  EXPECT_FALSE(HasWait("c10d::HashStore::wait", waits::kOtherLibrary));
  EXPECT_FALSE(HasWait("", waits::kStore));
}

}  // namespace
}  // namespace rollcall
