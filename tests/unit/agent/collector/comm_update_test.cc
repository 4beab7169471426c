// SPDX-License-Identifier: Apache-2.0
#include "agent/collector/comm_update.h"

#include <gtest/gtest.h>

#include "interpose/ops.h"

namespace rollcall {
namespace {

constexpr int64_t kSecond = 1'000'000'000;
constexpr int64_t kNow = 1000 * kSecond;

// A communicator with calls entered one second apart, the last one at `kNow - 1 s`.
CommSnapshot Comm(uint64_t entered, uint64_t returned) {
  CommSnapshot comm;
  comm.state = segment::CommState::kReady;
  comm.flags = segment::kFlagRing;
  comm.id = 5;
  comm.rank = 0;
  comm.size = 2;
  comm.entered = entered;
  comm.returned = returned;
  for (uint64_t i = 0; i < entered; ++i) {
    RecordSnapshot record;
    record.index = record.position = i;
    record.op = static_cast<uint8_t>(Op::kAllReduce);
    record.entered_ns = kNow - static_cast<int64_t>(entered - i) * kSecond;
    record.returned_ns = i < returned ? record.entered_ns + 10 : 0;
    comm.records.push_back(record);
    comm.last_entered_ns = record.entered_ns;
  }
  return comm;
}

v1::CommUpdate Fill(const CommSnapshot& comm, const HostWaits& waits = {},
                    CommHistory* history = nullptr, int64_t now_ns = kNow) {
  CommHistory none;
  v1::CommUpdate update;
  FillProgress(comm, waits, now_ns, history == nullptr ? &none : history, &update);
  return update;
}

SegmentSnapshot Process(const CommSnapshot& comm, Op op, uint32_t block, int64_t since_ns) {
  SegmentSnapshot snapshot;
  snapshot.communicators = {comm};
  snapshot.blocked = {{77, static_cast<uint32_t>(op), block, since_ns}};
  return snapshot;
}

TEST(CommUpdateTest, WithoutMarkersReturnedCallsAreNotAWait) {
  const v1::CommUpdate update = Fill(Comm(3, 3));
  EXPECT_EQ(update.waiting_since_ns(), 0);
  EXPECT_EQ(update.host_blocked_since_ns(), 0);
}

TEST(CommUpdateTest, AHostInsideACallWaitsSinceItEnteredTheCall) {
  const CommSnapshot comm = Comm(3, 2);
  const SegmentSnapshot process = Process(comm, Op::kAllReduce, 0, kNow - kSecond);
  const HostWaits waits = FindHostWaits(process, process.communicators[0]);
  EXPECT_EQ(Fill(comm, waits).host_blocked_since_ns(), kNow - kSecond);
  EXPECT_EQ(Fill(comm, waits).waiting_since_ns(), kNow - kSecond);
}

TEST(CommUpdateTest, AnOpenGroupIsNotAWait) {
  CommSnapshot comm = Comm(3, 1);
  EXPECT_EQ(Fill(comm).waiting_since_ns(), 0);
  comm.flags |= segment::kFlagMarkers;
  comm.started = comm.finished = 1;
  EXPECT_EQ(Fill(comm).waiting_since_ns(), 0);
}

TEST(CommUpdateTest, MarkersShowTheFirstCallThatHasNotFinished) {
  CommSnapshot comm = Comm(5, 5);
  comm.flags |= segment::kFlagMarkers;
  comm.started = 3;
  comm.finished = 2;
  CommHistory history;
  history.finished = 2;  // as of the tick before: it has not changed
  EXPECT_EQ(Fill(comm, {}, &history).waiting_since_ns(), kNow - 3 * kSecond);
}

TEST(CommUpdateTest, TheWaitStartsWhenThePreviousCallFinished) {
  CommSnapshot comm = Comm(5, 5);
  comm.flags |= segment::kFlagMarkers;
  comm.started = 3;
  comm.finished = 2;
  CommHistory history;
  history.finished = 1;
  EXPECT_EQ(Fill(comm, {}, &history).waiting_since_ns(), kNow);
}

TEST(CommUpdateTest, AWaitForTheGpuIsOnTheNewestCommunicator) {
  CommSnapshot older = Comm(2, 2), newer = Comm(2, 2);
  older.last_entered_ns = kNow - 9 * kSecond;
  newer.index = 1;
  newer.id = 6;
  SegmentSnapshot process = Process(older, Op::kcudaStreamSynchronize, 0, kNow);
  process.communicators.push_back(newer);
  EXPECT_EQ(FindHostWaits(process, process.communicators[0]).host_waits_since_ns, 0);
  EXPECT_EQ(FindHostWaits(process, process.communicators[1]).host_waits_since_ns, kNow);
}

TEST(CommUpdateTest, APendingSplitHasTheRanksOfItsParent) {
  CommSnapshot comm = Comm(0, 0);
  comm.state = segment::CommState::kInitializing;
  comm.id = 10;
  comm.split_id = 11;
  comm.rank = -1;
  comm.size = 0;
  comm.parent_rank = 3;
  comm.parent_size = 8;
  v1::CommUpdate update = Fill(comm);
  EXPECT_EQ(update.id(), 11u);
  EXPECT_EQ(update.rank(), 3);
  EXPECT_EQ(update.size(), 8);
  comm.state = segment::CommState::kReady;
  comm.rank = 1;
  comm.size = 4;
  update = Fill(comm);
  EXPECT_EQ(update.id(), 10u);
  EXPECT_EQ(update.rank(), 1);
  EXPECT_FALSE(update.split_pending());
}

TEST(CommUpdateTest, CheckpointsAreSentOnce) {
  CommSnapshot comm = Comm(3, 3);
  comm.checkpoints = {{16, 1}, {32, 2}};
  CommHistory history;
  EXPECT_EQ(Fill(comm, {}, &history).checkpoint_positions_size(), 2);
  comm.checkpoints.emplace_back(48, 3);
  EXPECT_EQ(Fill(comm, {}, &history).checkpoint_positions_size(), 1);
}

TEST(CommUpdateTest, ABatchOfRecordsEndsAtAGap) {
  CommSnapshot comm = Comm(4, 4);
  comm.records.erase(comm.records.begin() + 2);
  v1::RecordBatch batch;
  FillRecords(comm, SIZE_MAX, &batch);
  EXPECT_EQ(batch.op_size(), 2);
}

TEST(CommUpdateTest, AThreadInsideASendIsNotInACollective) {
  CommSnapshot comm = Comm(3, 3);
  comm.p2p_entered = 1;
  const SegmentSnapshot process = Process(comm, Op::kRecv, 0, kNow - kSecond);
  const HostWaits waits = FindHostWaits(process, process.communicators[0]);
  EXPECT_EQ(waits.host_blocked_since_ns, kNow - kSecond);
  EXPECT_EQ(Fill(comm, waits).host_blocked_since_ns(), 0);
  EXPECT_EQ(Fill(comm, waits).waiting_since_ns(), 0);
}

TEST(CommUpdateTest, TheEndOfAGroupIsAWaitInItsCalls) {
  const CommSnapshot comm = Comm(3, 1);
  const SegmentSnapshot process = Process(comm, Op::kGroupEnd, 0, kNow - kSecond);
  const HostWaits waits = FindHostWaits(process, process.communicators[0]);
  EXPECT_EQ(Fill(comm, waits).waiting_since_ns(), kNow - kSecond);
}

TEST(CommUpdateTest, IgnoresThreadsInCallsOnOtherCommunicators) {
  const CommSnapshot comm = Comm(3, 2);
  const SegmentSnapshot process = Process(comm, Op::kAllReduce, /*block=*/1, kNow - kSecond);
  EXPECT_EQ(FindHostWaits(process, process.communicators[0]).host_blocked_since_ns, 0);
}

TEST(CommUpdateTest, TheEarlierOfTwoThreadsCounts) {
  const CommSnapshot comm = Comm(3, 2);
  SegmentSnapshot process = Process(comm, Op::kAllReduce, 0, kNow - kSecond);
  process.blocked.push_back({78, static_cast<uint32_t>(Op::kAllReduce), 0, kNow - 2 * kSecond});
  EXPECT_EQ(FindHostWaits(process, process.communicators[0]).host_blocked_since_ns,
            kNow - 2 * kSecond);
}

TEST(CommUpdateTest, IgnoresAGpuWaitOlderThanTheLastCall) {
  const CommSnapshot comm = Comm(2, 2);
  const SegmentSnapshot process =
      Process(comm, Op::kcudaStreamSynchronize, 0, comm.last_entered_ns - 1);
  EXPECT_EQ(FindHostWaits(process, process.communicators[0]).host_waits_since_ns, 0);
}

// A process with a rank for each of two devices, and a thread for each.
TEST(CommUpdateTest, AThreadWaitsForTheRankOfItsOwnCalls) {
  CommSnapshot other = Comm(4, 4);
  other.index = 1;
  other.rank = 1;
  SegmentSnapshot process = Process(Comm(4, 4), Op::kcudaStreamSynchronize, 1, kNow);
  process.communicators.push_back(other);
  EXPECT_EQ(FindHostWaits(process, process.communicators[0]).host_waits_since_ns, 0);
  EXPECT_EQ(FindHostWaits(process, process.communicators[1]).host_waits_since_ns, kNow);
}

TEST(CommUpdateTest, CallsWithAnUnknownCodeAreNotAWait) {
  const CommSnapshot comm = Comm(3, 2);
  const SegmentSnapshot process = Process(comm, static_cast<Op>(250), 0, kNow - kSecond);
  EXPECT_EQ(FindHostWaits(process, process.communicators[0]).host_blocked_since_ns, 0);
  EXPECT_EQ(FindHostWaits(process, process.communicators[0]).host_waits_since_ns, 0);
}

// An MPI communicator: 5 calls entered, 2 of them finished.
CommSnapshot WithOpenCalls() {
  CommSnapshot comm = Comm(5, 2);
  comm.flags |= segment::kFlagHostCalls | segment::kFlagMarkers;
  comm.started = 5;
  comm.finished = 2;
  return comm;
}

TEST(CommUpdateTest, AnOpenCallIsNotAWaitWhileItsHostWorks) {
  const CommSnapshot comm = WithOpenCalls();
  EXPECT_EQ(Fill(comm).waiting_since_ns(), 0);
  EXPECT_EQ(Fill(comm).host_blocked_since_ns(), 0);
}

TEST(CommUpdateTest, AnOpenCallOfGlooIsAWaitWithoutAWaitingHost) {
  CommSnapshot comm = WithOpenCalls();
  comm.kind = CommKind::kGloo;
  CommHistory history;
  history.finished = 2;  // as of the tick before: it has not changed
  EXPECT_EQ(Fill(comm, {}, &history).waiting_since_ns(), kNow - 3 * kSecond);
  EXPECT_EQ(Fill(comm, {}, &history).kind(), static_cast<uint32_t>(CommKind::kGloo));
  comm.finished = comm.entered;
  EXPECT_EQ(Fill(comm).waiting_since_ns(), 0);
}

TEST(CommUpdateTest, AWaitForAnOpenCallStartsWithTheWaitCall) {
  const CommSnapshot comm = WithOpenCalls();
  SegmentSnapshot process = Process(comm, Op::kMPI_Wait, 0, kNow - kSecond / 2);
  process.blocked[0].stream = 1 + 2;
  const HostWaits waits = FindHostWaits(process, process.communicators[0]);
  EXPECT_EQ(Fill(comm, waits).waiting_since_ns(), kNow - kSecond / 2);
  EXPECT_EQ(Fill(comm, waits).host_blocked_since_ns(), kNow - kSecond / 2);
  EXPECT_EQ(Fill(comm, waits).awaited(), 0u);  // it is the first unfinished one
}

TEST(CommUpdateTest, ReportsAWaitForALaterCallThanTheFirstOpenOne) {
  const CommSnapshot comm = WithOpenCalls();
  SegmentSnapshot process = Process(comm, Op::kMPI_Wait, 0, kNow - kSecond / 2);
  process.blocked[0].stream = 1 + 4;
  HostWaits waits = FindHostWaits(process, process.communicators[0]);
  EXPECT_EQ(Fill(comm, waits).awaited(), 5u);
  process.blocked[0].stream = 1 + 5;  // the process has not made this call
  waits = FindHostWaits(process, process.communicators[0]);
  EXPECT_EQ(Fill(comm, waits).awaited(), 0u);
}

TEST(CommUpdateTest, AWaitForAMessageIsNotAWaitForTheGpu) {
  const CommSnapshot comm = Comm(2, 2);
  const SegmentSnapshot process = Process(comm, Op::kMPI_Recv, segment::kNoComm, kNow);
  const HostWaits waits = FindHostWaits(process, process.communicators[0]);
  EXPECT_EQ(waits.host_waits_since_ns, 0);
  EXPECT_EQ(waits.host_blocked_since_ns, 0);
}

TEST(CommUpdateTest, FinishedCallsAreNotAWait) {
  CommSnapshot comm = Comm(5, 5);
  comm.flags |= segment::kFlagMarkers;
  comm.started = comm.finished = 5;
  EXPECT_EQ(Fill(comm).waiting_since_ns(), 0);
}

// A refused call has the same position as the next call.
TEST(CommUpdateTest, TheLastCallWithThePositionIsTheOneThatWaits) {
  CommSnapshot comm = Comm(3, 3);
  comm.flags |= segment::kFlagMarkers;
  comm.started = 3;
  comm.finished = 2;
  RecordSnapshot refused = comm.records[2];
  refused.entered_ns -= kSecond / 2;
  refused.result = 4;
  comm.records.insert(comm.records.begin() + 2, refused);
  CommHistory history;
  history.finished = 2;
  EXPECT_EQ(Fill(comm, {}, &history).waiting_since_ns(), kNow - kSecond);
}

TEST(CommUpdateTest, WithoutTheRecordTheWaitStartsWithTheLastCall) {
  CommSnapshot comm = Comm(5, 5);
  comm.records.clear();
  comm.flags |= segment::kFlagMarkers;
  comm.finished = 2;
  CommHistory history;
  history.finished = 2;
  EXPECT_EQ(Fill(comm, {}, &history).waiting_since_ns(), comm.last_entered_ns);
}

TEST(CommUpdateTest, ARankWithoutColorStaysInTheSplit) {
  CommSnapshot comm = Comm(0, 0);
  comm.state = segment::CommState::kPassedOver;
  comm.id = 10;
  comm.split_id = 11;
  comm.rank = -1;
  comm.size = 0;
  comm.parent_rank = 3;
  comm.parent_size = 8;
  const v1::CommUpdate update = Fill(comm);
  EXPECT_EQ(update.id(), 11u);
  EXPECT_TRUE(update.split_pending());
}

TEST(CommUpdateTest, ColumnsHaveTheRecords) {
  const CommSnapshot comm = Comm(4, 3);
  v1::RecordBatch batch;
  FillRecords(comm, SIZE_MAX, &batch);
  ASSERT_EQ(batch.op_size(), 4);
  int64_t entered_ns = 0;
  for (int i = 0; i < 4; ++i) {
    const RecordSnapshot& record = comm.records[static_cast<size_t>(i)];
    entered_ns += batch.entered_delta_ns(i);
    EXPECT_EQ(entered_ns, record.entered_ns);
    EXPECT_EQ(batch.position(i), record.position);
    EXPECT_EQ(batch.duration_ns(i), i < 3 ? 10 : -1);
  }
}

TEST(CommUpdateTest, ColumnsMayBeLimitedToTheNewestRecords) {
  const CommSnapshot comm = Comm(4, 3);
  v1::RecordBatch batch;
  FillRecords(comm, 2, &batch);
  ASSERT_EQ(batch.op_size(), 2);
  EXPECT_EQ(batch.first_index(), comm.records[2].index);
  EXPECT_EQ(batch.entered_delta_ns(0), comm.records[2].entered_ns);
  EXPECT_EQ(batch.position(1), comm.records[3].position);
}

// A communicator of MPI that counts messages, with this many sent.
CommSnapshot Messages(uint32_t sent) {
  CommSnapshot comm = Comm(0, 0);
  comm.flags |= segment::kFlagHostCalls | segment::kFlagMessages;
  comm.messages = {{1, 7, sent, 0, 0, 0}};
  return comm;
}

TEST(CommUpdateTest, CountsOfMessagesAreSentOnceTheyAreStill) {
  CommHistory history;
  EXPECT_EQ(Fill(Messages(1), {}, &history).messages().sends(0), 1u) << "the first ones at once";
  EXPECT_FALSE(Fill(Messages(2), {}, &history).has_messages());
  EXPECT_FALSE(Fill(Messages(3), {}, &history).has_messages());
  EXPECT_EQ(Fill(Messages(3), {}, &history).messages().sends(0), 3u);
  EXPECT_FALSE(Fill(Messages(3), {}, &history).has_messages()) << "they were sent";
}

TEST(CommUpdateTest, CountsOfMessagesThatAreNeverStillAreSentNowAndThen) {
  CommHistory history;
  Fill(Messages(1), {}, &history);
  EXPECT_FALSE(Fill(Messages(2), {}, &history, kNow + kSecond / 2).has_messages());
  EXPECT_EQ(Fill(Messages(3), {}, &history, kNow + kSecond).messages().sends(0), 3u);
  EXPECT_FALSE(Fill(Messages(4), {}, &history, kNow + kSecond * 3 / 2).has_messages());
}

TEST(CommUpdateTest, AWaitForMessagesIsNotAWaitForACollective) {
  CommSnapshot comm = Messages(1);
  comm.entered = 3;
  comm.finished = comm.started = 2;
  for (const Op op : {Op::kMPI_Recv, Op::kMPI_Waitall, Op::kMPI_Test}) {
    const SegmentSnapshot process = Process(comm, op, 0, kNow - kSecond);
    const v1::CommUpdate update = Fill(comm, FindHostWaits(process, process.communicators[0]));
    EXPECT_EQ(update.p2p_waiting_since_ns(), kNow - kSecond);
    EXPECT_EQ(update.waiting_since_ns(), 0);
    EXPECT_EQ(update.host_blocked_since_ns(), 0);
  }
}

}  // namespace
}  // namespace rollcall
