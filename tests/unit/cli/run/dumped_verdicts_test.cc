// SPDX-License-Identifier: Apache-2.0
// What dumps of the Flight Recorder say of a job that runs and stands still.
#include "cli/run/dumped_verdicts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "base/durations.h"

namespace rollcall {
namespace {

constexpr int64_t kBeganNs = 1'700'000'000 * kSecond;

// A rank that has begun this many all-reduces, a second apart, of which the last `open` wait.
RankedDump DumpOf(int32_t rank, int calls, int open = 1) {
  RankedDump dump;
  dump.rank = rank;
  dump.path = "rank_" + std::to_string(rank);
  dump.dump.version = "2.10";
  dump.dump.groups["0"] = {"default_pg", {0, 1, 2}};
  for (int i = 0; i < calls; ++i) {
    DumpedCall call;
    call.record_id = static_cast<uint64_t>(i);
    call.group = call.group_id = "0";
    call.description = "default_pg";
    call.collective_seq = static_cast<uint64_t>(i) + 1;
    call.name = "nccl:all_reduce";
    call.input_counts = call.output_counts = {16};
    call.dtype = "Float";
    call.created_ns = kBeganNs + i * kSecond;
    call.completed = i < calls - open;
    if (call.completed) call.completed_ns = call.created_ns + kSecond / 2;
    dump.dump.calls.push_back(call);
  }
  return dump;
}

// Its processes in another order than that of their ranks, after the launcher.
JobState RunningJob() {
  JobState job;
  job.processes.resize(4);
  for (int32_t i = 0; i < 4; ++i) {
    Process& process = job.processes[static_cast<size_t>(i)];
    process.host = "node-0";
    process.pid = 4000 + i;
    process.start_time = static_cast<uint64_t>(i) + 1;
    process.liveness = Liveness::kAlive;
    process.global_rank = i == 0 ? -1 : 3 - i;
    process.stacks_ns = kSecond;
    process.place.at = i == 2 ? "/x/train.py:31 in evaluate" : "/x/train.py:57 in step";
  }
  return job;
}

TEST(DumpedVerdictsTest, NameTheRankThatHasMadeFewerCallsByItsProcessAndPlace) {
  const int64_t now_ns = kBeganNs + 60 * kSecond;
  const std::vector<Verdict> verdicts =
      JudgeDumps({DumpOf(0, 5), DumpOf(1, 4, 0), DumpOf(2, 5)}, RunningJob(), now_ns);
  ASSERT_FALSE(verdicts.empty());
  const Verdict& verdict = verdicts.front();
  EXPECT_EQ(verdict.cause, Cause::kMissingRank);
  EXPECT_EQ(verdict.certainty, Certainty::kLikely);
  ASSERT_EQ(verdict.culprits.size(), 1u);
  EXPECT_EQ(verdict.culprits[0].rank, 1);
  EXPECT_EQ(verdict.culprits[0].process, 2);
  EXPECT_EQ(verdict.culprits[0].pid, 4002);
  EXPECT_EQ(verdict.waiting_processes, (std::vector<int32_t>{3, 1}));
  EXPECT_THAT(verdict.summary, testing::HasSubstr("train.py:31"));
  EXPECT_THAT(verdict.summary, testing::HasSubstr("AllReduce"));
}

TEST(DumpedVerdictsTest, AreNoneWhereAllCallsAreDone) {
  const int64_t now_ns = kBeganNs + 60 * kSecond;
  EXPECT_TRUE(JudgeDumps({DumpOf(0, 5, 0), DumpOf(1, 5, 0), DumpOf(2, 5, 0)}, RunningJob(), now_ns)
                  .empty());
}

}  // namespace
}  // namespace rollcall
