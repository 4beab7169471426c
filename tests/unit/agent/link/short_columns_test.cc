// SPDX-License-Identifier: Apache-2.0
#include "agent/link/short_columns.h"

#include <gtest/gtest.h>

namespace rollcall {
namespace {

v1::RecordBatch Shortened(const v1::RecordBatch& batch) {
  v1::Tick tick;
  *tick.add_processes()->add_communicators()->mutable_records() = batch;
  ShortenColumns(&tick);
  return tick.processes(0).communicators(0).records();
}

TEST(ShortColumnsTest, KeepsOneOfEqualValues) {
  v1::RecordBatch batch;
  for (int i = 0; i < 3; ++i) {
    batch.add_op(7);
    batch.add_peer(-1);
    batch.add_caller(0);
    batch.add_count(i == 2 ? 64 : 32);
  }
  const v1::RecordBatch shortened = Shortened(batch);
  ASSERT_EQ(shortened.op_size(), 1);
  EXPECT_EQ(shortened.op(0), 7u);
  ASSERT_EQ(shortened.peer_size(), 1);
  EXPECT_EQ(shortened.peer(0), -1);
  EXPECT_EQ(shortened.caller_size(), 1);
  ASSERT_EQ(shortened.count_size(), 3);
  EXPECT_EQ(shortened.count(2), 64u);
}

// The daemon counts rows by these columns.
TEST(ShortColumnsTest, KeepsAllPositionsAndTimes) {
  v1::RecordBatch batch;
  for (int i = 0; i < 3; ++i) {
    batch.add_position(5);
    batch.add_entered_delta_ns(100);
    batch.add_duration_ns(-1);
    batch.add_site(2);
    batch.add_shape("[2]");
  }
  const v1::RecordBatch shortened = Shortened(batch);
  EXPECT_EQ(shortened.SerializeAsString(), batch.SerializeAsString());
}

}  // namespace
}  // namespace rollcall
