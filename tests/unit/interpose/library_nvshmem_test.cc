// SPDX-License-Identifier: Apache-2.0
// NVSHMEM's host calls as the preloaded library records them. A stub has the names and arguments of
// its public headers.
#include "library_steps.h"

namespace rollcall {
namespace {

using segment::CommState;

class NvshmemTest : public PreloadedProcessTest {
 protected:
  NvshmemTest() : PreloadedProcessTest(ROLLCALL_STUB_DIR) {}

  SegmentSnapshot After(const std::string& steps, const std::string& rank = "1",
                        const Environment& more = {}) {
    StartOver();
    std::vector<std::string> command = {NVSHMEM_STEPS};
    for (const auto step : absl::StrSplit(steps, ' ', absl::SkipEmpty()))
      command.emplace_back(step);
    Environment all = more;
    all.emplace("RANK", rank);
    all.emplace("WORLD_SIZE", "4");
    EXPECT_EQ(Run(command, all), 0) << Stderr();
    return Read();
  }
  CommSnapshot WorldAfter(const std::string& steps, const Environment& more = {}) {
    return After(steps, "1", more).communicators.at(0);
  }
  CommSnapshot Last(const std::string& steps, const std::string& rank) {
    return After(steps, rank).communicators.back();
  }
};

TEST_F(NvshmemTest, TheTeamOfAllPesIsACommunicator) {
  for (const std::string start : {"", "id"}) {
    const CommSnapshot world = WorldAfter(start);
    EXPECT_EQ(world.kind, CommKind::kNvshmem);
    EXPECT_EQ(world.state, CommState::kReady);
    EXPECT_EQ(world.rank, 1);
    EXPECT_EQ(world.size, 4);
    EXPECT_EQ(Last(start, "3").id, world.id);
  }
  EXPECT_NE(WorldAfter("id").id, WorldAfter("").id);
}

TEST_F(NvshmemTest, AStartByAUniqueIdIsSeenBeforeItEnds) {
  const SegmentSnapshot segment = After("id", "1", {{"STUB_ENDS_IN", "nvshmem_init"}});
  EXPECT_EQ(segment.communicators.at(0).state, CommState::kInitializing);
  ASSERT_EQ(segment.blocked.size(), 1u);
  EXPECT_EQ(segment.blocked[0].op, static_cast<uint32_t>(Op::knvshmem_init));
}

TEST_F(NvshmemTest, AStartByTheHostLibraryAloneIsTheSameStart) {
  for (const Environment& how : {Environment{{"BY_HOST_LIBRARY", "1"}},
                                 Environment{{"BY_HOST_LIBRARY", "1"}, {"STUB_NESTS", "1"}}}) {
    const SegmentSnapshot segment = After("id host", "1", how);
    ASSERT_EQ(segment.communicators.size(), 1u);
    EXPECT_EQ(segment.communicators[0].id, WorldAfter("id").id);
    EXPECT_EQ(segment.communicators[0].entered, 4u);
    EXPECT_EQ(WorldAfter("id again host_end", how).state, CommState::kReady);
    EXPECT_EQ(WorldAfter("id again host_end host_end", how).state, CommState::kDestroyed);
  }
}

TEST_F(NvshmemTest, AnIdInArgumentsOfAnotherVersionIsNotRead) {
  EXPECT_EQ(WorldAfter("id", {{"ATTR_VERSION", "2"}}).id, WorldAfter("id").id);
  EXPECT_EQ(WorldAfter("id", {{"ATTR_VERSION", "3"}}).id, WorldAfter("").id);
}

TEST_F(NvshmemTest, OfAPartOfTheJobWithoutAUniqueIdNothingIsRecorded) {
  EXPECT_TRUE(After("host", "1", {{"WORLD_SIZE", "8"}}).communicators.empty());
  EXPECT_EQ(After("id host", "1", {{"WORLD_SIZE", "8"}}).communicators.size(), 1u);
}

TEST_F(NvshmemTest, BarriersAreOneCallOnTheHostAndOnAStream) {
  const std::vector<Op> ops = {Op::kBarrier, Op::kBarrier, Op::kSync, Op::kSync};
  const CommSnapshot host = WorldAfter("host"), stream = WorldAfter("stream");
  EXPECT_EQ(Ops(host), ops);
  EXPECT_EQ(Ops(stream), ops);
  EXPECT_EQ(host.signature, stream.signature);
  EXPECT_EQ(stream.records[0].stream, 0x5000u);
  EXPECT_EQ(host.returned, 4u);
}

TEST_F(NvshmemTest, AThreadThatWaitsInABarrierIsBlockedThere) {
  for (const std::string function :
       {"nvshmem_barrier_all", "nvshmem_barrier", "nvshmem_sync_all", "nvshmem_team_sync"}) {
    const SegmentSnapshot segment = After("host", "1", {{"STUB_ENDS_IN", function}});
    ASSERT_EQ(segment.blocked.size(), 1u) << function;
    EXPECT_EQ(segment.blocked[0].comm, segment.communicators.at(0).index);
  }
}

TEST_F(NvshmemTest, TypedCollectivesHaveNcclsNamesAndTypes) {
  const CommSnapshot world = WorldAfter("typed");
  ASSERT_EQ(Ops(world),
            (std::vector<Op>{Op::kAllReduce, Op::kReduceScatter, Op::kBroadcast, Op::kAlltoAll}));
  EXPECT_STREQ(DtypeName(world.records[0].dtype), "float32");
  EXPECT_STREQ(ReductionName(world.records[0].reduction), "sum");
  EXPECT_EQ(world.records[0].count, 24u);
  EXPECT_STREQ(DtypeName(world.records[1].dtype), "int16");
  EXPECT_EQ(world.records[2].peer, 2);
  EXPECT_STREQ(DtypeName(world.records[3].dtype), "uint8");
}

TEST_F(NvshmemTest, MembersOfAPartComputeOneIdAndOtherPartsAnotherOne) {
  const SegmentSnapshot segment = After("parts", "3");
  const CommSnapshot& part = segment.communicators.at(1);
  EXPECT_EQ(part.parent_id, segment.communicators.at(0).id);
  EXPECT_EQ(part.rank, 1);
  EXPECT_EQ(part.size, 2);
  EXPECT_EQ(part.state, CommState::kDestroyed);
  EXPECT_EQ(Ops(part), std::vector<Op>{Op::kBarrier});
  EXPECT_EQ(Last("parts", "1").id, part.id);
  EXPECT_NE(Last("parts", "0").id, part.id);
  EXPECT_EQ(Last("parts", "0").split_id, part.split_id);
}

TEST_F(NvshmemTest, APeOutsideOfAPartIsPassedOver) {
  EXPECT_EQ(Last("first", "1").state, CommState::kReady);
  EXPECT_EQ(Last("first", "2").state, CommState::kPassedOver);
}

TEST_F(NvshmemTest, ASplitInTwoDirectionsMakesTwoTeams) {
  const std::vector<CommSnapshot> third = After("grid", "3").communicators;
  ASSERT_EQ(third.size(), 3u);
  EXPECT_EQ(After("grid", "2").communicators.at(1).id, third[1].id);
  EXPECT_NE(After("grid", "1").communicators.at(1).id, third[1].id);
  EXPECT_EQ(After("grid", "1").communicators.at(2).id, third[2].id);
  EXPECT_NE(After("grid", "2").communicators.at(2).id, third[2].id);
  EXPECT_EQ(third[2].rank, 1);
}

TEST_F(NvshmemTest, ATeamByAUniqueIdIsACommunicator) {
  EXPECT_EQ(Last("team", "1").id, Last("team", "2").id);
  EXPECT_EQ(Last("team", "2").rank, 2);
}

TEST_F(NvshmemTest, OtherTeamsThatNvshmemMakesAreNotRecorded) {
  const SegmentSnapshot segment = After("node", "3");
  ASSERT_EQ(segment.communicators.size(), 1u);
  EXPECT_EQ(segment.communicators[0].entered, 0u);
}

TEST_F(NvshmemTest, TheLastEndEndsAllTeams) {
  EXPECT_EQ(WorldAfter("again end").state, CommState::kReady);
  for (const CommSnapshot& comm : After("grid again end end").communicators) {
    EXPECT_EQ(comm.state, CommState::kDestroyed);
  }
}

}  // namespace
}  // namespace rollcall
