// SPDX-License-Identifier: Apache-2.0
// The calls of UCC as the preloaded library records them. A stub has the names and arguments of its
// public header.
#include "library_steps.h"

namespace rollcall {
namespace {

using segment::CommState;

class UccTest : public PreloadedProcessTest {
 protected:
  UccTest() : PreloadedProcessTest(ROLLCALL_STUB_DIR) {}

  SegmentSnapshot After(const std::string& steps, const std::string& rank = "1",
                        const Environment& more = {}) {
    StartOver();
    std::vector<std::string> command = {UCC_STEPS};
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
  uint64_t LastId(const std::string& steps, const std::string& rank) {
    return After(steps, rank).communicators.back().id;
  }
};

TEST_F(UccTest, ATeamOfAllRanksIsACommunicator) {
  const CommSnapshot team = WorldAfter("destroy");
  EXPECT_EQ(team.kind, CommKind::kUcc);
  EXPECT_EQ(team.state, CommState::kDestroyed);
  EXPECT_EQ(team.rank, 1);
  EXPECT_EQ(team.size, 4);
  EXPECT_EQ(LastId("", "3"), team.id);
  EXPECT_NE(LastId("world", "3"), team.id);
  EXPECT_EQ(LastId("world", "3"), LastId("world", "0"));
}

TEST_F(UccTest, ATeamThatIsNotCreatedYetIsInitializing) {
  const CommSnapshot team = WorldAfter("", {{"STUB_ENDS_IN", "ucc_team_create_test"}});
  EXPECT_EQ(team.state, CommState::kInitializing);
}

TEST_F(UccTest, ATeamIsKnownByItsMembers) {
  EXPECT_EQ(LastId("stride", "1"), LastId("stride", "3"));
  EXPECT_EQ(LastId("array", "1"), LastId("stride", "3"));
  EXPECT_NE(LastId("stride", "1"), LastId("stride", "0"));
  EXPECT_EQ(LastId("id", "1"), LastId("id", "3"));
  EXPECT_NE(LastId("id", "1"), LastId("id", "0"));
  const CommSnapshot part = After("stride", "3").communicators.at(1);
  EXPECT_EQ(part.rank, 1);
  EXPECT_EQ(part.size, 2);
}

TEST_F(UccTest, ATeamWithUnknownMembersIsNotRecorded) {
  EXPECT_EQ(After("unknown").communicators.size(), 1u);
  EXPECT_EQ(After("short").communicators.size(), 1u);
}

TEST_F(UccTest, TeamsOfAContextThatIsNotOfAllRanksAreNotRecorded) {
  EXPECT_EQ(After("", "1", {{"WORLD_SIZE", ""}}).communicators.size(), 1u);
  EXPECT_TRUE(After("", "1", {{"WORLD_SIZE", "8"}}).communicators.empty());
}

TEST_F(UccTest, AVersionWithOtherLayoutsIsNotRecorded) {
  EXPECT_TRUE(After("calls", "1", {{"STUB_VERSION", "0"}}).communicators.empty());
}

TEST_F(UccTest, RecordsParentAndRankOfAPartOfATeam) {
  const std::vector<CommSnapshot> comms = After("part", "3").communicators;
  ASSERT_EQ(comms.size(), 2u);
  EXPECT_EQ(comms[1].parent_id, comms[0].id);
  EXPECT_EQ(comms[1].rank, 1);
  EXPECT_EQ(comms[1].size, 2);
  EXPECT_EQ(comms[1].state, CommState::kReady);
  EXPECT_EQ(LastId("part", "1"), comms[1].id);
  EXPECT_EQ(After("part", "2").communicators.at(1).state, CommState::kPassedOver);
}

TEST_F(UccTest, CallsHaveNcclsNamesAndTypes) {
  const CommSnapshot team = WorldAfter("calls");
  ASSERT_EQ(Ops(team), (std::vector<Op>{Op::kAllReduce, Op::kBroadcast, Op::kBarrier, Op::kReduce,
                                        Op::kAllReduce}));
  EXPECT_STREQ(DtypeName(team.records[0].dtype), "float32");
  EXPECT_STREQ(ReductionName(team.records[0].reduction), "avg");
  EXPECT_EQ(team.records[0].count, 24u);
  EXPECT_STREQ(DtypeName(team.records[1].dtype), "int16");
  EXPECT_EQ(team.records[1].peer, 2);
  EXPECT_EQ(team.records[2].dtype, kNoDtype);
  EXPECT_EQ(team.records[3].count, 6u);
  EXPECT_EQ(team.records[4].dtype, kNoDtype);
  EXPECT_EQ(team.returned, 5u);
}

TEST_F(UccTest, AllRanksHaveOneSignature) {
  EXPECT_EQ(WorldAfter("calls").signature, After("calls", "0").communicators.at(0).signature);
}

TEST_F(UccTest, ACallOfAnActiveSetTakesNoPosition) {
  EXPECT_EQ(WorldAfter("messages").entered, 0u);
}

TEST_F(UccTest, OfACallWithACallbackOnlyWhatTheCallbackPostsIsRecorded) {
  const CommSnapshot team = WorldAfter("callback");
  EXPECT_EQ(Ops(team), (std::vector<Op>{Op::kBarrier, Op::kBarrier}));
  EXPECT_EQ(team.returned, 2u);
}

TEST_F(UccTest, EachPostOfAPersistentRequestIsACall) {
  const CommSnapshot team = WorldAfter("persistent");
  EXPECT_EQ(team.entered, 3u);
  EXPECT_EQ(team.returned, 3u);
}

TEST_F(UccTest, OtherWaysToPostAreCallsToo) {
  const CommSnapshot team = WorldAfter("others");
  EXPECT_EQ(Ops(team), (std::vector<Op>{Op::kAllReduce, Op::kAllReduce}));
  EXPECT_EQ(team.returned, 2u);
}

TEST_F(UccTest, ACallThatUccRefusesTakesNoPosition) {
  const CommSnapshot team = WorldAfter("calls", {{"STUB_REFUSES", "1"}});
  EXPECT_EQ(team.entered, 0u);
  EXPECT_NE(team.records.at(0).result, 0);
}

TEST_F(UccTest, AnOpenCallIsNotAWaitUntilAThreadTestsIt) {
  const Environment slow = {{"STUB_PROGRESS", "3"}};
  const SegmentSnapshot idle = After("open", "1", slow);
  EXPECT_EQ(idle.communicators.at(0).entered, 2u);
  EXPECT_EQ(idle.communicators.at(0).returned, 0u);
  EXPECT_TRUE(idle.blocked.empty());
  const SegmentSnapshot testing = After("open progress progress", "1", slow);
  ASSERT_EQ(testing.blocked.size(), 1u);
  EXPECT_EQ(testing.blocked[0].op, static_cast<uint32_t>(Op::kucc_context_progress));
  EXPECT_EQ(testing.blocked[0].comm, testing.communicators.at(0).index);
  EXPECT_EQ(testing.blocked[0].stream, 1u);
  EXPECT_EQ(testing.blocked[0].polls, 2u);
}

TEST_F(UccTest, AThreadThatProgressesAnotherContextInTurnStillWaits) {
  const SegmentSnapshot segment =
      After("open progress other progress other", "1", {{"STUB_PROGRESS", "9"}});
  ASSERT_EQ(segment.blocked.size(), 1u);
  EXPECT_EQ(segment.blocked[0].op, static_cast<uint32_t>(Op::kucc_context_progress));
  EXPECT_EQ(segment.blocked[0].polls, 2u);
}

TEST_F(UccTest, TheEndOfACallIsSeenInTheLoop) {
  const SegmentSnapshot segment =
      After("open progress progress progress", "1", {{"STUB_PROGRESS", "3"}});
  EXPECT_EQ(segment.communicators.at(0).returned, 2u);
  EXPECT_TRUE(segment.blocked.empty());
}

#if defined(__x86_64__)
TEST_F(UccTest, ARequestThatIsUsedAgainWhileAThreadLooksAtItsEndIsOpen) {
  const CommSnapshot team = WorldAfter("reuse", {{"STUB_REUSES", "1"}});
  EXPECT_EQ(team.entered, 2u);
  EXPECT_EQ(team.returned, 1u);
}
#endif

TEST_F(UccTest, NothingIsReadOfTheRequestsOfAnEndedContext) {
  const SegmentSnapshot segment = After("open destroy end", "1", {{"STUB_PROGRESS", "9"}});
  EXPECT_EQ(segment.communicators.at(0).state, CommState::kDestroyed);
}

}  // namespace
}  // namespace rollcall
