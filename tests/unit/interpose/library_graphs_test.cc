// SPDX-License-Identifier: Apache-2.0
// Tests the records of CUDA graphs: captured calls take no position, launches do.
#include "library_steps.h"

namespace rollcall {
namespace {

class LibraryGraphsTest : public LibraryStepsTest {
 protected:
  static constexpr char kTwoCalls[] =
      "id init=2,0 all_reduce capture all_gather=3 broadcast=4,1 end_capture instantiate=0";
  static std::string AfterTwoCalls(const std::string& steps) {
    return std::string(kTwoCalls) + " " + steps;
  }
};

TEST_F(LibraryGraphsTest, ACommunicatorThatIsMadeMeanwhileBreaksNoCapture) {
  const CommSnapshot comm = CommAfter("id capture init=2,0 end_capture all_reduce");
  EXPECT_NE(comm.flags & segment::kFlagMarkers, 0u);
  EXPECT_EQ(comm.finished, 1u);
}

TEST_F(LibraryGraphsTest, ACapturedCallIsRecordedAndTakesNoPosition) {
  const CommSnapshot comm = CommAfter(kTwoCalls);
  EXPECT_EQ(comm.entered, 1u);
  EXPECT_EQ(comm.started, 1u);
  EXPECT_EQ(comm.signature, CommAfter("id init=2,0 all_reduce").signature);
  ASSERT_EQ(comm.records.size(), 3u);
  EXPECT_EQ(comm.records[1].flags, segment::kRecordCaptured);
  EXPECT_EQ(comm.records[1].position, 1u);
  EXPECT_NE(comm.records[1].returned_ns, 0);
}

TEST_F(LibraryGraphsTest, ALaunchTakesThePositionsOfTheCallsThatTheGraphHolds) {
  const CommSnapshot comm = CommAfter(AfterTwoCalls("launch launch all_reduce"));
  EXPECT_EQ(comm.entered, 6u);
  EXPECT_EQ(comm.returned, 6u);
  EXPECT_EQ(comm.started, 6u);
  EXPECT_EQ(comm.finished, 6u);
  EXPECT_EQ(comm.signature, CommAfter("id init=2,0 all_reduce all_gather=3 broadcast=4,1 "
                                      "all_gather=3 broadcast=4,1 all_reduce")
                                .signature);
  ASSERT_EQ(comm.records.size(), 8u);
  EXPECT_EQ(comm.records[6].position, 4u);
  EXPECT_EQ(comm.records[6].flags, segment::kRecordReplayed);
  EXPECT_EQ(static_cast<Op>(comm.records[6].op), Op::kBroadcast);
  EXPECT_EQ(comm.records[6].count, 4u);
  EXPECT_EQ(comm.records[6].peer, 1);
  EXPECT_NE(comm.records[6].returned_ns, 0);
}

TEST_F(LibraryGraphsTest, RecordsOfALaunchNameTheirGraph) {
  const CommSnapshot comm =
      CommAfter(AfterTwoCalls("capture all_reduce end_capture instantiate=1 launch=0 launch=1 "
                              "launch=0"));
  ASSERT_EQ(comm.graph_launches.size(), 3u);
  EXPECT_EQ(comm.graph_launches[0].graph, 1u);
  EXPECT_EQ(comm.graph_launches[0].launch, 1u);
  EXPECT_EQ(comm.graph_launches[1].graph, 2u);
  EXPECT_EQ(comm.graph_launches[1].records, 1u);
  EXPECT_EQ(comm.graph_launches[2].graph, 1u);
  EXPECT_EQ(comm.graph_launches[2].launch, 2u);
  EXPECT_EQ(comm.graph_launches[2].records, 2u);
  EXPECT_EQ(comm.records.at(comm.graph_launches[2].first_record).count, 3u);
}

TEST_F(LibraryGraphsTest, SendsAndGroupsKeepTheirMeaning) {
  const CommSnapshot comm = CommAfter(
      "id init=2,0 capture group_start send=2,1 recv=2,1 group_end send=3,1 end_capture "
      "instantiate=0 launch launch");
  EXPECT_EQ(comm.entered, 0u);
  EXPECT_EQ(comm.p2p_entered, 6u);
  EXPECT_EQ(comm.p2p_finished, 6u);
  ASSERT_EQ(comm.records.size(), 9u);
  const auto group = [&](size_t i) { return comm.records[i].group; };
  EXPECT_EQ(group(3), group(4));
  EXPECT_EQ(group(6), group(7));
  EXPECT_NE(group(3), group(6));  // one launch's group is not the next one's
  EXPECT_EQ(group(5), 0);
}

TEST_F(LibraryGraphsTest, ALaunchThatFailsTakesNoPosition) {
  const CommSnapshot comm =
      CommAfter(AfterTwoCalls("env=STUB_FAIL=cudaGraphLaunch !launch env=STUB_FAIL= launch"));
  EXPECT_EQ(comm.entered, 3u);
  EXPECT_EQ(comm.signature,
            CommAfter("id init=2,0 all_reduce all_gather=3 broadcast=4,1").signature);
}

TEST_F(LibraryGraphsTest, ACallThatFailsIsNotPartOfTheGraph) {
  const CommSnapshot comm = CommAfter(
      "id init=2,0 capture all_reduce env=STUB_FAIL=ncclAllGather !all_gather env=STUB_FAIL= "
      "broadcast group_start send=2,1 send=2,1 env=STUB_FAIL=ncclGroupEnd !group_end "
      "env=STUB_FAIL= end_capture instantiate=0 launch");
  EXPECT_EQ(comm.entered, 2u);
  EXPECT_EQ(comm.p2p_entered, 0u);
}

TEST_F(LibraryGraphsTest, TheCallAfterAFailedOneIsTheFirst) {
  const CommSnapshot comm = CommAfter(
      "id init=2,0 capture env=STUB_FAIL=ncclAllReduce !all_reduce=3 env=STUB_FAIL= broadcast=5,1 "
      "end_capture instantiate=0 launch");
  EXPECT_EQ(comm.entered, 1u);
  EXPECT_EQ(static_cast<Op>(comm.records.back().op), Op::kBroadcast);
  EXPECT_EQ(comm.records.back().count, 5u);
}

TEST_F(LibraryGraphsTest, AGraphWhoseOnlyCallFailedHoldsNone) {
  const CommSnapshot comm = CommAfter(
      "id init=2,0 capture env=STUB_FAIL=ncclAllReduce group_start !all_reduce group_end "
      "!all_reduce env=STUB_FAIL= end_capture instantiate=0 launch all_reduce");
  EXPECT_EQ(comm.entered, 1u);
}

TEST_F(LibraryGraphsTest, MoreCommunicatorsThanAGraphKeepsPartsForAreCountedToo) {
  std::string steps, calls;
  for (int i = 0; i < 12; ++i) {
    steps += "id init=2,0 ";
    calls += "on=" + std::to_string(i) + " all_reduce ";
  }
  const SegmentSnapshot segment =
      After(steps + "capture " + calls + "end_capture instantiate=0 launch launch");
  ASSERT_EQ(segment.communicators.size(), 12u);
  for (const CommSnapshot& comm : segment.communicators) {
    EXPECT_EQ(comm.entered, 2u);
    EXPECT_EQ(comm.returned, 2u);
    EXPECT_NE(comm.records.back().returned_ns, 0);
  }
}

TEST_F(LibraryGraphsTest, CopiesUpdatesAndChildrenHoldTheSameCalls) {
  const CommSnapshot comm = CommAfter(AfterTwoCalls(
      "clone=0 end_graph=0 instantiate_by_driver=1 launch_by_driver=1 "  // 2 more calls
      "capture all_reduce end_capture update=0,2 launch=0 "              // 1
      "add_child=1,2 instantiate=1 launch=2 hip_launch=2"));             // 3, 3
  EXPECT_EQ(comm.entered, 10u);
}

TEST_F(LibraryGraphsTest, ALaunchIntoACaptureIsPartOfTheCapture) {
  const CommSnapshot comm =
      CommAfter(AfterTwoCalls("capture launch=0 all_reduce end_capture instantiate=1 launch=1"));
  EXPECT_EQ(comm.entered, 4u);
  EXPECT_EQ(comm.finished, 4u);
}

TEST_F(LibraryGraphsTest, TheLibraryForgetsADestroyedGraph) {
  const SegmentSnapshot segment =
      After(AfterTwoCalls("end_graph=0 launch=0 end_executable=0 capture end_capture instantiate=1 "
                          "launch=1"));
  ASSERT_EQ(segment.communicators.size(), 1u);
  EXPECT_EQ(segment.communicators[0].entered, 3u);
  EXPECT_EQ(segment.lost_graph_calls, 0u);
}

TEST_F(LibraryGraphsTest, MoreCallsThanARingHoldsAreAllCounted) {
  const CommSnapshot comm =
      CommAfter("id init=2,0 capture many=3000 end_capture instantiate=0 launch launch");
  EXPECT_EQ(comm.entered, 6000u);
  EXPECT_EQ(comm.signature, CommAfter("id init=2,0 many=3000 many=3000").signature);
}

TEST_F(LibraryGraphsTest, ACommunicatorThatHasEndedIsNotCalled) {
  const SegmentSnapshot segment = After(
      AfterTwoCalls("id init=2,1 capture on=0 all_reduce on=1 all_reduce end_capture instantiate=1 "
                    "on=0 destroy id init=2,0 launch=1"));
  ASSERT_EQ(segment.communicators.size(), 3u);
  EXPECT_EQ(segment.communicators[0].entered, 1u);
  EXPECT_EQ(segment.communicators[1].entered, 1u);
  EXPECT_EQ(segment.communicators[2].entered, 0u);
}

TEST_F(LibraryGraphsTest, MarkersInAGraphShowTheProgressOfALaunch) {
  const CommSnapshot comm = CommAfter(AfterTwoCalls("launch"), {{"ROLLCALL_GRAPH_MARKERS", "1"}});
  EXPECT_NE(comm.flags & segment::kFlagGraphMarkers, 0u);
  EXPECT_EQ(comm.started, 3u);
  EXPECT_EQ(comm.finished, 3u);
  EXPECT_EQ(CommAfter(kTwoCalls).flags & segment::kFlagGraphMarkers, 0u);
}

TEST_F(LibraryGraphsTest, WithoutMarkersTheLibraryStillDetectsCaptures) {
  const CommSnapshot comm = CommAfter(AfterTwoCalls("launch"), {{"ROLLCALL_MARKERS", "0"}});
  EXPECT_EQ(comm.entered, 3u);
  ASSERT_EQ(comm.records.size(), 5u);
  EXPECT_EQ(comm.records[1].flags, segment::kRecordCaptured);
}

TEST_F(LibraryGraphsTest, LaunchesOfAnUnnamedCaptureCountAsLost) {
  const SegmentSnapshot segment =
      After(AfterTwoCalls("launch"), {{"STUB_FAIL", "cuStreamGetCaptureInfo_v2"}});
  ASSERT_EQ(segment.communicators.size(), 1u);
  EXPECT_EQ(segment.communicators[0].entered, 1u);
  EXPECT_EQ(segment.lost_graph_calls, 2u);
}

TEST_F(LibraryGraphsTest, SignalsCanBeCapturedToo) {
  const SegmentSnapshot segment = After(
      "id init=2,0 capture signal=1,0 wait_signal=1,3,0 end_capture instantiate=0 launch launch");
  ASSERT_EQ(segment.communicators.size(), 2u);
  EXPECT_EQ(segment.communicators[1].p2p_entered, 8u);
}

}  // namespace
}  // namespace rollcall
