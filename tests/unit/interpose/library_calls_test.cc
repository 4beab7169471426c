// SPDX-License-Identifier: Apache-2.0
// What the preloaded library makes of calls: positions, groups, identities,
// blocked threads, markers. A stub NCCL answers as each test needs it.
#include <fcntl.h>

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

TEST_F(LibraryCallsTest, RcclsAllToAllWithCountsComparesNone) {
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

TEST_F(LibraryCallsTest, WhatStandsBesideACommunicatorEndsWithIt) {
  const SegmentSnapshot segment = After("id init=4,2 window signal=1 destroy id init=4,2 window");
  ASSERT_EQ(segment.communicators.size(), 5u);
  EXPECT_EQ(segment.communicators[1].state, CommState::kDestroyed);
  EXPECT_EQ(segment.communicators[2].state, CommState::kDestroyed);
  EXPECT_EQ(segment.communicators[4].state, CommState::kReady);
  EXPECT_EQ(segment.communicators[4].entered, 1u);
  EXPECT_EQ(segment.communicators[4].parent_id, segment.communicators[3].id);
}

// One process each, which share their ids.
const std::string kParent = "env=STUB_UNIQUE_ID=parent id ";
const std::string kGrownId = " env=STUB_UNIQUE_ID=grown grow_id";

TEST_F(LibraryCallsTest, AGrownCommunicatorIsTheSameForAllRanksOfItsParent) {
  const SegmentSnapshot one = After(kParent + "init=2,1 all_reduce grow=3 all_reduce all_reduce");
  ASSERT_EQ(one.communicators.size(), 2u);
  const CommSnapshot& grown = one.communicators[1];
  EXPECT_EQ(grown.state, CommState::kReady);
  EXPECT_EQ(grown.rank, 1);
  EXPECT_EQ(grown.size, 3);
  EXPECT_EQ(grown.parent_id, one.communicators[0].id);
  EXPECT_EQ(grown.entered, 2u);
  EXPECT_EQ(one.unknown_comm_calls, 0u);
  const SegmentSnapshot root =
      After(kParent + "init=2,0" + kGrownId + " grow_as_root=3 all_reduce");
  ASSERT_EQ(root.communicators.size(), 2u);
  EXPECT_EQ(root.communicators[1].id, grown.id);
  EXPECT_EQ(root.communicators[1].rank, 0);
}

TEST_F(LibraryCallsTest, OneRankTellsByWhichIdThoseThatJoinKnowIt) {
  const SegmentSnapshot root = After(kParent + "init=2,0" + kGrownId);
  ASSERT_EQ(root.communicators.size(), 1u);
  const CommSnapshot& parent = root.communicators[0];
  const SegmentSnapshot joined = After("env=STUB_UNIQUE_ID=grown id grow_into=3,2 all_reduce");
  ASSERT_EQ(joined.communicators.size(), 1u);
  EXPECT_EQ(joined.communicators[0].rank, 2);
  EXPECT_EQ(joined.communicators[0].size, 3);
  EXPECT_EQ(joined.communicators[0].entered, 1u);
  EXPECT_EQ(parent.grow_base_id, joined.communicators[0].id);
  EXPECT_EQ(parent.grow_id, After(kParent + "init=2,1 grow=3").communicators[1].id);
  EXPECT_EQ(After(kParent + "init=2,0" + kGrownId + " grow_as_root=3").communicators[1].base_id,
            joined.communicators[0].id);
}

TEST_F(LibraryCallsTest, GrownAgainItIsAnother) {
  const SegmentSnapshot segment =
      After("id init=2,0 grow_id grow_as_root=3 grow_id grow_as_root=4");
  ASSERT_EQ(segment.communicators.size(), 3u);
  EXPECT_EQ(segment.communicators[2].parent_id, segment.communicators[1].id);
  EXPECT_NE(segment.communicators[1].id, segment.communicators[2].id);
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
  EXPECT_EQ(After("id init=2,0 long_phase").phase, std::string(47, 'x'));
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

TEST_F(LibraryCallsTest, CommunicatorsMadeWithinAGroupAreKnownAfterIt) {
  const SegmentSnapshot segment =
      After("id group_start init=2,0 init=2,1 group_end on=0 all_reduce on=1 all_reduce");
  ASSERT_EQ(segment.communicators.size(), 2u);
  for (const CommSnapshot& comm : segment.communicators) {
    EXPECT_EQ(comm.state, CommState::kReady);
    EXPECT_EQ(comm.entered, 1u);
  }
  EXPECT_EQ(segment.communicators[0].id, segment.communicators[1].id);
  EXPECT_EQ(segment.unknown_comm_calls, 0u);
}

TEST_F(LibraryCallsTest, AFailedGroupMakesNoCommunicators) {
  const CommSnapshot comm =
      CommAfter("id group_start init=2,0 env=STUB_FAIL=ncclGroupEnd !group_end");
  EXPECT_EQ(comm.state, CommState::kFailed);
}

TEST_F(LibraryCallsTest, RanksComputeTheSameIdsAlone) {
  const Environment shared = {{"STUB_UNIQUE_ID", "one for all"}};
  const std::string rest = " split=7 on=0 split=8 on=0 shrink=1,3";
  const SegmentSnapshot zero = After("id init=4,0" + rest, shared);
  const SegmentSnapshot two = After("id init=4,2" + rest, shared);
  ASSERT_EQ(zero.communicators.size(), 4u);
  ASSERT_EQ(two.communicators.size(), 4u);
  std::set<uint64_t> ids;
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(zero.communicators[i].id, two.communicators[i].id) << i;
    ids.insert(zero.communicators[i].id);
  }
  EXPECT_EQ(ids.size(), 4u);
}

TEST_F(LibraryCallsTest, ColoursOfASplitAreCommunicatorsOfTheirOwn) {
  const Environment shared = {{"STUB_UNIQUE_ID", "one for all"}};
  const SegmentSnapshot red = After("id init=4,0 split=1", shared);
  const SegmentSnapshot blue = After("id init=4,2 split=2", shared);
  EXPECT_NE(red.communicators[1].id, blue.communicators[1].id);
  EXPECT_EQ(red.communicators[1].split_id, blue.communicators[1].split_id);
  EXPECT_EQ(blue.communicators[1].parent_rank, 2);
  EXPECT_EQ(blue.communicators[1].parent_size, 4);
}

TEST_F(LibraryCallsTest, SurvivorsMayListTheExcludedInAnyOrder) {
  const Environment shared = {{"STUB_UNIQUE_ID", "one for all"}};
  const SegmentSnapshot one = After("id init=4,0 shrink=1,3", shared);
  const SegmentSnapshot other = After("id init=4,2 shrink=3,1", shared);
  EXPECT_EQ(one.communicators[1].id, other.communicators[1].id);
  EXPECT_EQ(one.communicators[1].size, 2);
  EXPECT_NE(After("id init=4,0 shrink=1,2", shared).communicators[1].id, one.communicators[1].id);
}

TEST_F(LibraryCallsTest, WhoIsPassedOverBySplitHasNoChild) {
  const SegmentSnapshot segment = After("id init=2,0 split=-1 on=0 all_reduce");
  ASSERT_EQ(segment.communicators.size(), 2u);
  EXPECT_EQ(segment.communicators[1].state, CommState::kPassedOver);
  EXPECT_EQ(segment.communicators[0].entered, 1u);
}

TEST_F(LibraryCallsTest, AUniqueIdThatServesTwiceMakesTwoCommunicators) {
  const Environment shared = {{"STUB_UNIQUE_ID", "one for all"}};
  const SegmentSnapshot zero = After("id init=2,0 destroy init=2,0", shared);
  const SegmentSnapshot one = After("id init=2,1 destroy init=2,1", shared);
  ASSERT_EQ(zero.communicators.size(), 2u);
  EXPECT_NE(zero.communicators[0].id, zero.communicators[1].id);
  EXPECT_EQ(zero.communicators[0].id, one.communicators[0].id);
  EXPECT_EQ(zero.communicators[1].id, one.communicators[1].id);
}

TEST_F(LibraryCallsTest, TwoRanksOfOneProcessShareTheirId) {
  const SegmentSnapshot segment = After("id init=2,0 init=2,1");
  EXPECT_EQ(segment.communicators[0].id, segment.communicators[1].id);
}

TEST_F(LibraryCallsTest, AReusedAddressIsTheNewCommunicator) {
  const SegmentSnapshot segment =
      After("id init=2,0 all_reduce all_reduce destroy id init=2,0 all_reduce");
  ASSERT_EQ(segment.communicators.size(), 2u);
  EXPECT_EQ(segment.communicators[0].entered, 2u);
  EXPECT_EQ(segment.communicators[0].state, CommState::kDestroyed);
  EXPECT_EQ(segment.communicators[1].entered, 1u);
  EXPECT_EQ(segment.communicators[1].state, CommState::kReady);
}

TEST_F(LibraryCallsTest, AnEndThatFailsIsNoEnd) {
  const CommSnapshot comm =
      CommAfter("id init=2,0 env=STUB_FAIL=ncclCommDestroy !destroy all_reduce");
  EXPECT_EQ(comm.state, CommState::kReady);
  EXPECT_EQ(comm.entered, 1u);
}

TEST_F(LibraryCallsTest, EachWayToEndIsToldApart) {
  EXPECT_EQ(CommAfter("id init=2,0 finalize").state, CommState::kFinalized);
  EXPECT_EQ(CommAfter("id init=2,0 finalize destroy").state, CommState::kDestroyed);
  EXPECT_EQ(CommAfter("id init=2,0 abort").state, CommState::kAborted);
  EXPECT_EQ(CommAfter("id init=2,0 revoke").state, CommState::kRevoked);
  EXPECT_EQ(CommAfter("id env=STUB_FAIL=ncclCommInitRank !init=2,0").state, CommState::kFailed);
}

TEST_F(LibraryCallsTest, EveryWayToBeginIsSeen) {
  for (const char* how : {"init=2,1", "init_config=2,1", "init_scalable=2,1"}) {
    const CommSnapshot comm = CommAfter(std::string("id ") + how + " all_reduce");
    EXPECT_EQ(comm.state, CommState::kReady) << how;
    EXPECT_EQ(comm.rank, 1) << how;
    EXPECT_EQ(comm.size, 2) << how;
    EXPECT_EQ(comm.entered, 1u) << how;
  }
}

TEST_F(LibraryCallsTest, OneProcessMayHoldAllRanks) {
  const SegmentSnapshot segment = After("init_all=3 on=2 all_reduce");
  ASSERT_EQ(segment.communicators.size(), 3u);
  for (int rank = 0; rank < 3; ++rank) {
    const CommSnapshot& comm = segment.communicators[static_cast<size_t>(rank)];
    EXPECT_EQ(comm.rank, rank);
    EXPECT_EQ(comm.size, 3);
    EXPECT_EQ(comm.id, segment.communicators[0].id);
    EXPECT_NE(comm.id, 0u);
    EXPECT_EQ(comm.entered, rank == 2 ? 1u : 0u);
  }
}

TEST_F(LibraryCallsTest, AnAsynchronousErrorIsKept) {
  EXPECT_EQ(CommAfter("id init=2,0 async_error").async_error, 0u);
  EXPECT_EQ(CommAfter("id init=2,0 async_error env=STUB_ASYNC_ERROR=1 async_error").async_error,
            6u);  // ncclRemoteError
}

TEST_F(LibraryCallsTest, EndedCommunicatorsMakeRoomForNewOnes) {
  std::string steps = "id init=2,0 all_reduce";
  for (uint32_t i = 0; i < segment::kCommCapacity + 20; ++i) steps += " id init=2,0 destroy";
  const SegmentSnapshot segment = After(steps + " on=0 all_reduce id init=2,1 all_reduce");
  EXPECT_EQ(segment.lost_communicators, 0u);
  ASSERT_EQ(segment.communicators.size(), segment::kCommCapacity);
  EXPECT_EQ(segment.communicators[0].entered, 2u);  // a living one is never given up
  int newest = 0;
  for (const CommSnapshot& comm : segment.communicators) newest += comm.rank == 1;
  EXPECT_EQ(newest, 1);
}

TEST_F(LibraryCallsTest, CommunicatorsBeyondTheTableAreCountedAndWorkUnseen) {
  std::string steps = "id";
  for (uint32_t i = 0; i < segment::kCommCapacity + 2; ++i) steps += " init=2,0";
  const SegmentSnapshot segment = After(steps + " all_reduce");
  EXPECT_EQ(segment.communicators.size(), segment::kCommCapacity);
  EXPECT_EQ(segment.lost_communicators, 2u);
  EXPECT_EQ(segment.unknown_comm_calls, 1u);
  const std::string said = Stderr();
  EXPECT_EQ(std::count(said.begin(), said.end(), '\n'), 1) << said;
}

// Ranks that have one from the beginning would be told that this one's first call is the others'
// hundredth.
TEST_F(LibraryCallsTest, WhatFoundNoRoomAtItsFirstCallIsNotRecordedFromLaterOn) {
  std::string steps = "id";
  for (uint32_t i = 0; i < segment::kCommCapacity; ++i) steps += " init=2,0";
  const SegmentSnapshot segment =
      After(steps + " on=0 window window on=5 destroy on=0 window window");
  EXPECT_EQ(segment.lost_communicators, 1u);
  EXPECT_EQ(segment.communicators[5].state, CommState::kDestroyed);
  EXPECT_EQ(segment.unknown_comm_calls, 4u);
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

// A process held inside a call by a FIFO: what its segment says meanwhile.
class BlockedCallTest : public LibraryCallsTest {
 protected:
  SegmentSnapshot During(const std::string& steps, const std::string& blocking) {
    const std::string fifo = scratch_ / "fifo";
    EXPECT_EQ(mkfifo(fifo.c_str(), 0600), 0);
    const pid_t pid = Start(Command(steps), {{"STUB_BLOCK", blocking}, {"STUB_FIFO", fifo}});
    SegmentSnapshot found;
    EXPECT_TRUE(Eventually([&] {
      const auto paths = Segments();
      if (paths.empty()) return false;
      auto reader = SegmentReader::Open(paths.front());
      if (!reader.ok()) return false;
      auto snapshot = (*reader)->Read();
      if (!snapshot.ok() || snapshot->blocked.empty()) return false;
      // Not in the one before it, where a slow machine may still be.
      const std::string op = OpName(static_cast<Op>(snapshot->blocked[0].op));
      if (op != blocking && "nccl" + op != blocking) return false;
      found = *snapshot;
      return true;
    })) << Stderr();
    // Opening it for writing waits until the process has opened it for reading.
    close(open(fifo.c_str(), O_WRONLY));
    EXPECT_EQ(WaitFor(pid), 0) << Stderr();
    EXPECT_TRUE(Read().blocked.empty());
    return found;
  }
};

TEST_F(BlockedCallTest, ACollectiveShowsSinceWhen) {
  const SegmentSnapshot segment = During("id init=2,0 all_reduce broadcast", "ncclBroadcast");
  ASSERT_EQ(segment.blocked.size(), 1u);
  EXPECT_EQ(static_cast<Op>(segment.blocked[0].op), Op::kBroadcast);
  EXPECT_EQ(segment.blocked[0].comm, 0u);
  const CommSnapshot& comm = segment.communicators[0];
  EXPECT_EQ(comm.entered, 2u);
  EXPECT_EQ(comm.returned, 1u);
  EXPECT_EQ(comm.records[1].returned_ns, 0);
  EXPECT_EQ(segment.blocked[0].since_ns, comm.records[1].entered_ns);
  // The GPU has been told of the call's start, and not of its end.
  EXPECT_EQ(comm.started, 2u);
  EXPECT_EQ(comm.finished, 1u);
}

TEST_F(BlockedCallTest, CreationShowsItsCommunicator) {
  const SegmentSnapshot segment = During("id init=4,3", "ncclCommInitRank");
  ASSERT_EQ(segment.blocked.size(), 1u);
  EXPECT_EQ(static_cast<Op>(segment.blocked[0].op), Op::kCommInitRank);
  EXPECT_EQ(segment.communicators[0].state, CommState::kInitializing);
  EXPECT_EQ(segment.communicators[0].rank, 3);
  EXPECT_EQ(segment.communicators[0].size, 4);
}

TEST_F(BlockedCallTest, ASplitStandsInItsParentsRanks) {
  const SegmentSnapshot segment = During("id init=4,3 split=1", "ncclCommSplit");
  ASSERT_EQ(segment.communicators.size(), 2u);
  EXPECT_EQ(segment.communicators[1].state, CommState::kInitializing);
  EXPECT_EQ(segment.communicators[1].parent_rank, 3);
  EXPECT_EQ(segment.communicators[1].parent_size, 4);
}

TEST_F(BlockedCallTest, AGroupBlocksAtItsEnd) {
  const SegmentSnapshot segment =
      During("id init=2,0 group_start all_reduce group_end", "ncclGroupEnd");
  ASSERT_EQ(segment.blocked.size(), 1u);
  EXPECT_EQ(static_cast<Op>(segment.blocked[0].op), Op::kGroupEnd);
  EXPECT_EQ(segment.blocked[0].comm, 0u);
  EXPECT_EQ(segment.communicators[0].entered, 1u);
  EXPECT_EQ(segment.communicators[0].returned, 0u);
}

TEST_F(BlockedCallTest, TeardownShows) {
  const SegmentSnapshot segment = During("id init=2,0 destroy", "ncclCommDestroy");
  ASSERT_EQ(segment.blocked.size(), 1u);
  EXPECT_EQ(static_cast<Op>(segment.blocked[0].op), Op::kCommDestroy);
  EXPECT_EQ(segment.communicators[0].state, CommState::kFinalizing);
}

struct WaitCase {
  const char* step;
  const char* function;
  Op op;
};

class BlockedWaitTest : public BlockedCallTest, public testing::WithParamInterface<WaitCase> {};

TEST_P(BlockedWaitTest, ShowsSinceWhen) {
  const WaitCase& wait = GetParam();
  const SegmentSnapshot segment =
      During(std::string("id init=2,0 all_reduce ") + wait.step, wait.function);
  ASSERT_EQ(segment.blocked.size(), 1u);
  EXPECT_EQ(static_cast<Op>(segment.blocked[0].op), wait.op);
  EXPECT_GE(segment.blocked[0].since_ns, segment.communicators[0].last_entered_ns);
}

INSTANTIATE_TEST_SUITE_P(
    Waits, BlockedWaitTest,
    testing::Values(WaitCase{"stream_wait", "cudaStreamSynchronize", Op::kcudaStreamSynchronize},
                    WaitCase{"event_wait", "cudaEventSynchronize", Op::kcudaEventSynchronize},
                    WaitCase{"device_wait", "cudaDeviceSynchronize", Op::kcudaDeviceSynchronize},
                    WaitCase{"copy", "cudaMemcpy", Op::kcudaMemcpy},
                    WaitCase{"driver_stream_wait", "cuStreamSynchronize", Op::kcuStreamSynchronize},
                    WaitCase{"driver_event_wait", "cuEventSynchronize", Op::kcuEventSynchronize},
                    WaitCase{"context_wait", "cuCtxSynchronize", Op::kcuCtxSynchronize},
                    WaitCase{"hip_stream_wait", "hipStreamSynchronize", Op::khipStreamSynchronize},
                    WaitCase{"hip_event_wait", "hipEventSynchronize", Op::khipEventSynchronize},
                    WaitCase{"hip_device_wait", "hipDeviceSynchronize", Op::khipDeviceSynchronize},
                    WaitCase{"hip_copy", "hipMemcpy", Op::khipMemcpy}),
    [](const auto& info) { return std::string(info.param.step); });

TEST_F(LibraryCallsTest, MarkersFollowCallsAndGroups) {
  const CommSnapshot comm =
      CommAfter("id init=2,0 all_reduce send group_start all_reduce send send group_end");
  EXPECT_NE(comm.flags & segment::kFlagMarkers, 0u);
  EXPECT_EQ(comm.started, 2u);
  EXPECT_EQ(comm.finished, 2u);
  EXPECT_EQ(comm.p2p_started, 3u);
  EXPECT_EQ(comm.p2p_finished, 3u);
}

TEST_F(LibraryCallsTest, EachDeviceOfAProcessHasMarkers) {
  const SegmentSnapshot segment = After(
      "init_all=3 group_start on=0 all_reduce on=1 all_reduce on=2 all_reduce group_end "
      "on=1 all_reduce");
  ASSERT_EQ(segment.communicators.size(), 3u);
  for (const CommSnapshot& comm : segment.communicators) {
    EXPECT_NE(comm.flags & segment::kFlagMarkers, 0u) << comm.rank;
    EXPECT_EQ(comm.device, comm.rank);
    EXPECT_EQ(comm.finished, comm.rank == 1 ? 2u : 1u) << comm.rank;
  }
}

TEST_F(LibraryCallsTest, CommunicatorsMadeWithinAGroupHaveMarkers) {
  const CommSnapshot comm = CommAfter("id group_start init=2,1 group_end on=0 all_reduce");
  EXPECT_EQ(comm.finished, 1u);
}

TEST_F(LibraryCallsTest, WhereAnotherContextCannotBeEnteredThereAreNoMarkers) {
  const SegmentSnapshot segment =
      After("init_all=2 on=1 all_reduce on=0 all_reduce", {{"STUB_FAIL", "cuCtxPushCurrent_v2"}});
  ASSERT_EQ(segment.communicators.size(), 2u);
  EXPECT_EQ(segment.communicators[1].flags & segment::kFlagMarkers, 0u);
  EXPECT_EQ(segment.communicators[0].finished, 1u);
}

TEST_F(LibraryCallsTest, NoMarkerIsPlacedOnAStreamThatAnotherOnesCapturePutsOffLimits) {
  const CommSnapshot comm = CommAfter(
      "id init=2,0 all_reduce env=STUB_FAIL=cuStreamIsCapturing all_reduce group_start all_reduce "
      "group_end");
  EXPECT_NE(comm.flags & segment::kFlagMarkers, 0u);
  EXPECT_EQ(comm.entered, 3u);
  EXPECT_EQ(comm.started, 1u);
  EXPECT_EQ(comm.finished, 1u);
}

class DriverErrorTest : public LibraryCallsTest, public testing::WithParamInterface<const char*> {};

TEST_P(DriverErrorTest, EndsMarkersAndNothingElse) {
  const CommSnapshot comm =
      CommAfter(std::string("id env=STUB_FAIL=") + GetParam() + " init=2,0 all_reduce all_reduce");
  EXPECT_EQ(comm.flags & segment::kFlagMarkers, 0u);
  EXPECT_EQ(comm.entered, 2u);
  EXPECT_EQ(comm.returned, 2u);
}

INSTANTIATE_TEST_SUITE_P(Driver, DriverErrorTest,
                         testing::Values("cuStreamWriteValue64_v2", "cuMemHostRegister_v2",
                                         "cuMemHostGetDevicePointer_v2", "cuCtxGetCurrent"),
                         [](const auto& info) { return std::string(info.param); });

TEST_F(LibraryCallsTest, MarkersThatFailInMidCourseAreSwitchedOff) {
  const CommSnapshot comm = CommAfter(
      "id init=2,0 all_reduce env=STUB_FAIL=cuStreamWriteValue64_v2 all_reduce env=STUB_FAIL= "
      "all_reduce");
  EXPECT_EQ(comm.flags & segment::kFlagMarkers, 0u);
  EXPECT_EQ(comm.entered, 3u);
}

}  // namespace
}  // namespace rollcall
