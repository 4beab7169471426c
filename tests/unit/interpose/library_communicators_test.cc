// SPDX-License-Identifier: Apache-2.0
// The communicators that the preloaded library records: their ids, beginnings and ends, and the
// room for them. A stub NCCL answers as each test needs it.
#include <algorithm>

#include "library_steps.h"

namespace rollcall {
namespace {

using segment::CommState;

class LibraryCommunicatorsTest : public LibraryStepsTest {};

TEST_F(LibraryCommunicatorsTest, WhatStandsBesideACommunicatorEndsWithIt) {
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

TEST_F(LibraryCommunicatorsTest, AGrownCommunicatorIsTheSameForAllRanksOfItsParent) {
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

TEST_F(LibraryCommunicatorsTest, OneRankTellsByWhichIdThoseThatJoinKnowIt) {
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

TEST_F(LibraryCommunicatorsTest, GrownAgainItIsAnother) {
  const SegmentSnapshot segment =
      After("id init=2,0 grow_id grow_as_root=3 grow_id grow_as_root=4");
  ASSERT_EQ(segment.communicators.size(), 3u);
  EXPECT_EQ(segment.communicators[2].parent_id, segment.communicators[1].id);
  EXPECT_NE(segment.communicators[1].id, segment.communicators[2].id);
}

TEST_F(LibraryCommunicatorsTest, CommunicatorsMadeWithinAGroupAreKnownAfterIt) {
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

TEST_F(LibraryCommunicatorsTest, AFailedGroupMakesNoCommunicators) {
  const CommSnapshot comm =
      CommAfter("id group_start init=2,0 env=STUB_FAIL=ncclGroupEnd !group_end");
  EXPECT_EQ(comm.state, CommState::kFailed);
}

TEST_F(LibraryCommunicatorsTest, RanksComputeTheSameIdsAlone) {
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

TEST_F(LibraryCommunicatorsTest, ColoursOfASplitAreCommunicatorsOfTheirOwn) {
  const Environment shared = {{"STUB_UNIQUE_ID", "one for all"}};
  const SegmentSnapshot red = After("id init=4,0 split=1", shared);
  const SegmentSnapshot blue = After("id init=4,2 split=2", shared);
  EXPECT_NE(red.communicators[1].id, blue.communicators[1].id);
  EXPECT_EQ(red.communicators[1].split_id, blue.communicators[1].split_id);
  EXPECT_EQ(blue.communicators[1].parent_rank, 2);
  EXPECT_EQ(blue.communicators[1].parent_size, 4);
}

TEST_F(LibraryCommunicatorsTest, SurvivorsMayListTheExcludedInAnyOrder) {
  const Environment shared = {{"STUB_UNIQUE_ID", "one for all"}};
  const SegmentSnapshot one = After("id init=4,0 shrink=1,3", shared);
  const SegmentSnapshot other = After("id init=4,2 shrink=3,1", shared);
  EXPECT_EQ(one.communicators[1].id, other.communicators[1].id);
  EXPECT_EQ(one.communicators[1].size, 2);
  EXPECT_NE(After("id init=4,0 shrink=1,2", shared).communicators[1].id, one.communicators[1].id);
}

TEST_F(LibraryCommunicatorsTest, WhoIsPassedOverBySplitHasNoChild) {
  const SegmentSnapshot segment = After("id init=2,0 split=-1 on=0 all_reduce");
  ASSERT_EQ(segment.communicators.size(), 2u);
  EXPECT_EQ(segment.communicators[1].state, CommState::kPassedOver);
  EXPECT_EQ(segment.communicators[0].entered, 1u);
}

TEST_F(LibraryCommunicatorsTest, AUniqueIdThatServesTwiceMakesTwoCommunicators) {
  const Environment shared = {{"STUB_UNIQUE_ID", "one for all"}};
  const SegmentSnapshot zero = After("id init=2,0 destroy init=2,0", shared);
  const SegmentSnapshot one = After("id init=2,1 destroy init=2,1", shared);
  ASSERT_EQ(zero.communicators.size(), 2u);
  EXPECT_NE(zero.communicators[0].id, zero.communicators[1].id);
  EXPECT_EQ(zero.communicators[0].id, one.communicators[0].id);
  EXPECT_EQ(zero.communicators[1].id, one.communicators[1].id);
}

TEST_F(LibraryCommunicatorsTest, TwoRanksOfOneProcessShareTheirId) {
  const SegmentSnapshot segment = After("id init=2,0 init=2,1");
  EXPECT_EQ(segment.communicators[0].id, segment.communicators[1].id);
}

TEST_F(LibraryCommunicatorsTest, AReusedAddressIsTheNewCommunicator) {
  const SegmentSnapshot segment =
      After("id init=2,0 all_reduce all_reduce destroy id init=2,0 all_reduce");
  ASSERT_EQ(segment.communicators.size(), 2u);
  EXPECT_EQ(segment.communicators[0].entered, 2u);
  EXPECT_EQ(segment.communicators[0].state, CommState::kDestroyed);
  EXPECT_EQ(segment.communicators[1].entered, 1u);
  EXPECT_EQ(segment.communicators[1].state, CommState::kReady);
}

TEST_F(LibraryCommunicatorsTest, AnEndThatFailsIsNotAnEnd) {
  const CommSnapshot comm =
      CommAfter("id init=2,0 env=STUB_FAIL=ncclCommDestroy !destroy all_reduce");
  EXPECT_EQ(comm.state, CommState::kReady);
  EXPECT_EQ(comm.entered, 1u);
}

TEST_F(LibraryCommunicatorsTest, DistinguishesEachWayToEnd) {
  EXPECT_EQ(CommAfter("id init=2,0 finalize").state, CommState::kFinalized);
  EXPECT_EQ(CommAfter("id init=2,0 finalize destroy").state, CommState::kDestroyed);
  EXPECT_EQ(CommAfter("id init=2,0 abort").state, CommState::kAborted);
  EXPECT_EQ(CommAfter("id init=2,0 revoke").state, CommState::kRevoked);
  EXPECT_EQ(CommAfter("id env=STUB_FAIL=ncclCommInitRank !init=2,0").state, CommState::kFailed);
}

TEST_F(LibraryCommunicatorsTest, EveryWayToBeginIsSeen) {
  for (const char* how : {"init=2,1", "init_config=2,1", "init_scalable=2,1"}) {
    const CommSnapshot comm = CommAfter(std::string("id ") + how + " all_reduce");
    EXPECT_EQ(comm.state, CommState::kReady) << how;
    EXPECT_EQ(comm.rank, 1) << how;
    EXPECT_EQ(comm.size, 2) << how;
    EXPECT_EQ(comm.entered, 1u) << how;
  }
}

TEST_F(LibraryCommunicatorsTest, OneProcessMayHoldAllRanks) {
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

TEST_F(LibraryCommunicatorsTest, AnAsynchronousErrorIsKept) {
  EXPECT_EQ(CommAfter("id init=2,0 async_error").async_error, 0u);
  EXPECT_EQ(CommAfter("id init=2,0 async_error env=STUB_ASYNC_ERROR=1 async_error").async_error,
            6u);  // ncclRemoteError
}

TEST_F(LibraryCommunicatorsTest, EndedCommunicatorsMakeRoomForNewOnes) {
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

TEST_F(LibraryCommunicatorsTest, CommunicatorsBeyondTheTableAreCountedAndWorkUnseen) {
  std::string steps = "id";
  for (uint32_t i = 0; i < segment::kCommCapacity + 2; ++i) steps += " init=2,0";
  const SegmentSnapshot segment = After(steps + " all_reduce");
  EXPECT_EQ(segment.communicators.size(), segment::kCommCapacity);
  EXPECT_EQ(segment.lost_communicators, 2u);
  EXPECT_EQ(segment.unknown_comm_calls, 1u);
  const std::string said = Stderr();
  EXPECT_EQ(std::count(said.begin(), said.end(), '\n'), 1) << said;
}

// Ranks that have one from the beginning would see that this one's first call is the others'
// hundredth.
TEST_F(LibraryCommunicatorsTest, NeverRecordsACommunicatorThatFoundNoRoom) {
  std::string steps = "id";
  for (uint32_t i = 0; i < segment::kCommCapacity; ++i) steps += " init=2,0";
  const SegmentSnapshot segment =
      After(steps + " on=0 window window on=5 destroy on=0 window window");
  EXPECT_EQ(segment.lost_communicators, 1u);
  EXPECT_EQ(segment.communicators[5].state, CommState::kDestroyed);
  EXPECT_EQ(segment.unknown_comm_calls, 4u);
}

}  // namespace
}  // namespace rollcall
