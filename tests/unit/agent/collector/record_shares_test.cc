// SPDX-License-Identifier: Apache-2.0
#include "agent/collector/record_shares.h"

#include <gtest/gtest.h>

namespace rollcall {
namespace {

constexpr int64_t kAda = 1000, kBob = 1001;

SegmentSnapshot WithRecords(size_t communicators, size_t records_of_each) {
  SegmentSnapshot snapshot;
  snapshot.communicators.resize(communicators);
  for (CommSnapshot& comm : snapshot.communicators) comm.records.resize(records_of_each);
  return snapshot;
}

TEST(RecordSharesTest, GivesEachUserTheSamePartHoweverManyProcessesItHas) {
  RecordShares shares(400, {{kAda, 1}, {kBob, 4}});
  EXPECT_EQ(shares.TakeFor(kAda, WithRecords(1, 500)), 200u);
  for (int i = 0; i < 4; ++i) EXPECT_EQ(shares.TakeFor(kBob, WithRecords(1, 500)), 50u);
}

TEST(RecordSharesTest, GivesTheOtherProcessesOfAUserWhatOneLeaves) {
  RecordShares shares(100, {{kAda, 2}});
  EXPECT_EQ(shares.TakeFor(kAda, WithRecords(1, 10)), 50u);
  EXPECT_EQ(shares.TakeFor(kAda, WithRecords(2, 500)), 45u);
}

TEST(RecordSharesTest, LeavesEachCommunicatorTheNewestRecords) {
  RecordShares shares(8, {{kAda, 1}});
  EXPECT_EQ(shares.TakeFor(kAda, WithRecords(100, 500)), 4u);
}

}  // namespace
}  // namespace rollcall
