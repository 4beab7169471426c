// SPDX-License-Identifier: Apache-2.0
#include "daemon/incidents/alert_hold.h"

#include <gtest/gtest.h>

#include "base/durations.h"

namespace rollcall {
namespace {

AlertHold Awaiting() { return {10 * kSecond, /*owes_stacks=*/true, false, false, false}; }

TEST(AlertHoldTest, AnAlertWaitsForTheFirstStacksTwoSecondsAtMost) {
  EXPECT_TRUE(HoldsAlert(Awaiting(), 10 * kSecond));
  EXPECT_TRUE(HoldsAlert(Awaiting(), 12 * kSecond - 1));
  EXPECT_FALSE(HoldsAlert(Awaiting(), 12 * kSecond));
}

TEST(AlertHoldTest, ItWaitsUntilAVerdictRestsOnThem) {
  AlertHold hold = Awaiting();
  hold.owes_stacks = false;
  hold.has_unjudged = true;
  EXPECT_TRUE(HoldsAlert(hold, 10 * kSecond));
  hold.has_unjudged = false;
  EXPECT_FALSE(HoldsAlert(hold, 10 * kSecond));
}

TEST(AlertHoldTest, NothingIsHeldOnceTheHangIsOverOrTheDaemonStops) {
  AlertHold over = Awaiting(), stopping = Awaiting();
  over.is_over = true;
  stopping.is_stopping = true;
  EXPECT_FALSE(HoldsAlert(over, 10 * kSecond));
  EXPECT_FALSE(HoldsAlert(stopping, 10 * kSecond));
}

constexpr int64_t kEvery = 1800 * kSecond;

TEST(ReminderTest, IsDueAnIntervalAfterPeopleHeardOfTheHang) {
  const Reminder announced = {100 * kSecond, /*is_announced=*/true, false, false};
  EXPECT_FALSE(IsReminderDue(announced, 100 * kSecond + kEvery - 1, kEvery));
  EXPECT_TRUE(IsReminderDue(announced, 100 * kSecond + kEvery, kEvery));
  EXPECT_FALSE(IsReminderDue(announced, 100'000 * kSecond, 0)) << "nobody wants any";
}

TEST(ReminderTest, SendsNoReminderOfAnAcknowledgedHang) {
  for (const Reminder& known : {Reminder{0, false, false, false}, Reminder{0, true, true, false},
                                Reminder{0, true, false, true}}) {
    EXPECT_FALSE(IsReminderDue(known, 10 * kEvery, kEvery));
  }
}

}  // namespace
}  // namespace rollcall
