// SPDX-License-Identifier: Apache-2.0
// The calls that the preloaded library records: positions, arguments, groups, and what the program
// says of itself. A stub NCCL answers as each test needs it.
#include <algorithm>
#include <chrono>
#include <thread>

#include "library_steps.h"

namespace rollcall {
namespace {

using segment::CommState;

class LibraryCallsTest : public LibraryStepsTest {};

TEST_F(LibraryCallsTest, EveryCollectiveTakesAPositionUnderItsOwnName) {
  const CommSnapshot comm = CommAfter(
      "id init all_reduce all_gather reduce_scatter reduce broadcast bcast all_to_all gather "
      "scatter");
  EXPECT_EQ(Ops(comm), (std::vector<Op>{Op::kAllReduce, Op::kAllGather, Op::kReduceScatter,
                                        Op::kReduce, Op::kBroadcast, Op::kBcast, Op::kAlltoAll,
                                        Op::kGather, Op::kScatter}));
  EXPECT_EQ(comm.entered, 9u);
  EXPECT_EQ(comm.returned, 9u);
  for (size_t i = 0; i < comm.records.size(); ++i) EXPECT_EQ(comm.records[i].position, i);
}

TEST_F(LibraryCallsTest, ArgumentsAreRecorded) {
  const CommSnapshot comm = CommAfter("id init=4,2 reduce=24,3 all_gather=5 bcast=6,1");
  ASSERT_EQ(comm.records.size(), 3u);
  EXPECT_EQ(comm.rank, 2);
  EXPECT_EQ(comm.size, 4);
  EXPECT_EQ(comm.records[0].count, 24u);
  EXPECT_EQ(comm.records[0].peer, 3);
  EXPECT_STREQ(DtypeName(comm.records[0].dtype), "float32");
  EXPECT_STREQ(ReductionName(comm.records[0].reduction), "sum");
  EXPECT_EQ(comm.records[1].peer, kNoPeer);
  EXPECT_EQ(comm.records[1].reduction, kNoReduction);
  EXPECT_STREQ(DtypeName(comm.records[2].dtype), "int32");
}

TEST_F(LibraryCallsTest, ACallWithAConfigurationIsTheSameCall) {
  const uint64_t plain = CommAfter("id init=2,0 all_reduce all_reduce").signature;
  EXPECT_EQ(CommAfter("id init=2,0 all_reduce_config all_reduce").signature, plain);
}

TEST_F(LibraryCallsTest, ATagIsTheNameOfItsCall) {
  const CommSnapshot comm = CommAfter("id init=2,0 tagged=42 tagged tagged=7 all_reduce");
  ASSERT_EQ(comm.records.size(), 4u);
  EXPECT_EQ(comm.records[0].shape, "tag 42");
  EXPECT_EQ(comm.records[1].shape, "");
  EXPECT_EQ(comm.records[2].shape, "tag 7");
  EXPECT_EQ(comm.records[3].shape, "");
  EXPECT_EQ(comm.signature,
            CommAfter("id init=2,0 all_reduce all_reduce all_reduce all_reduce").signature);
}

TEST_F(LibraryCallsTest, TagsThatAreCountersLeaveRoomForShapes) {
  std::string steps = "id init=2,0";
  for (int tag = 1; tag <= 70; ++tag) steps += " tagged=" + std::to_string(tag);
  const CommSnapshot comm = CommAfter(steps + " shape=7 all_reduce");
  ASSERT_EQ(comm.records.size(), 71u);
  EXPECT_EQ(comm.records[63].shape, "tag 64");
  EXPECT_EQ(comm.records[64].shape, "");
  EXPECT_EQ(comm.records[70].shape, "[7]");
}

TEST_F(LibraryCallsTest, RcclsAllToAllWithCountsComparesNoCounts) {
  const CommSnapshot comm = CommAfter("id init=2,0 all_to_all_v");
  ASSERT_EQ(comm.records.size(), 1u);
  EXPECT_EQ(static_cast<Op>(comm.records[0].op), Op::kAlltoAllv);
  EXPECT_EQ(comm.records[0].count, 0u);
}

TEST_F(LibraryCallsTest, RcclsOwnAlgorithmsAreCollectives) {
  const CommSnapshot comm = CommAfter("id init=2,0 msccl=64 all_reduce");
  ASSERT_EQ(comm.records.size(), 2u);
  EXPECT_EQ(static_cast<Op>(comm.records[0].op), Op::kmscclRunAlgo);
  EXPECT_EQ(comm.records[0].count, 64u);
  EXPECT_EQ(comm.entered, 2u);
}

TEST_F(LibraryCallsTest, CallsThatWaitOnTheHostHaveAnOrderOfTheirOwn) {
  const SegmentSnapshot segment =
      After("id init=4,2 all_reduce window all_reduce device_comm end_window window");
  ASSERT_EQ(segment.communicators.size(), 2u);
  const CommSnapshot& comm = segment.communicators[0];
  const CommSnapshot& host_calls = segment.communicators[1];
  EXPECT_EQ(comm.entered, 2u);
  EXPECT_EQ(Ops(host_calls), (std::vector<Op>{Op::kCommWindowRegister, Op::kDevCommCreate,
                                              Op::kCommWindowRegister}));
  EXPECT_EQ(host_calls.entered, 3u);
  EXPECT_EQ(host_calls.finished, 3u);
  EXPECT_EQ(host_calls.parent_id, comm.id);
  EXPECT_EQ(host_calls.rank, 2);
  EXPECT_EQ(host_calls.size, 4);
  EXPECT_EQ(host_calls.state, CommState::kReady);
  EXPECT_EQ(host_calls.name.rfind("host calls of ", 0), 0u) << host_calls.name;
}

TEST_F(LibraryCallsTest, ARefusedHostCallTakesNoPosition) {
  const SegmentSnapshot segment =
      After("id init=4,2 window env=STUB_FAIL=ncclCommWindowRegister !window");
  ASSERT_EQ(segment.communicators.size(), 2u);
  EXPECT_EQ(segment.communicators[1].entered, 1u);
}

TEST_F(LibraryCallsTest, SignalsOfOneIndexAreAnOrderOfTheirOwn) {
  const SegmentSnapshot segment =
      After("id init=4,2 signal=1 put_signal=1,7 wait_signal=3,2,0,1,1,7 signal=3");
  ASSERT_EQ(segment.communicators.size(), 3u);
  EXPECT_EQ(Ops(segment.communicators[0]), std::vector<Op>());
  EXPECT_EQ(Ops(segment.communicators[1]),
            (std::vector<Op>{Op::kSignal, Op::kWaitSignal, Op::kWaitSignal, Op::kSignal}));
  EXPECT_EQ(segment.communicators[1].p2p_entered, 4u);
  EXPECT_EQ(segment.communicators[1].records[1].peer, 3);
  EXPECT_EQ(Ops(segment.communicators[2]), (std::vector<Op>{Op::kPutSignal, Op::kWaitSignal}));
  EXPECT_EQ(segment.communicators[2].records[1].peer, 1);
}

TEST_F(LibraryCallsTest, WhatTheProgramSaysOfItselfIsKept) {
  const SegmentSnapshot segment = After("id init=2,0 step=811 step=812 validate name all_reduce");
  EXPECT_EQ(segment.step, 812);
  EXPECT_EQ(segment.phase, "validation");
  ASSERT_EQ(segment.communicators.size(), 1u);
  EXPECT_EQ(segment.communicators[0].name, "tensor parallel");
}

TEST_F(LibraryCallsTest, WhatItSaidBeforeTheFirstCallIsKeptToo) {
  const SegmentSnapshot segment = After("step=0 validate id init=2,0");
  EXPECT_EQ(segment.step, 0);
  EXPECT_EQ(segment.phase, "validation");
}

TEST_F(LibraryCallsTest, APhaseEndsAndALongOneIsCut) {
  EXPECT_EQ(After("id init=2,0 validate train").phase, "");
  // One word may be a secret.
  EXPECT_EQ(After("id init=2,0 long_phase").phase.substr(0, 5), "... (");
  EXPECT_EQ(After("id init=2,0").step, -1);
}

std::vector<std::string> Shapes(const CommSnapshot& comm) {
  std::vector<std::string> shapes;
  for (const RecordSnapshot& record : comm.records) shapes.push_back(record.shape);
  return shapes;
}

TEST_F(LibraryCallsTest, AShapeIsThatOfTheNextCall) {
  EXPECT_EQ(Shapes(CommAfter("id init=2,0 shape=1024,4096 all_reduce all_reduce shape=7 send "
                             "shape=1024,4096 all_gather")),
            (std::vector<std::string>{"[1024, 4096]", "", "[7]", "[1024, 4096]"}));
}

TEST_F(LibraryCallsTest, AScalarHasAShapeAndATensorOfTenDimensionsHasNone) {
  EXPECT_EQ(Shapes(CommAfter("id init=2,0 shape all_reduce shape=1,2,3,4,5,6,7,8,9 all_reduce "
                             "shape=1,2,3,4,5,6,7,8,9,10 all_reduce")),
            (std::vector<std::string>{"[]", "[1, 2, 3, 4, 5, 6, 7, 8, 9]", ""}));
}

TEST_F(LibraryCallsTest, ShapesBeyondTheTableAreNotTold) {
  std::string steps = "id init=2,0";
  for (int i = 1; i <= 300; ++i) steps += " shape=" + std::to_string(i) + " all_reduce";
  const std::vector<std::string> shapes = Shapes(CommAfter(steps + " shape=3 all_reduce"));
  ASSERT_EQ(shapes.size(), 301u);
  EXPECT_EQ(shapes[254], "[255]");
  EXPECT_EQ(shapes[255], "");
  EXPECT_EQ(shapes[300], "[3]");
}

TEST_F(LibraryCallsTest, ACallOnAnUnknownCommunicatorUsesTheShapeUp) {
  EXPECT_EQ(Shapes(CommAfter("id init=2,0 grow=3 shape=5 all_reduce on=0 all_reduce")),
            (std::vector<std::string>{""}));
}

TEST_F(LibraryCallsTest, AForkedChildTellsShapesOfItsOwn) {
  EXPECT_EQ(Run(Command("id init=2,0 shape=5 all_reduce fork id init=2,0 shape=6 all_reduce join")),
            0);
  std::vector<std::string> all;
  for (const auto& path : Segments()) {
    for (const std::string& shape : Shapes(Read(path).communicators[0])) all.push_back(shape);
  }
  std::sort(all.begin(), all.end());
  EXPECT_EQ(all, (std::vector<std::string>{"[5]", "[6]"}));
}

TEST_F(LibraryCallsTest, SayingThingsWithoutTheLibraryDoesNothing) {
  StartOver();
  EXPECT_EQ(Run(Command("step=3 validate shape=5 id init=2,0 name"), {{"LD_PRELOAD", ""}}), 0);
  EXPECT_TRUE(Segments().empty());
}

TEST_F(LibraryCallsTest, SendsAndReceivesAreCountedApart) {
  const CommSnapshot comm = CommAfter("id init=4,0 all_reduce send=8,1 recv=8,3 all_reduce");
  EXPECT_EQ(comm.entered, 2u);
  EXPECT_EQ(comm.p2p_entered, 2u);
  EXPECT_EQ(comm.p2p_returned, 2u);
  EXPECT_NE(comm.records[1].flags & segment::kRecordP2p, 0);
  EXPECT_EQ(comm.records[2].peer, 3);
}

TEST_F(LibraryCallsTest, SignaturesAreOfCollectivesAlone) {
  const uint64_t plain = CommAfter("id init=2,0 all_reduce bcast=8,1").signature;
  EXPECT_EQ(CommAfter("id init=2,0 all_reduce send broadcast=8,1").signature, plain);
  EXPECT_NE(CommAfter("id init=2,0 bcast=8,1 all_reduce").signature, plain);
  EXPECT_NE(CommAfter("id init=2,0 all_reduce bcast=8,0").signature, plain);
  EXPECT_NE(CommAfter("id init=2,0 all_reduce=9 bcast=8,1").signature, plain);
  EXPECT_NE(CommAfter("id init=2,0 all_reduce bcast=8,1 all_reduce").signature, plain);
}

TEST_F(LibraryCallsTest, ARefusedCallLeavesNoTraceInPositionAndSignature) {
  const uint64_t plain = CommAfter("id init=2,0 all_reduce all_reduce").signature;
  const CommSnapshot comm = CommAfter(
      "id init=2,0 all_reduce env=STUB_FAIL=ncclReduce !reduce env=STUB_FAIL=ncclSend !send "
      "all_reduce");
  EXPECT_EQ(comm.signature, plain);
  EXPECT_EQ(comm.entered, 2u);
  EXPECT_EQ(comm.p2p_entered, 0u);
  ASSERT_EQ(comm.records.size(), 4u);
  EXPECT_EQ(comm.records[1].result, 4);  // ncclInvalidArgument
  EXPECT_EQ(comm.records[3].position, 1u);
}

TEST_F(LibraryCallsTest, AFailedGroupIsRolledBack) {
  const uint64_t plain = CommAfter("id init=2,0 all_reduce all_reduce").signature;
  const CommSnapshot comm = CommAfter(
      "id init=2,0 all_reduce group_start broadcast send broadcast env=STUB_FAIL=ncclGroupEnd "
      "!group_end all_reduce");
  EXPECT_EQ(comm.entered, 2u);
  EXPECT_EQ(comm.returned, 2u);
  EXPECT_EQ(comm.p2p_entered, 0u);
  EXPECT_EQ(comm.signature, plain);
  for (const RecordSnapshot& record : comm.records) EXPECT_NE(record.returned_ns, 0);
}

TEST_F(LibraryCallsTest, ASimulatedGroupIsNothingThatHappened) {
  const CommSnapshot comm =
      CommAfter("id init=2,0 all_reduce group_start all_reduce simulate_end all_reduce");
  EXPECT_EQ(comm.entered, 2u);
  EXPECT_EQ(comm.returned, 2u);
}

TEST_F(LibraryCallsTest, ACallRefusedWithinAGroupDoesNotCount) {
  const CommSnapshot comm = CommAfter(
      "id init=2,0 group_start all_reduce env=STUB_FAIL=ncclReduce !reduce all_reduce group_end");
  EXPECT_EQ(comm.entered, 2u);
  EXPECT_EQ(comm.returned, 2u);
}

TEST_F(LibraryCallsTest, AGroupMaySpanCommunicators) {
  const SegmentSnapshot segment = After(
      "id init=2,0 id init=2,0 group_start on=0 all_reduce on=1 all_reduce all_reduce group_end");
  ASSERT_EQ(segment.communicators.size(), 2u);
  EXPECT_EQ(segment.communicators[0].returned, 1u);
  EXPECT_EQ(segment.communicators[1].returned, 2u);
}

TEST_F(LibraryCallsTest, ErrnoIsTheProgramsThoughTheDriverChangesIt) {
  CommAfter(
      "env=STUB_ERRNO=1 id set_errno=77 init=2,0 errno_is=77 all_reduce errno_is=77 group_start "
      "all_reduce group_end errno_is=77 init_all=2 errno_is=77");
  CommAfter("env=STUB_ERRNO=1 id init=2,0 capture set_errno=77 all_reduce errno_is=77 end_capture",
            {{"ROLLCALL_GRAPH_MARKERS", "1"}});
}

TEST_F(LibraryCallsTest, TimesGoOnFromOneCpuToAnother) {
  if (std::thread::hardware_concurrency() < 2) GTEST_SKIP() << "there is only one CPU";
  constexpr int64_t kClose = 50'000'000;
  const auto now = [] {
    return std::chrono::nanoseconds(std::chrono::system_clock::now().time_since_epoch()).count();
  };
  std::string steps = "id init=2,0";
  for (int i = 0; i < 200; ++i) steps += " cpu=" + std::to_string(i) + " all_reduce";
  const int64_t begin = now();
  const CommSnapshot comm = CommAfter(steps);
  const int64_t end = now();
  ASSERT_EQ(comm.records.size(), 200u);
  int64_t before = begin - kClose;
  for (const RecordSnapshot& record : comm.records) {
    EXPECT_GE(record.entered_ns, before);
    EXPECT_GE(record.returned_ns, record.entered_ns);
    before = record.returned_ns;
  }
  EXPECT_LE(before, end + kClose);
}

TEST_F(LibraryCallsTest, ManyThreadsOneAfterTheOtherLeaveNothingOut) {
  std::string steps = "id init=2,0";
  for (int i = 0; i < 200; ++i) steps += " thread all_reduce join";
  const SegmentSnapshot segment = After(steps);
  EXPECT_EQ(segment.communicators[0].entered, 200u);
  EXPECT_EQ(segment.lost_threads, 0u);
  EXPECT_TRUE(segment.blocked.empty());
}

TEST_F(LibraryCallsTest, AGroupMaySpanMoreCommunicatorsThanAreFollowedToItsEnd) {
  std::string make = "id", call = " group_start";
  for (int i = 0; i < 40; ++i) {
    make += " init=2,0";
    call += " on=" + std::to_string(i) + " all_reduce send=8,1";
  }
  for (const CommSnapshot& comm : After(make + call + " group_end").communicators) {
    EXPECT_EQ(comm.entered, 1u) << comm.index;
    EXPECT_EQ(comm.returned, 1u) << comm.index;
    EXPECT_EQ(comm.p2p_returned, 1u) << comm.index;
  }
}

}  // namespace
}  // namespace rollcall
