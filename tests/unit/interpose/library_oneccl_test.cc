// SPDX-License-Identifier: Apache-2.0
// The calls of oneCCL's C++ interface, as the preloaded library records them. A stub has the names
// and arguments of its public headers.
#include "library_steps.h"

namespace rollcall {
namespace {

using segment::CommState;

class OneCclTest : public PreloadedProcessTest {
 protected:
  OneCclTest() : PreloadedProcessTest(ROLLCALL_STUB_DIR) {}

  SegmentSnapshot After(const std::string& steps) {
    StartOver();
    std::vector<std::string> command = {ONECCL_CPP_STEPS};
    for (const auto step : absl::StrSplit(steps, ' ')) command.emplace_back(step);
    EXPECT_EQ(Run(command), 0) << steps << "\n" << Stderr();
    return Read();
  }
  CommSnapshot WorldAfter(const std::string& steps) {
    const SegmentSnapshot segment = After(steps);
    EXPECT_FALSE(segment.communicators.empty()) << steps;
    return segment.communicators.empty() ? CommSnapshot() : segment.communicators[0];
  }
};

TEST_F(OneCclTest, ACommunicatorHasTheIdOfItsStore) {
  const CommSnapshot world = WorldAfter("destroy");
  EXPECT_EQ(world.kind, CommKind::kOneCclEvents);
  EXPECT_EQ(world.rank, 1);
  EXPECT_EQ(world.size, 3);
  EXPECT_EQ(world.state, CommState::kDestroyed);
  EXPECT_EQ(WorldAfter("").id, world.id);
}

TEST_F(OneCclTest, CallsHaveNcclsNamesAndTypes) {
  const CommSnapshot world = WorldAfter("calls");
  ASSERT_EQ(Ops(world), (std::vector<Op>{Op::kAllReduce, Op::kAllReduce, Op::kBroadcast,
                                         Op::kAllGather, Op::kBarrier, Op::kAllReduce}));
  EXPECT_STREQ(DtypeName(world.records[0].dtype), "float32");
  EXPECT_STREQ(ReductionName(world.records[0].reduction), "max");
  EXPECT_EQ(world.records[0].count, 24u);
  EXPECT_STREQ(DtypeName(world.records[1].dtype), "float64");
  EXPECT_EQ(world.records[1].count, 8u);
  EXPECT_STREQ(DtypeName(world.records[2].dtype), "int16");
  EXPECT_EQ(world.records[2].peer, 2);
  EXPECT_STREQ(DtypeName(world.records[3].dtype), "uint16");
  EXPECT_EQ(world.records[3].count, 0u);  // ranks may have others
  EXPECT_STREQ(ReductionName(world.records[5].reduction), "min");
  EXPECT_EQ(world.entered, 6u);
  EXPECT_EQ(world.returned, 6u);
}

TEST_F(OneCclTest, ACallIsDoneWhenItsEventIs) {
  EXPECT_EQ(WorldAfter("open").returned, 0u);
  EXPECT_EQ(WorldAfter("open calls").returned, 0u);
  EXPECT_EQ(WorldAfter("open wait").returned, 1u);
  EXPECT_EQ(WorldAfter("open poll").returned, 0u);
  EXPECT_EQ(WorldAfter("open tests").returned, 1u);
  EXPECT_EQ(WorldAfter("dropped").returned, 1u);
}

TEST_F(OneCclTest, AThreadThatWaitsForAnEventIsBlockedInItsCall) {
  const SegmentSnapshot segment = After("calls open end wait");
  ASSERT_EQ(segment.blocked.size(), 1u);
  EXPECT_EQ(segment.blocked[0].op, static_cast<uint32_t>(Op::kwait));
  EXPECT_EQ(segment.blocked[0].stream, 7u);
}

TEST_F(OneCclTest, MessagesThatGoOnSideBySideAreAGroup) {
  const CommSnapshot world = WorldAfter("messages");
  ASSERT_EQ(Ops(world), (std::vector<Op>{Op::kSend, Op::kRecv}));
  EXPECT_EQ(world.records[0].peer, 2);
  EXPECT_EQ(world.records[1].peer, 0);
  EXPECT_NE(world.records[0].group, 0);
  EXPECT_EQ(world.records[0].group, world.records[1].group);
  EXPECT_EQ(world.p2p_returned, 2u);
  EXPECT_EQ(WorldAfter("unsent end wait").p2p_returned, 0u);
}

TEST_F(OneCclTest, ExceptionsPassAndEndTheRecord) {
  const std::vector<CommSnapshot> comms = After("throws calls").communicators;
  ASSERT_EQ(comms.size(), 2u);
  EXPECT_EQ(comms[0].entered, 7u);  // without the call that oneCCL refused
  EXPECT_EQ(comms[0].returned, 7u);
  EXPECT_EQ(comms[1].state, CommState::kFailed);
}

TEST_F(OneCclTest, PartsHaveIdsOfTheirParentAndColour) {
  const std::vector<CommSnapshot> comms = After("split part").communicators;
  ASSERT_EQ(comms.size(), 3u);
  EXPECT_EQ(comms[1].parent_id, comms[0].id);
  EXPECT_EQ(comms[1].rank, 0);
  EXPECT_EQ(comms[1].size, 2);
  EXPECT_EQ(comms[2].rank, 1);
  EXPECT_NE(comms[1].id, comms[2].id);
}

TEST_F(OneCclTest, ACommunicatorOfADeviceIsRecorded) {
  const std::vector<CommSnapshot> comms = After("pair calls").communicators;
  ASSERT_EQ(comms.size(), 2u);
  EXPECT_EQ(comms[0].state, CommState::kDestroyed);
  EXPECT_EQ(comms[1].rank, 1);
  EXPECT_EQ(comms[1].size, 3);
  EXPECT_EQ(comms[1].entered, 6u);
}

}  // namespace
}  // namespace rollcall
