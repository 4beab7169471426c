// SPDX-License-Identifier: Apache-2.0
// The segment of a process while one of its threads is inside a call.
#include <fcntl.h>

#include "library_steps.h"

namespace rollcall {
namespace {

using segment::CommState;

// A process held inside a call by a FIFO: what its segment says meanwhile.
class BlockedCallTest : public LibraryStepsTest {
 protected:
  SegmentSnapshot During(const std::string& steps, const std::string& blocking) {
    const std::string fifo = scratch_ / "fifo";
    EXPECT_EQ(mkfifo(fifo.c_str(), 0600), 0);
    const pid_t pid = Start(Command(steps), {{"STUB_BLOCK", blocking}, {"STUB_FIFO", fifo}});
    SegmentSnapshot found;
    EXPECT_TRUE(Eventually([&] {
      const auto paths = Segments();
      if (paths.empty()) return false;
      auto reader = SegmentReader::Open(paths.front());
      if (!reader.ok()) return false;
      auto snapshot = (*reader)->Read();
      if (!snapshot.ok() || snapshot->blocked.empty()) return false;
      // Not in the one before it, where a slow machine may still be.
      const std::string op = OpName(static_cast<Op>(snapshot->blocked[0].op));
      if (op != blocking && "nccl" + op != blocking) return false;
      found = *snapshot;
      return true;
    })) << Stderr();
    // Opening it for writing waits until the process has opened it for reading.
    close(open(fifo.c_str(), O_WRONLY));
    EXPECT_EQ(WaitFor(pid), 0) << Stderr();
    EXPECT_TRUE(Read().blocked.empty());
    return found;
  }
};

TEST_F(BlockedCallTest, ACollectiveShowsSinceWhen) {
  const SegmentSnapshot segment = During("id init=2,0 all_reduce broadcast", "ncclBroadcast");
  ASSERT_EQ(segment.blocked.size(), 1u);
  EXPECT_EQ(static_cast<Op>(segment.blocked[0].op), Op::kBroadcast);
  EXPECT_EQ(segment.blocked[0].comm, 0u);
  const CommSnapshot& comm = segment.communicators[0];
  EXPECT_EQ(comm.entered, 2u);
  EXPECT_EQ(comm.returned, 1u);
  EXPECT_EQ(comm.records[1].returned_ns, 0);
  EXPECT_EQ(segment.blocked[0].since_ns, comm.records[1].entered_ns);
  // The GPU has had the call's start, and not of its end.
  EXPECT_EQ(comm.started, 2u);
  EXPECT_EQ(comm.finished, 1u);
}

TEST_F(BlockedCallTest, CreationShowsItsCommunicator) {
  const SegmentSnapshot segment = During("id init=4,3", "ncclCommInitRank");
  ASSERT_EQ(segment.blocked.size(), 1u);
  EXPECT_EQ(static_cast<Op>(segment.blocked[0].op), Op::kCommInitRank);
  EXPECT_EQ(segment.communicators[0].state, CommState::kInitializing);
  EXPECT_EQ(segment.communicators[0].rank, 3);
  EXPECT_EQ(segment.communicators[0].size, 4);
}

TEST_F(BlockedCallTest, ASplitStandsInItsParentsRanks) {
  const SegmentSnapshot segment = During("id init=4,3 split=1", "ncclCommSplit");
  ASSERT_EQ(segment.communicators.size(), 2u);
  EXPECT_EQ(segment.communicators[1].state, CommState::kInitializing);
  EXPECT_EQ(segment.communicators[1].parent_rank, 3);
  EXPECT_EQ(segment.communicators[1].parent_size, 4);
}

TEST_F(BlockedCallTest, AGroupBlocksAtItsEnd) {
  const SegmentSnapshot segment =
      During("id init=2,0 group_start all_reduce group_end", "ncclGroupEnd");
  ASSERT_EQ(segment.blocked.size(), 1u);
  EXPECT_EQ(static_cast<Op>(segment.blocked[0].op), Op::kGroupEnd);
  EXPECT_EQ(segment.blocked[0].comm, 0u);
  EXPECT_EQ(segment.communicators[0].entered, 1u);
  EXPECT_EQ(segment.communicators[0].returned, 0u);
}

TEST_F(BlockedCallTest, TeardownShows) {
  const SegmentSnapshot segment = During("id init=2,0 destroy", "ncclCommDestroy");
  ASSERT_EQ(segment.blocked.size(), 1u);
  EXPECT_EQ(static_cast<Op>(segment.blocked[0].op), Op::kCommDestroy);
  EXPECT_EQ(segment.communicators[0].state, CommState::kFinalizing);
}

struct WaitCase {
  const char* step;
  const char* function;
  Op op;
};

class BlockedWaitTest : public BlockedCallTest, public testing::WithParamInterface<WaitCase> {};

TEST_P(BlockedWaitTest, ShowsSinceWhen) {
  const WaitCase& wait = GetParam();
  const SegmentSnapshot segment =
      During(std::string("id init=2,0 all_reduce ") + wait.step, wait.function);
  ASSERT_EQ(segment.blocked.size(), 1u);
  EXPECT_EQ(static_cast<Op>(segment.blocked[0].op), wait.op);
  EXPECT_GE(segment.blocked[0].since_ns, segment.communicators[0].last_entered_ns);
}

INSTANTIATE_TEST_SUITE_P(
    Waits, BlockedWaitTest,
    testing::Values(WaitCase{"stream_wait", "cudaStreamSynchronize", Op::kcudaStreamSynchronize},
                    WaitCase{"event_wait", "cudaEventSynchronize", Op::kcudaEventSynchronize},
                    WaitCase{"device_wait", "cudaDeviceSynchronize", Op::kcudaDeviceSynchronize},
                    WaitCase{"copy", "cudaMemcpy", Op::kcudaMemcpy},
                    WaitCase{"driver_stream_wait", "cuStreamSynchronize", Op::kcuStreamSynchronize},
                    WaitCase{"driver_event_wait", "cuEventSynchronize", Op::kcuEventSynchronize},
                    WaitCase{"context_wait", "cuCtxSynchronize", Op::kcuCtxSynchronize},
                    WaitCase{"hip_stream_wait", "hipStreamSynchronize", Op::khipStreamSynchronize},
                    WaitCase{"hip_event_wait", "hipEventSynchronize", Op::khipEventSynchronize},
                    WaitCase{"hip_device_wait", "hipDeviceSynchronize", Op::khipDeviceSynchronize},
                    WaitCase{"hip_copy", "hipMemcpy", Op::khipMemcpy}),
    [](const auto& info) { return std::string(info.param.step); });

}  // namespace
}  // namespace rollcall
