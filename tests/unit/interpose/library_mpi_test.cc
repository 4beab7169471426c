// SPDX-License-Identifier: Apache-2.0
// MPI's calls as the preloaded library records them, where real jobs seldom come: error handlers
// that throw or jump out of a call, calls that fail, and more requests than there is room for.
#include <algorithm>

#include "library_steps.h"

namespace rollcall {
namespace {

class LibraryMpiTest : public PreloadedProcessTest {
 protected:
  LibraryMpiTest() : PreloadedProcessTest(ROLLCALL_STUB_DIR) {}

  // The communicator of all ranks.
  CommSnapshot WorldAfter(const std::string& steps) {
    StartOver();
    std::vector<std::string> command = {MPI_STEPS};
    for (const auto step : absl::StrSplit(steps, ' ')) command.emplace_back(step);
    EXPECT_EQ(Run(command), 0) << steps << "\n" << Stderr();
    segment_ = Read();
    EXPECT_FALSE(segment_.communicators.empty());
    return segment_.communicators.empty() ? CommSnapshot() : segment_.communicators[0];
  }

  // The messages with the other rank and the tag 7, unless another one is named.
  static MessagesSnapshot Messages(const CommSnapshot& comm, int32_t peer = 1) {
    for (const MessagesSnapshot& messages : comm.messages) {
      if (messages.peer == peer && messages.tag == 7) return messages;
    }
    return {};
  }

  SegmentSnapshot segment_;  // of the last steps
};

constexpr int32_t kAnySource = -1;  // segment::kAnySource

// How an error handler leaves a call.
const char* const kLeaves[] = {"!", "^"};
const char* const kCalls[] = {"send",    "recv",     "probe", "iprobe",   "isend",      "irecv",
                              "barrier", "ibarrier", "dup",   "sendinit", "barrierinit"};

TEST_F(LibraryMpiTest, ACallThatTheErrorHandlerLeavesIsOver) {
  for (const std::string leave : kLeaves) {
    for (const std::string call : kCalls) {
      const std::string steps = leave + call + " barrier";
      const CommSnapshot world = WorldAfter(steps);
      EXPECT_EQ(world.entered, 1u) << steps;
      EXPECT_EQ(world.finished, 1u) << steps;
      EXPECT_TRUE(segment_.blocked.empty()) << steps;
      EXPECT_EQ(Messages(world).receives_awaited, 0u) << steps;
      EXPECT_EQ(Messages(world).sends_awaited, 0u) << steps;
    }
  }
}

TEST_F(LibraryMpiTest, RecordsADeeperCallAfterALongjmp) {
  EXPECT_EQ(WorldAfter("^recv barrier deep").entered, 2u);
}

TEST_F(LibraryMpiTest, AWaitThatTheErrorHandlerLeavesIsOver) {
  for (const std::string leave : kLeaves) {
    for (const std::string wait : {"wait", "waitall", "test"}) {
      const std::string steps = "isend irecv ibarrier irecv " + leave + wait + " barrier end recv";
      const CommSnapshot world = WorldAfter(steps);
      EXPECT_EQ(world.entered, 2u) << steps;
      ASSERT_EQ(segment_.blocked.size(), 1u) << steps;
      EXPECT_EQ(segment_.blocked[0].op, static_cast<uint32_t>(Op::kMPI_Recv)) << steps;
      EXPECT_EQ(Messages(world).receives_awaited, 3u) << steps;  // the last one only
      EXPECT_EQ(Messages(world).sends_awaited, 0u) << steps;
    }
  }
}

TEST_F(LibraryMpiTest, AReceiveFromAnySourceThatTheErrorHandlerLeavesIsNotOpen) {
  for (const std::string leave : kLeaves) {
    const CommSnapshot world = WorldAfter(leave + "recv=7,-2 " + leave + "irecv=7,-2 recv=7,-2");
    EXPECT_EQ(Messages(world, kAnySource).receives, 0u);
    EXPECT_EQ(Messages(world).receives, 1u);
  }
}

TEST_F(LibraryMpiTest, AWaitSeesTheEndOfAllItsRequests) {
  const CommSnapshot world = WorldAfter("irecvs=500 waitall end recv");
  EXPECT_EQ(Messages(world, kAnySource).receives, 0u);
  EXPECT_EQ(Messages(world).receives, 501u);
  EXPECT_FALSE(world.messages_cancelled);
}

TEST_F(LibraryMpiTest, ACollectiveDoesNotInheritTheMessageOfItsRequest) {
  const CommSnapshot world = WorldAfter("irecv hiddenwait ibarrier end wait");
  ASSERT_EQ(segment_.blocked.size(), 1u);
  EXPECT_EQ(segment_.blocked[0].stream, 1u);  // the first collective
  EXPECT_EQ(Messages(world).receives_awaited, 0u);
}

TEST_F(LibraryMpiTest, NoStatusIsReadOfAWaitThatFails) {
  const CommSnapshot world = WorldAfter("irecvs=3 ?waitall");
  EXPECT_EQ(world.messages.size(), 1u);
  EXPECT_EQ(Messages(world, kAnySource).receives, 0u);
  EXPECT_TRUE(world.messages_cancelled);
}

TEST_F(LibraryMpiTest, IgnoresMessagesThatMayBeCancelled) {
  for (const std::string steps : {"irecv cancel", "isend cancel", "isends=3000 isend cancel"}) {
    EXPECT_TRUE(WorldAfter(steps).messages_cancelled) << steps;
  }
  EXPECT_FALSE(WorldAfter("irecv isend wait").messages_cancelled);
}

TEST_F(LibraryMpiTest, PersistentRequestsAreCountedHoweverManyThereAre) {
  const CommSnapshot world = WorldAfter("sendinits=1000 barrierinit start sendinit start");
  EXPECT_EQ(Ops(world), std::vector<Op>{Op::kMPI_Ibarrier});
  EXPECT_EQ(Messages(world).sends, 1u);
  EXPECT_FALSE(world.messages_cancelled);
}

TEST_F(LibraryMpiTest, IgnoresPersistentMessagesBeyondTheRoom) {
  const CommSnapshot world = WorldAfter("sendinits=9000 barrierinit start");
  EXPECT_TRUE(world.messages_cancelled);
  EXPECT_EQ(Ops(world), std::vector<Op>{Op::kMPI_Ibarrier});
}

TEST_F(LibraryMpiTest, AMessageThatAToolDescribesIsNotEvidence) {
  WorldAfter("dup nested");
  ASSERT_EQ(segment_.communicators.size(), 2u);
  EXPECT_TRUE(segment_.communicators[1].messages_cancelled);
}

TEST_F(LibraryMpiTest, KeepsAThreadsWaitWhenAnotherThreadGoesOn) {
  const CommSnapshot world = WorldAfter("overtaken");
  EXPECT_EQ(segment_.blocked.size(), 1u);
  EXPECT_EQ(Messages(world).receives_awaited, 2u);
}

}  // namespace
}  // namespace rollcall
