// SPDX-License-Identifier: Apache-2.0
#include "daemon/model/waits/wait_frames.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <utility>

namespace rollcall {
namespace {

TEST(WaitFramesTest, EachFunctionHasOneRow) {
  std::set<std::pair<std::string, std::string>> known;
#define WAIT_FRAME(kinds, where, name) \
  EXPECT_TRUE(known.emplace(where, name).second) << (where) << " " << (name);
#include "daemon/model/waits/wait_frames.def"
}

TEST(WaitFramesTest, EachKindHasRows) {
  for (waits::Kinds kind = waits::kServerLoop; kind <= waits::kSocketInKernel; kind <<= 1) {
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
