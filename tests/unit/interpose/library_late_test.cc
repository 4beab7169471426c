// SPDX-License-Identifier: Apache-2.0
// Non-blocking communicators: the library's records of calls that return before they are done.
#include "library_steps.h"

namespace rollcall {
namespace {

using segment::CommState;

// Calls return before their launch. CommGetAsyncError reports the launch.
class NonBlockingTest : public LibraryStepsTest {
 protected:
  // After a communicator was made, and these steps.
  CommSnapshot Then(const std::string& steps) {
    return CommAfter("env=STUB_LATE=ncclAllReduce id init_config=2,0,0 " + steps);
  }
};

bool HasMarkers(const CommSnapshot& comm) { return (comm.flags & segment::kFlagMarkers) != 0; }

TEST_F(NonBlockingTest, ANonBlockingCommunicatorIsReadyWhenItReportsSuccess) {
  const Environment on_its_way = {{"STUB_IN_PROGRESS", "1"}};
  EXPECT_EQ(CommAfter("id init_config=2,0,0 async_error", on_its_way).state,
            CommState::kInitializing);
  const CommSnapshot comm = CommAfter(
      "id init_config=2,0,0 async_error env=STUB_IN_PROGRESS=0 async_error all_reduce", on_its_way);
  EXPECT_EQ(comm.state, CommState::kReady);
  EXPECT_NE(comm.flags & segment::kFlagNonBlocking, 0u);
  EXPECT_EQ(comm.entered, 1u);
}

TEST_F(NonBlockingTest, ACallGetsItsMarkerWhenItsThreadLearnsOfTheLaunch) {
  EXPECT_FALSE(HasMarkers(Then("all_reduce")));
  const CommSnapshot once = Then("all_reduce async_error");
  EXPECT_TRUE(HasMarkers(once));
  EXPECT_EQ(once.started, 1u);
  EXPECT_EQ(once.finished, 1u);
  const CommSnapshot again = Then("all_reduce async_error all_reduce");
  EXPECT_TRUE(HasMarkers(again));
  EXPECT_EQ(again.started, 2u);
  EXPECT_EQ(again.finished, 1u);
}

TEST_F(NonBlockingTest, TheHostWaitsUntilAnyThreadLearnsOfTheLaunch) {
  const std::string call = "env=STUB_LATE=ncclAllReduce id init_config=2,0,0 all_reduce";
  const SegmentSnapshot waiting = After(call);
  ASSERT_EQ(waiting.blocked.size(), 1u);
  EXPECT_EQ(static_cast<Op>(waiting.blocked[0].op), Op::kAllReduce);
  EXPECT_EQ(waiting.communicators[0].entered, 1u);
  EXPECT_EQ(waiting.communicators[0].returned, 0u);
  EXPECT_EQ(waiting.communicators[0].records[0].returned_ns, 0);
  for (const char* told : {" async_error", " thread async_error join"}) {
    const SegmentSnapshot launched = After(call + told);
    EXPECT_TRUE(launched.blocked.empty()) << told;
    EXPECT_EQ(launched.communicators[0].returned, 1u) << told;
    EXPECT_NE(launched.communicators[0].records[0].returned_ns, 0) << told;
  }
  const SegmentSnapshot unasked = After(call + " all_reduce all_reduce");
  EXPECT_EQ(unasked.communicators[0].entered, 3u);
  EXPECT_EQ(unasked.communicators[0].returned, 2u);
}

TEST_F(NonBlockingTest, AnAnswerFromBeforeACallDoesNotCountForIt) {
  const SegmentSnapshot waiting = After(
      "env=STUB_LATE=ncclAllReduce id init_config=2,0,0 env=STUB_CALL_MEANWHILE=1 async_error");
  ASSERT_EQ(waiting.blocked.size(), 1u);
  EXPECT_EQ(static_cast<Op>(waiting.blocked[0].op), Op::kAllReduce);
  EXPECT_EQ(waiting.communicators[0].entered, 1u);
  EXPECT_EQ(waiting.communicators[0].returned, 0u);
}

TEST_F(NonBlockingTest, ItsCreationLastsUntilItReportsSuccess) {
  const std::string init = "env=STUB_IN_PROGRESS=1 id init_config=2,0,0 async_error";
  const SegmentSnapshot waiting = After(init);
  EXPECT_EQ(waiting.communicators[0].state, CommState::kInitializing);
  ASSERT_EQ(waiting.blocked.size(), 1u);
  EXPECT_EQ(static_cast<Op>(waiting.blocked[0].op), Op::kCommInitRankConfig);
  const SegmentSnapshot ready = After(init + " env=STUB_IN_PROGRESS=0 async_error");
  EXPECT_EQ(ready.communicators[0].state, CommState::kReady);
  EXPECT_TRUE(ready.blocked.empty());
}

TEST_F(NonBlockingTest, NoThreadWaitsInADestroyedCommunicator) {
  for (const char* end : {" abort", " thread abort join", " thread destroy join"}) {
    EXPECT_TRUE(
        After("env=STUB_IN_PROGRESS=1 id init_config=2,0,0" + std::string(end)).blocked.empty());
    EXPECT_TRUE(
        After("env=STUB_LATE=ncclAllReduce id init_config=2,0,0 all_reduce" + std::string(end))
            .blocked.empty());
  }
}

TEST_F(NonBlockingTest, ItsFinalizeLastsUntilItReportsSuccess) {
  const std::string finalize = "env=STUB_LATE=ncclCommFinalize id init_config=2,0,0 finalize";
  const SegmentSnapshot waiting = After(finalize);
  EXPECT_EQ(waiting.communicators[0].state, CommState::kFinalizing);
  ASSERT_EQ(waiting.blocked.size(), 1u);
  EXPECT_EQ(static_cast<Op>(waiting.blocked[0].op), Op::kCommFinalize);
  const SegmentSnapshot over = After(finalize + " async_error");
  EXPECT_EQ(over.communicators[0].state, CommState::kFinalized);
  EXPECT_TRUE(over.blocked.empty());
}

TEST_F(NonBlockingTest, AnAnswerToAnotherThreadSetsNoMarker) {
  const CommSnapshot other = Then("all_reduce thread async_error join");
  EXPECT_FALSE(HasMarkers(other));
  EXPECT_EQ(other.finished, other.started);
  EXPECT_TRUE(HasMarkers(Then("all_reduce thread async_error join async_error")));
  EXPECT_FALSE(
      HasMarkers(Then("all_reduce async_error all_reduce thread async_error join "
                      "all_reduce async_error")));
}

TEST_F(NonBlockingTest, ACallThatIsLaunchedAtOnceIsMarkedAtOnce) {
  const CommSnapshot comm = Then("env=STUB_LATE=ncclSend all_reduce");
  EXPECT_TRUE(HasMarkers(comm));
  EXPECT_EQ(comm.finished, 1u);
}

TEST_F(NonBlockingTest, ACallThatIsRefusedIsNotMarked) {
  const CommSnapshot comm =
      Then("all_reduce async_error env=STUB_FAIL=ncclAllReduce !all_reduce async_error");
  EXPECT_TRUE(HasMarkers(comm));
  EXPECT_EQ(comm.entered, 1u);
  EXPECT_EQ(comm.finished, 1u);
}

TEST_F(NonBlockingTest, AGroupIsMarkedWhenItIsLaunched) {
  const std::string group = "env=STUB_LATE=ncclGroupEnd group_start all_reduce send=8,1 group_end";
  EXPECT_FALSE(HasMarkers(Then(group)));
  const CommSnapshot comm = Then(group + " async_error");
  EXPECT_TRUE(HasMarkers(comm));
  EXPECT_EQ(comm.finished, 1u);
  EXPECT_EQ(comm.p2p_finished, 1u);
}

TEST_F(NonBlockingTest, ItDelaysOthersOfItsGroupWhichThenHaveNoMarkers) {
  const SegmentSnapshot segment = After(
      "env=STUB_LATE=ncclGroupEnd id init=2,0 all_reduce id init_config=2,0,0 group_start "
      "all_reduce on=0 all_reduce group_end on=1 async_error");
  EXPECT_FALSE(HasMarkers(segment.communicators[0]));
  EXPECT_TRUE(HasMarkers(segment.communicators[1]));
}

TEST_F(NonBlockingTest, ALaterCommunicatorHasMarkersIfItsMakerLearnsOfSuccess) {
  const Environment on_its_way = {{"STUB_IN_PROGRESS", "1"}};
  const std::string made = "id init_config=2,0,0 async_error env=STUB_IN_PROGRESS=0 ";
  const std::string call = " env=STUB_LATE=ncclAllReduce all_reduce async_error";
  EXPECT_TRUE(HasMarkers(CommAfter(made + "async_error" + call, on_its_way)));
  EXPECT_TRUE(
      HasMarkers(CommAfter(made + "thread async_error join async_error" + call, on_its_way)));
  const CommSnapshot never_told = CommAfter(
      made + "thread async_error join env=STUB_LATE=ncclAllReduce all_reduce", on_its_way);
  EXPECT_EQ(never_told.state, CommState::kReady);
  EXPECT_FALSE(HasMarkers(never_told));
}

}  // namespace
}  // namespace rollcall
