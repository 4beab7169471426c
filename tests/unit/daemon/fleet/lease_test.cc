// SPDX-License-Identifier: Apache-2.0
#include "daemon/fleet/lease.h"

#include <gtest/gtest.h>

#include "base/durations.h"

namespace rollcall {
namespace {

Lease OfSixSeconds() { return Lease(6 * kSecond, kSecond); }

TEST(LeaseTest, NoDaemonHasItBeforeTheFirstRenewal) {
  EXPECT_FALSE(OfSixSeconds().IsHeld(0));
  EXPECT_EQ(OfSixSeconds().HeldUntil(), 0);
}

TEST(LeaseTest, CountsFromBeforeTheRequestAndLessTheMargin) {
  Lease lease = OfSixSeconds();
  lease.Renewed(100 * kSecond);
  EXPECT_TRUE(lease.IsHeld(105 * kSecond - 1));
  EXPECT_FALSE(lease.IsHeld(105 * kSecond));
  EXPECT_EQ(lease.HeldUntil(), 105 * kSecond);
}

TEST(LeaseTest, ARenewalThatWasSentEarlierDoesNotShortenIt) {
  Lease lease = OfSixSeconds();
  lease.Renewed(102 * kSecond);
  lease.Renewed(100 * kSecond);
  EXPECT_EQ(lease.HeldUntil(), 107 * kSecond);
}

TEST(LeaseTest, WhoGivesItUpHasItAgainAfterARenewalOnly) {
  Lease lease = OfSixSeconds();
  lease.Renewed(100 * kSecond);
  lease.Ended();
  EXPECT_FALSE(lease.IsHeld(101 * kSecond));
  lease.Renewed(99 * kSecond);
  EXPECT_TRUE(lease.IsHeld(101 * kSecond));
}

TEST(LeaseTest, ARenewalWhoseAnswerCameTooLateIsWorthNothing) {
  Lease lease = OfSixSeconds();
  lease.Renewed(100 * kSecond);
  EXPECT_FALSE(lease.IsHeld(108 * kSecond));
}

TEST(LeaseTest, AMarginAsLongAsTheLeaseNeverHolds) {
  Lease lease(kSecond, kSecond);
  lease.Renewed(100 * kSecond);
  EXPECT_FALSE(lease.IsHeld(100 * kSecond));
}

}  // namespace
}  // namespace rollcall
