// SPDX-License-Identifier: Apache-2.0
// The markers that the preloaded library places on CUDA streams. A stub driver answers as each test
// needs it.
#include "library_steps.h"

namespace rollcall {
namespace {

class LibraryMarkersTest : public LibraryStepsTest {};

TEST_F(LibraryMarkersTest, MarkersFollowCallsAndGroups) {
  const CommSnapshot comm =
      CommAfter("id init=2,0 all_reduce send group_start all_reduce send send group_end");
  EXPECT_NE(comm.flags & segment::kFlagMarkers, 0u);
  EXPECT_EQ(comm.started, 2u);
  EXPECT_EQ(comm.finished, 2u);
  EXPECT_EQ(comm.p2p_started, 3u);
  EXPECT_EQ(comm.p2p_finished, 3u);
}

TEST_F(LibraryMarkersTest, EachDeviceOfAProcessHasMarkers) {
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

TEST_F(LibraryMarkersTest, CommunicatorsMadeWithinAGroupHaveMarkers) {
  const CommSnapshot comm = CommAfter("id group_start init=2,1 group_end on=0 all_reduce");
  EXPECT_EQ(comm.finished, 1u);
}

TEST_F(LibraryMarkersTest, WhereAnotherContextCannotBeEnteredThereAreNoMarkers) {
  const SegmentSnapshot segment =
      After("init_all=2 on=1 all_reduce on=0 all_reduce", {{"STUB_FAIL", "cuCtxPushCurrent_v2"}});
  ASSERT_EQ(segment.communicators.size(), 2u);
  EXPECT_EQ(segment.communicators[1].flags & segment::kFlagMarkers, 0u);
  EXPECT_EQ(segment.communicators[0].finished, 1u);
}

TEST_F(LibraryMarkersTest, PlacesNoMarkerOnAStreamThatACaptureForbids) {
  const CommSnapshot comm = CommAfter(
      "id init=2,0 all_reduce env=STUB_FAIL=cuStreamIsCapturing all_reduce group_start all_reduce "
      "group_end");
  EXPECT_NE(comm.flags & segment::kFlagMarkers, 0u);
  EXPECT_EQ(comm.entered, 3u);
  EXPECT_EQ(comm.started, 1u);
  EXPECT_EQ(comm.finished, 1u);
}

class DriverErrorTest : public LibraryMarkersTest,
                        public testing::WithParamInterface<const char*> {};

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

TEST_F(LibraryMarkersTest, MarkersThatFailInMidCourseAreSwitchedOff) {
  const CommSnapshot comm = CommAfter(
      "id init=2,0 all_reduce env=STUB_FAIL=cuStreamWriteValue64_v2 all_reduce env=STUB_FAIL= "
      "all_reduce");
  EXPECT_EQ(comm.flags & segment::kFlagMarkers, 0u);
  EXPECT_EQ(comm.entered, 3u);
}

}  // namespace
}  // namespace rollcall
