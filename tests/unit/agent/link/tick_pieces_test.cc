// SPDX-License-Identifier: Apache-2.0
// The messages of a tick.
#include "agent/link/tick_pieces.h"

#include <gtest/gtest.h>

#include <string>

#include "agent/link/short_columns.h"

namespace rollcall {
namespace {

constexpr size_t kMostBytes = 10'000;

v1::Tick MakeTick(int processes, int communicators, size_t name_bytes) {
  v1::Tick tick;
  tick.set_now_ns(77);
  tick.set_whole(true);
  tick.set_dropped_ticks(5);
  for (int i = 0; i < processes; ++i) {
    v1::ProcessUpdate* process = tick.add_processes();
    process->set_pid(100 + i);
    process->set_start_time(9);
    process->mutable_identity()->set_job("job");
    process->mutable_evidence()->set_liveness(v1::Evidence::ALIVE);
    for (int k = 0; k < communicators; ++k) {
      v1::CommUpdate* comm = process->add_communicators();
      comm->set_index(static_cast<uint32_t>(k));
      comm->set_name(std::string(name_bytes, 'n'));
    }
  }
  return tick;
}

void CheckLastMarks(const std::vector<v1::Tick>& pieces) {
  for (size_t i = 0; i < pieces.size(); ++i) {
    const bool is_last = i + 1 == pieces.size();
    EXPECT_EQ(pieces[i].now_ns(), 77);
    EXPECT_EQ(pieces[i].whole(), is_last);
    EXPECT_EQ(pieces[i].dropped_ticks(), is_last ? 5u : 0u);
  }
}

TEST(TickPiecesTest, ASmallTickStaysOneMessage) {
  const v1::Tick tick = MakeTick(3, 2, 100);
  EXPECT_TRUE(IsOnePiece(tick, kMostBytes));
  const std::vector<v1::Tick> pieces = SplitTick(tick, kMostBytes);
  ASSERT_EQ(pieces.size(), 1u);
  EXPECT_EQ(pieces[0].SerializeAsString(), tick.SerializeAsString());
}

TEST(TickPiecesTest, AnEmptyTickIsOneMessage) {
  const std::vector<v1::Tick> pieces = SplitTick(MakeTick(0, 0, 0), kMostBytes);
  ASSERT_EQ(pieces.size(), 1u);
  CheckLastMarks(pieces);
}

TEST(TickPiecesTest, SplitsBetweenProcesses) {
  EXPECT_FALSE(IsOnePiece(MakeTick(10, 1, 4000), kMostBytes));
  const std::vector<v1::Tick> pieces = SplitTick(MakeTick(10, 1, 4000), kMostBytes);
  EXPECT_GE(pieces.size(), 5u);
  CheckLastMarks(pieces);
  int32_t pid = 100;
  for (const v1::Tick& piece : pieces) {
    EXPECT_LE(piece.ByteSizeLong(), kMostBytes);
    for (const v1::ProcessUpdate& process : piece.processes()) EXPECT_EQ(process.pid(), pid++);
  }
  EXPECT_EQ(pid, 110);
}

TEST(TickPiecesTest, SplitsALargeProcessBetweenItsCommunicators) {
  const std::vector<v1::Tick> pieces = SplitTick(MakeTick(1, 50, 4000), kMostBytes);
  EXPECT_GT(pieces.size(), 20u);
  CheckLastMarks(pieces);
  uint32_t index = 0;
  bool is_first = true;
  for (const v1::Tick& piece : pieces) {
    EXPECT_LE(piece.ByteSizeLong(), kMostBytes);
    for (const v1::ProcessUpdate& process : piece.processes()) {
      EXPECT_EQ(process.pid(), 100);
      EXPECT_EQ(process.start_time(), 9u);
      EXPECT_EQ(process.has_identity(), is_first);
      EXPECT_EQ(process.has_evidence(), is_first);
      is_first = false;
      for (const v1::CommUpdate& comm : process.communicators()) EXPECT_EQ(comm.index(), index++);
    }
  }
  EXPECT_EQ(index, 50u);
}

TEST(TickPiecesTest, CountsTheRowsOfRecordsWithShortColumns) {
  v1::Tick tick = MakeTick(1, 20, 10);
  for (v1::CommUpdate& comm : *tick.mutable_processes(0)->mutable_communicators()) {
    v1::RecordBatch* records = comm.mutable_records();
    for (int row = 0; row < 500; ++row) {
      records->add_position(static_cast<uint64_t>(row) << 20);
      records->add_op(7);
      records->add_entered_delta_ns(1'000'000'000);
      records->add_duration_ns(-1);
    }
  }
  ShortenColumns(&tick);
  ASSERT_EQ(tick.processes(0).communicators(0).records().op_size(), 1);
  EXPECT_FALSE(IsOnePiece(tick, kMostBytes));
  const std::vector<v1::Tick> pieces = SplitTick(tick, kMostBytes);
  EXPECT_GE(pieces.size(), 20u);
  for (const v1::Tick& piece : pieces) EXPECT_LE(piece.ByteSizeLong(), kMostBytes);
  CheckLastMarks(pieces);
}

}  // namespace
}  // namespace rollcall
