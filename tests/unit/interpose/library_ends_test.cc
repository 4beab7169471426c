// SPDX-License-Identifier: Apache-2.0
// One thread ends a communicator while another thread uses it. The communicator stays ended, and no
// other communicator gets its block while a thread may write there.
#include <sys/stat.h>

#include "library_steps.h"

namespace rollcall {
namespace {

using segment::CommState;

class LibraryEndsTest : public LibraryStepsTest {
 protected:
  // Creates so many communicators that only blocks of ended communicators can become free. Makes
  // the first one current.
  static std::string Fill(uint32_t count, const std::string& first = "init=2,0") {
    std::string steps = "id " + first;
    for (uint32_t i = 1; i < count; ++i) steps += " init=2,0";
    return steps + " on=0";
  }

  // Another thread takes these steps, and the stub holds its call of `function`.
  std::string Hold(const std::string& function, const std::string& steps) {
    const std::string fifo = absl::StrCat(scratch_.string(), "/fifo", fifos_++);
    EXPECT_EQ(mkfifo(fifo.c_str(), 0600), 0);
    return absl::StrCat(" env=STUB_FIFO=", fifo, " env=STUB_BLOCK=", function, " apart ", steps,
                        " join met env=STUB_BLOCK=");
  }

  int fifos_ = 0;
};

TEST_F(LibraryEndsTest, ABlockStaysItsOwnWhileTheCallThatEndsItRuns) {
  for (const char* end : {"abort", "destroy"}) {
    const std::string function = *end == 'a' ? "ncclCommAbort" : "ncclCommDestroy";
    const SegmentSnapshot segment =
        After(Fill(segment::kCommCapacity) + Hold(function, end) + " init=3,1 let_go=0");
    EXPECT_EQ(segment.lost_communicators, 1u) << end;
    EXPECT_EQ(segment.communicators[0].size, 2) << end;
    EXPECT_EQ(segment.communicators[0].state,
              *end == 'a' ? CommState::kAborted : CommState::kDestroyed);
  }
}

TEST_F(LibraryEndsTest, ABlockStaysItsOwnWhileAnAbortedCallHasNotReturned) {
  const SegmentSnapshot segment =
      After(Fill(segment::kCommCapacity) + Hold("ncclAllReduce", "all_reduce") +
            " abort init=3,1 let_go=0 init=4,1");
  EXPECT_EQ(segment.lost_communicators, 1u);
  EXPECT_EQ(segment.communicators[0].size, 4);
  EXPECT_EQ(segment.communicators[0].entered, 0u);
  EXPECT_EQ(segment.communicators[0].returned, 0u);
}

TEST_F(LibraryEndsTest, TakesBackACallThatFailsAfterAnAbort) {
  const SegmentSnapshot segment =
      After(Fill(segment::kCommCapacity) +
            Hold("ncclAllReduce", "env=STUB_FAIL=ncclAllReduce !all_reduce") +
            " abort init=3,1 let_go=0");
  EXPECT_EQ(segment.lost_communicators, 1u);
  EXPECT_EQ(segment.communicators[0].size, 2);
  EXPECT_EQ(segment.communicators[0].entered, 0u);
}

TEST_F(LibraryEndsTest, ABlockStaysItsOwnWhileAnAbortedGroupHasNotReturned) {
  const SegmentSnapshot segment =
      After(Fill(segment::kCommCapacity) +
            Hold("ncclGroupEnd", "group_start on=1 all_reduce on=0 all_reduce group_end") +
            " abort init=3,1 let_go=0 init=4,1");
  EXPECT_EQ(segment.lost_communicators, 1u);
  EXPECT_EQ(segment.communicators[0].size, 4);
  EXPECT_EQ(segment.communicators[0].entered, 0u);
}

TEST_F(LibraryEndsTest, ABlockStaysItsOwnWhileACallBesideItHasNotReturned) {
  const SegmentSnapshot segment =
      After(Fill(segment::kCommCapacity - 1) + Hold("ncclCommWindowRegister", "window") +
            " abort init=3,1 init=4,1 let_go=0 init=5,1");
  EXPECT_EQ(segment.lost_communicators, 1u);
  EXPECT_EQ(segment.communicators[0].size, 3);
  ASSERT_EQ(segment.communicators.size(), segment::kCommCapacity);
  EXPECT_EQ(segment.communicators.back().size, 5);
  EXPECT_EQ(segment.communicators.back().returned, 0u);
}

TEST_F(LibraryEndsTest, AWaitForTheGpuKeepsNoBlock) {
  const SegmentSnapshot segment =
      After(Fill(segment::kCommCapacity) + Hold("cudaStreamSynchronize", "all_reduce stream_wait") +
            " abort init=3,1 let_go=0");
  EXPECT_EQ(segment.lost_communicators, 0u);
  EXPECT_EQ(segment.communicators[0].size, 3);
}

TEST_F(LibraryEndsTest, AnAbortedCommunicatorStaysAbortedWhateverFinalizeReturns) {
  for (const char* finalize : {"finalize", "env=STUB_FAIL=ncclCommFinalize !finalize",
                               "env=STUB_LATE=ncclCommFinalize finalize"}) {
    const SegmentSnapshot segment =
        After("id init=2,0" + Hold("ncclCommFinalize", finalize) + " abort let_go=0");
    EXPECT_EQ(segment.communicators[0].state, CommState::kAborted) << finalize;
    EXPECT_TRUE(segment.blocked.empty()) << finalize;
  }
}

TEST_F(LibraryEndsTest, NoThreadWaitsInACallOnAnAbortedCommunicator) {
  const SegmentSnapshot segment =
      After("id init_config=2,0,0" +
            Hold("ncclAllReduce", "env=STUB_LATE=ncclAllReduce all_reduce") + " abort let_go=0");
  EXPECT_TRUE(segment.blocked.empty());
  const SegmentSnapshot grouped =
      After("id init_config=2,0,0" +
            Hold("ncclGroupEnd", "group_start all_reduce env=STUB_LATE=ncclGroupEnd group_end") +
            " abort let_go=0");
  EXPECT_TRUE(grouped.blocked.empty());
}

// The stub gives the new communicator the old one's address, as NCCL may.
TEST_F(LibraryEndsTest, AnAnswerAboutAnEndedCommunicatorDoesNotCountForItsSuccessor) {
  const SegmentSnapshot segment =
      After(Fill(segment::kCommCapacity) + " env=STUB_ASYNC_ERROR=1" +
            Hold("ncclCommGetAsyncError", "async_error") + " abort init=3,1 let_go=0");
  EXPECT_EQ(segment.communicators[0].size, 3);
  EXPECT_EQ(segment.communicators[0].async_error, 0u);
}

TEST_F(LibraryEndsTest, NoRankWaitsForASplitThatGivesNoCommunicator) {
  const SegmentSnapshot segment =
      After("id init_config=2,0,0 env=STUB_IN_PROGRESS=1 split=-1 on=0");
  ASSERT_EQ(segment.communicators.size(), 2u);
  EXPECT_EQ(segment.communicators[1].state, CommState::kPassedOver);
  EXPECT_TRUE(segment.blocked.empty());
}

}  // namespace
}  // namespace rollcall
