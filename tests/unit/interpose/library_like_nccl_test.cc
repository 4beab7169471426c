// SPDX-License-Identifier: Apache-2.0
// The calls of HCCL and oneCCL, libraries like NCCL, as the preloaded library records them. Stubs
// have the names and arguments of their public headers.
#include "library_steps.h"

namespace rollcall {
namespace {

using segment::CommState;

class LikeNcclTest : public PreloadedProcessTest {
 protected:
  LikeNcclTest() : PreloadedProcessTest(ROLLCALL_STUB_DIR) {}

  SegmentSnapshot After(const std::string& command, const Environment& more = {}) {
    StartOver();
    EXPECT_EQ(Run(std::vector<std::string>(absl::StrSplit(command, ' ')), more), 0) << Stderr();
    return Read();
  }
  SegmentSnapshot AfterHccl(const std::string& steps, const Environment& more = {{"RANK", "1"}}) {
    return After(std::string(HCCL_STEPS) + " " + steps, more);
  }
};

TEST_F(LikeNcclTest, ACommunicatorOfHcclHasItsKindAndItsName) {
  const std::vector<CommSnapshot> comms = AfterHccl("destroy").communicators;
  ASSERT_EQ(comms.size(), 1u);
  EXPECT_EQ(comms[0].kind, CommKind::kHccl);
  EXPECT_EQ(comms[0].state, CommState::kDestroyed);
  EXPECT_EQ(comms[0].rank, 1);
  EXPECT_EQ(comms[0].size, 4);
  EXPECT_EQ(comms[0].name, "world");
  EXPECT_EQ(AfterHccl("", {{"RANK", "3"}}).communicators[0].id, comms[0].id);
}

TEST_F(LikeNcclTest, CallsOfHcclHaveNcclsNamesAndTypes) {
  const CommSnapshot comm = AfterHccl("calls").communicators.at(0);
  EXPECT_EQ(Ops(comm),
            (std::vector<Op>{Op::kAllReduce, Op::kBroadcast, Op::kSend, Op::kRecv, Op::kBarrier}));
  EXPECT_EQ(comm.entered, 3u);
  EXPECT_EQ(comm.p2p_entered, 2u);
  EXPECT_STREQ(DtypeName(comm.records[0].dtype), "float32");
  EXPECT_STREQ(ReductionName(comm.records[0].reduction), "max");
  EXPECT_EQ(comm.records[0].count, 24u);
  EXPECT_EQ(comm.records[0].stream, 0x5000u);
  EXPECT_STREQ(DtypeName(comm.records[1].dtype), "int16");
  EXPECT_EQ(comm.records[1].peer, 2);
  EXPECT_NE(comm.records[2].group, 0);
  EXPECT_EQ(comm.records[2].group, comm.records[3].group);
}

TEST_F(LikeNcclTest, MessagesOfABatchAreAGroup) {
  const CommSnapshot comm = AfterHccl("batch").communicators.at(0);
  ASSERT_EQ(Ops(comm), (std::vector<Op>{Op::kSend, Op::kRecv}));
  EXPECT_EQ(comm.records[0].peer, 2);
  EXPECT_EQ(comm.records[1].peer, 3);
  EXPECT_EQ(comm.records[1].count, 9u);
  EXPECT_EQ(comm.records[0].group, comm.records[1].group);
  EXPECT_EQ(comm.p2p_returned, 2u);
}

TEST_F(LikeNcclTest, ACallThatAProgramAsksForByItsNameIsRecorded) {
  EXPECT_EQ(Ops(AfterHccl("asked").communicators.at(0)), std::vector<Op>{Op::kBarrier});
}

TEST_F(LikeNcclTest, MembersOfAPartOfHcclComputeOneId) {
  const std::vector<CommSnapshot> first = AfterHccl("parts").communicators;
  const std::vector<CommSnapshot> second = AfterHccl("parts", {{"RANK", "3"}}).communicators;
  ASSERT_EQ(first.size(), 2u);
  EXPECT_EQ(first[1].id, second.at(1).id);
  EXPECT_NE(first[1].id, first[0].id);
  EXPECT_EQ(first[1].rank, 0);
  EXPECT_EQ(second[1].rank, 1);
  EXPECT_EQ(first[1].size, 2);
  EXPECT_EQ(Ops(first[1]), std::vector<Op>{Op::kAllGather});
}

TEST_F(LikeNcclTest, ACommunicatorFromAFileOfRanksHasTheirNumber) {
  EXPECT_EQ(AfterHccl("file").communicators.at(1).size, 8);
  const Environment stuck = {
      {"RANK", "1"}, {"RANK_SIZE", "6"}, {"STUB_ENDS_IN", "HcclCommInitClusterInfo"}};
  EXPECT_EQ(AfterHccl("file", stuck).communicators.at(1).size, 6);
}

TEST_F(LikeNcclTest, AProcessMayHoldAllRanksOfACommunicatorOfHccl) {
  const std::vector<CommSnapshot> comms = AfterHccl("all all").communicators;
  ASSERT_EQ(comms.size(), 5u);
  for (int rank : {0, 1}) {
    const CommSnapshot& comm = comms[1 + static_cast<size_t>(rank)];
    EXPECT_EQ(comm.kind, CommKind::kHccl);
    EXPECT_EQ(comm.rank, rank);
    EXPECT_EQ(comm.size, 2);
    EXPECT_EQ(Ops(comm), std::vector<Op>{Op::kBarrier});
  }
  EXPECT_EQ(comms[1].id, comms[2].id);
  EXPECT_NE(comms[1].id, comms[3].id);
}

TEST_F(LikeNcclTest, AThreadThatWaitsInHcclIsBlockedThere) {
  for (const auto& [step, function, op] :
       {std::tuple("calls", "HcclBroadcast", Op::kBroadcast),
        std::tuple("calls wait", "aclrtSynchronizeStream", Op::kaclrtSynchronizeStream),
        std::tuple("calls", "HcclGroupEnd", Op::kGroupEnd),
        std::tuple("", "HcclCommInitRootInfoConfig", Op::kCommInitRankConfig)}) {
    const SegmentSnapshot segment = AfterHccl(step, {{"RANK", "1"}, {"STUB_ENDS_IN", function}});
    ASSERT_EQ(segment.blocked.size(), 1u) << function;
    EXPECT_EQ(segment.blocked[0].op, static_cast<uint32_t>(op)) << function;
  }
}

TEST_F(LikeNcclTest, OneCclIsRecordedAsNcclIs) {
  const std::vector<CommSnapshot> comms = After(ONECCL_STEPS).communicators;
  ASSERT_EQ(comms.size(), 3u);
  const CommSnapshot& world = comms[0];
  EXPECT_EQ(world.kind, CommKind::kOneCcl);
  EXPECT_EQ(world.rank, 1);
  EXPECT_EQ(world.size, 3);
  EXPECT_EQ(world.state, CommState::kDestroyed);
  EXPECT_EQ(Ops(world), (std::vector<Op>{Op::kAllReduce, Op::kAlltoAll, Op::kSend, Op::kRecv}));
  EXPECT_STREQ(ReductionName(world.records[0].reduction), "avg");
  EXPECT_STREQ(DtypeName(world.records[1].dtype), "int32");
  EXPECT_EQ(comms[1].parent_id, world.id);
  EXPECT_EQ(comms[1].rank, 1);
  EXPECT_EQ(comms[1].size, 3);
  EXPECT_EQ(Ops(comms[1]), std::vector<Op>{Op::kBroadcast});
  EXPECT_EQ(comms[2].state, CommState::kPassedOver);
}

}  // namespace
}  // namespace rollcall
