// SPDX-License-Identifier: Apache-2.0
// Finds the owner of a segment from data.
#include "agent/segments/segment_owner.h"

#include <gtest/gtest.h>

namespace rollcall {
namespace {

constexpr uint64_t kHost = 100, kPod = 200, kOtherPod = 300;

SegmentClaim Claim(uint64_t pid_namespace, bool life_lock, HeldLock lock) {
  return {/*pid=*/7, /*start_time=*/50, pid_namespace, /*of_this_boot=*/true, life_lock,
          lock};
}

struct Case {
  const char* name;
  SegmentClaim claim;
  bool mappers_known;
  std::vector<SegmentMapper> mappers;
  PidLookup pid_lookup;
  SegmentOwner::Kind kind;
  ProcessId process;
};

class SegmentOwnerTest : public testing::TestWithParam<Case> {};

TEST_P(SegmentOwnerTest, IsFound) {
  const Case& c = GetParam();
  const SegmentOwner owner =
      FindOwner(c.claim, c.mappers_known ? &c.mappers : nullptr, c.pid_lookup, kHost);
  EXPECT_EQ(owner.kind, c.kind);
  if (c.kind == SegmentOwner::kLater) return;
  EXPECT_EQ(owner.process, c.process);
}

const SegmentMapper kMaker = {{4121, 50}, 7, kPod};
const SegmentMapper kForkedChild = {{4150, 60}, 30, kPod};
const SegmentMapper kChildInAPodOfItsOwn = {{4151, 61}, 7, kOtherPod};
const PidLookup kGone = {true, 0}, kHidden = {false, 0}, kSame = {false, 50}, kOther = {false, 9};
const ProcessId kNamed = {7, 50};

// clang-format off
INSTANTIATE_TEST_SUITE_P(
    Rows, SegmentOwnerTest,
    testing::Values(
        Case{"SameNamespaceIsTheProcessOfThatNumber", Claim(kHost, true, HeldLock::kHeld), false,
             {}, kSame, SegmentOwner::kVisible, kNamed},
        Case{"AnotherNamespaceIsNotTheProcessOfThatNumber", Claim(kPod, true, HeldLock::kHeld),
             false, {}, kSame, SegmentOwner::kLater, {}},
        Case{"AnotherNamespaceIsWhoHasMappedIt", Claim(kPod, true, HeldLock::kHeld), true,
             {kForkedChild, kMaker}, kOther, SegmentOwner::kVisible, {4121, 50}},
        Case{"AChildWithTheSameNumberElsewhereIsNotTheMaker", Claim(kPod, true, HeldLock::kHeld),
             true, {kChildInAPodOfItsOwn, kMaker}, kGone, SegmentOwner::kVisible, {4121, 50}},
        Case{"AnOlderLibraryNeedsAMappingEvenWhereNumberAndTimeAgree",
             Claim(0, false, HeldLock::kFree), true, {}, kSame, SegmentOwner::kUnseen, kNamed},
        Case{"AnOlderLibraryWithAMappingIsFound", Claim(0, false, HeldLock::kFree), true,
             {{{7, 50}, 7, kHost}}, kSame, SegmentOwner::kVisible, kNamed},
        Case{"ATimeNamespaceShiftsTheStartTime", Claim(kHost, true, HeldLock::kHeld), true,
             {{{7, 9}, 7, kHost}}, kOther, SegmentOwner::kVisible, {7, 9}},
        Case{"AForkedChildAloneIsNotTheMaker", Claim(kPod, true, HeldLock::kHeld), true,
             {kForkedChild}, kGone, SegmentOwner::kUnseen, kNamed},
        Case{"UnseenWithItsLockIsNotDead", Claim(kPod, true, HeldLock::kHeld), true, {}, kGone,
             SegmentOwner::kUnseen, kNamed},
        Case{"UnseenWithoutItsLockHasEnded", Claim(kPod, true, HeldLock::kFree), true, {}, kSame,
             SegmentOwner::kEnded, kNamed},
        Case{"UnseenThatNeverHadALockIsUnknown", Claim(kPod, false, HeldLock::kFree), true, {},
             kGone, SegmentOwner::kUnseen, kNamed},
        Case{"WhereLocksAreNotKnownNobodyKnows", Claim(kPod, true, HeldLock::kUnknown), true, {},
             kGone, SegmentOwner::kUnseen, kNamed},
        Case{"SameNamespaceAndGoneHasEnded", Claim(kHost, false, HeldLock::kFree), true, {}, kGone,
             SegmentOwner::kEnded, kNamed},
        Case{"SameNamespaceAndGoneWithItsLockMayLive", Claim(kHost, true, HeldLock::kHeld), true,
             {}, kGone, SegmentOwner::kUnseen, kNamed},
        Case{"AProcThatHidesOthersProvesNothing", Claim(kHost, false, HeldLock::kFree), true, {},
             kHidden, SegmentOwner::kUnseen, kNamed},
        Case{"AReusedNumberWithoutTheLockHasEnded", Claim(kHost, true, HeldLock::kFree), true, {},
             kOther, SegmentOwner::kEnded, kNamed}),
    [](const auto& info) { return std::string(info.param.name); });
// clang-format on

}  // namespace
}  // namespace rollcall
