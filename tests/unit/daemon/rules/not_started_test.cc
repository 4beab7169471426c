// SPDX-License-Identifier: Apache-2.0
// The rule for a job of which some ranks wait before any rank has made an NCCL call.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "daemon/diagnosis/diagnose.h"
#include "job_builder.h"

namespace rollcall {
namespace {

// By samples from second `since` to second `newest`.
std::shared_ptr<Standing> AtRest(double since, double newest) {
  auto standing = std::make_shared<Standing>();
  standing->since_ns = At(since);
  standing->newest_ns = At(newest);
  return standing;
}

// Four ranks without an NCCL call; ranks 1-3 have waited for the others since second 10.
JobBuilder Starting() {
  JobBuilder job(4);
  job.state.communicators.clear();
  for (Process& process : job.state.processes) {
    process.has_segment = false;
    process.stack_words = "main download";
    process.standing = AtRest(10, 70);
    if (process.global_rank != 0) process.waits_outside_since_ns = At(10);
  }
  return job;
}

using Ranks = std::vector<int32_t>;

std::vector<Verdict> AtStart(const JobState& job, double now) {
  return Diagnose(job, At(now), Limits());
}

TEST(StartTest, NamesTheRankThatTheOthersWaitFor) {
  const JobBuilder job = Starting();
  EXPECT_TRUE(AtStart(job.state, 24.9).empty());
  const std::vector<Verdict> verdicts = AtStart(job.state, 70);
  ASSERT_EQ(verdicts.size(), 1u);
  EXPECT_EQ(verdicts[0].cause, Cause::kInitIncomplete);
  EXPECT_EQ(verdicts[0].certainty, Certainty::kLikely);
  EXPECT_EQ(verdicts[0].waiting_ranks, (Ranks{1, 2, 3}));
  EXPECT_EQ(
      verdicts[0].summary,
      "rank 0 (node-0, pid 4000) has not reached the point where the others wait, and no rank has "
      "made an NCCL call yet; "
      "3 ranks have waited 60 s");
  EXPECT_EQ(verdicts[0].advice.front().id, "rank0-only-setup");
}

// torch makes a communicator within the first collective, by an id that rank 0 puts into the store.
TEST(StartTest, RanksThatAskAStoreWithinTheirFirstCollectiveHaveNotStarted) {
  JobBuilder job = Starting();
  for (Process& process : job.state.processes) {
    if (process.global_rank == 0) continue;
    StackPlace place;
    place.functions =
        " __poll c10d::TCPStore::doGet c10d::PrefixStore::get c10d::ProcessGroupNCCL::allreduce "
        "distributed_c10d.all_reduce main ";
    auto standing = std::make_shared<Standing>(*process.standing);
    standing->place = StandPlace(place);
    process.standing = standing;
  }
  const std::vector<Verdict> verdicts = AtStart(job.state, 70);
  ASSERT_EQ(verdicts.size(), 1u);
  EXPECT_EQ(verdicts[0].cause, Cause::kInitIncomplete);
  EXPECT_EQ(verdicts[0].waiting_ranks, (Ranks{1, 2, 3}));
}

TEST(StartTest, NamesTheKeyForWhichTheOthersWait) {
  JobBuilder job = Starting();
  for (Process& process : job.state.processes) process.place.key = "settings";
  EXPECT_THAT(AtStart(job.state, 70).at(0).summary,
              testing::HasSubstr("has not reached the point where the others wait for key "
                                 "\"settings\" of the store, and no rank"));
  job.state.processes[2].place.key = "epoch";
  EXPECT_THAT(AtStart(job.state, 70).at(0).summary,
              testing::HasSubstr("where the others wait, and no rank"));
}

TEST(StartTest, DoesNotBlameARankWithoutASample) {
  JobBuilder job = Starting();
  job.state.processes[0].stack_words = "";
  EXPECT_TRUE(AtStart(job.state, 70).empty());
}

// It saves or computes what the others wait for.
TEST(StartTest, DoesNotBlameARankThatWorks) {
  JobBuilder job = Starting();
  Process& first = job.state.processes[0];
  first.quiet_since_ns = At(5);
  EXPECT_FALSE(AtStart(job.state, 70).empty());
  first.quiet_since_ns = At(69);
  EXPECT_TRUE(AtStart(job.state, 70).empty());
  first.quiet_since_ns = At(5);
  first.standing = AtRest(68, 68);
  EXPECT_TRUE(AtStart(job.state, 70).empty());
  first.standing = AtRest(20, 68);
  EXPECT_FALSE(AtStart(job.state, 70).empty());
  first.standing = AtRest(20, 40);
  EXPECT_TRUE(AtStart(job.state, 70).empty());
}

TEST(StartTest, IsNotSureOfARankWithUnseenBytes) {
  JobBuilder job = Starting();
  job.state.processes[0].standing = nullptr;
  EXPECT_EQ(AtStart(job.state, 70).at(0).certainty, Certainty::kPossible);
  job.state.processes[0].liveness = Liveness::kDied;
  EXPECT_EQ(AtStart(job.state, 70).at(0).certainty, Certainty::kLikely);
}

// No agent takes samples of bytes then: a rank that loads slowly uses no CPU either.
TEST(StartTest, IsNotSureOfARankWhereOnlyCallsAreWatched) {
  JobBuilder job = Starting();
  job.state.processes[0].standing = nullptr;
  Limits limits;
  limits.watches_calls_only = true;
  const Verdict verdict = Diagnose(job.state, At(70), limits).at(0);
  EXPECT_EQ(verdict.certainty, Certainty::kPossible);
  EXPECT_THAT(verdict.missing_evidence, testing::Contains(testing::HasSubstr("--watch=calls")));
}

TEST(StartTest, FindsNothingIfNoRankWaits) {
  JobBuilder job = Starting();
  for (Process& process : job.state.processes) process.waits_outside_since_ns = 0;
  EXPECT_TRUE(AtStart(job.state, 70).empty());
}

// All ranks wait, each in its own line of the program.
JobBuilder AllWaiting(const std::vector<std::string>& lines) {
  JobBuilder job = Starting();
  job.state.processes.resize(lines.size());
  for (size_t i = 0; i < lines.size(); ++i) {
    Process& process = job.state.processes[i];
    process.world_size = static_cast<int32_t>(lines.size());
    process.waits_outside_since_ns = At(10);
    process.place.at = lines[i];
    process.place.inside = "TCPStore.wait";
    process.place.sleeps = true;
    process.place.functions = " TCPStore.wait distributed_c10d.init_process_group main ";
    process.stacks_ns = At(60);
  }
  return job;
}

const char kInit[] = "/x/train.py:9 in main", kMeet[] = "/x/train.py:12 in meet";

Verdict OnlyVerdict(const JobBuilder& job) {
  const std::vector<Verdict> verdicts = AtStart(job.state, 61);
  EXPECT_EQ(verdicts.size(), 1u);
  if (verdicts.empty()) return {};
  EXPECT_EQ(verdicts[0].cause, Cause::kInitIncomplete);
  return verdicts[0];
}

TEST(AllWaitTest, BlamesTheRankWithAnotherWorldSize) {
  JobBuilder job = AllWaiting({kInit, kMeet, kMeet, kMeet});
  job.state.processes[0].world_size = 5;
  const Verdict v = OnlyVerdict(job);
  EXPECT_EQ(CulpritRanks(v.culprits), Ranks{0});
  EXPECT_EQ(v.waiting_ranks, (Ranks{1, 2, 3}));
  EXPECT_EQ(v.certainty, Certainty::kLikely);
  EXPECT_EQ(v.communicator_size, 4);
  EXPECT_EQ(v.summary,
            "rank 0 (node-0, pid 4000) is in `main` (train.py:9), waiting in TCPStore.wait, and "
            "expects 5 ranks, and the others expect 4, and no rank has made an NCCL call yet; 3 "
            "ranks have waited 50 s");
  EXPECT_EQ(v.advice.front().id, "launch-count");
  for (const Advice& advice : v.advice) EXPECT_NE(advice.id, "mixed-backends");
}

TEST(AllWaitTest, TheMajorityIsRightAlsoWhereItExpectsMore) {
  JobBuilder job = AllWaiting({kInit, kInit, kInit, kInit});
  for (Process& process : job.state.processes) process.world_size = 5;
  job.state.processes[2].world_size = 4;
  EXPECT_EQ(CulpritRanks(OnlyVerdict(job).culprits), Ranks{2});
}

TEST(AllWaitTest, WithoutAMajorityTheSizeThatWasStartedIsRight) {
  JobBuilder job = AllWaiting({kInit, kMeet});
  job.state.processes[1].world_size = 3;
  EXPECT_EQ(CulpritRanks(OnlyVerdict(job).culprits), Ranks{1});
  job.state.processes[0].world_size = 4;
  const Verdict v = OnlyVerdict(job);
  EXPECT_EQ(CulpritRanks(v.culprits), (Ranks{0, 1}));
  EXPECT_NE(v.summary.find("expect 3 and 4 ranks, and no rank"), std::string::npos) << v.summary;
}

TEST(AllWaitTest, NamesTheKeyOfARankWithAnotherWorldSize) {
  JobBuilder job = AllWaiting({kInit, kInit, kInit, kInit});
  job.state.processes[3].world_size = 5;
  job.state.processes[3].place.key = "ready/0 ... ready/4 (5 keys)";
  EXPECT_THAT(OnlyVerdict(job).summary,
              testing::HasSubstr("expects 5 ranks and waits for key \"ready/0 ... ready/4 (5 "
                                 "keys)\" of the store, and the others expect 4"));
}

TEST(AllWaitTest, BlamesARankWithAnotherSizeThatDoesNotWait) {
  JobBuilder job = AllWaiting({kInit, kInit, kInit, kInit});
  job.state.processes[3].world_size = 5;
  job.state.processes[3].waits_outside_since_ns = 0;
  job.state.processes[3].stack_words = "main load";
  const Verdict v = OnlyVerdict(job);
  EXPECT_EQ(CulpritRanks(v.culprits), Ranks{3});
  EXPECT_EQ(v.start_fault, StartFault::kOtherSize);
  job.state.processes[2].waits_outside_since_ns = 0;  // and one that is busy
  job.state.processes[2].stack_words = "main load";
  EXPECT_EQ(OnlyVerdict(job).start_fault, StartFault::kNotReached);
}

TEST(AllWaitTest, NamesARankThatWasNotStartedWithItsWaiters) {
  JobBuilder job = AllWaiting({kInit, kInit, kInit, kInit});
  for (Process& process : job.state.processes) process.world_size = 6;
  const Verdict v = OnlyVerdict(job);
  EXPECT_EQ(CulpritRanks(v.culprits), (Ranks{4, 5}));
  EXPECT_EQ(v.summary,
            "ranks 4-5 were never started, or no agent reports them: ranks 0-3 expect 6 ranks, and "
            "no rank has made an NCCL call yet; 4 ranks have waited 50 s");
  EXPECT_EQ(v.advice.front().id, "launch-count");
}

TEST(AllWaitTest, BlamesTheRankThatWaitsAtAnotherPoint) {
  const Verdict v = OnlyVerdict(AllWaiting({kMeet, kInit, kInit}));
  EXPECT_EQ(CulpritRanks(v.culprits), Ranks{0});
  EXPECT_EQ(v.waiting_ranks, (Ranks{1, 2}));
  EXPECT_EQ(v.certainty, Certainty::kLikely);
  EXPECT_EQ(
      v.summary,
      "rank 0 (node-0, pid 4000) is in `meet` (train.py:12), waiting in TCPStore.wait, and waits "
      "for the others at another point of the program than they do, and no rank has made an NCCL "
      "call yet; 2 ranks have waited 50 s");
}

TEST(AllWaitTest, TwoRanksAtDifferentPointsAreATie) {
  EXPECT_EQ(CulpritRanks(OnlyVerdict(AllWaiting({kMeet, kInit})).culprits), (Ranks{0, 1}));
}

// They may wait for somebody who is not a rank.
TEST(AllWaitTest, NoRankIsTheCulpritIfAllWaitAtOnePoint) {
  const Verdict v = OnlyVerdict(AllWaiting({kMeet, kMeet, kMeet}));
  EXPECT_TRUE(v.culprits.empty());
  EXPECT_EQ(v.certainty, Certainty::kPossible);
  EXPECT_EQ(
      v.summary,
      "all 3 ranks wait in `meet` (train.py:12), waiting in TCPStore.wait, for a process that is "
      "not among them, and no rank has made an NCCL call yet; 3 ranks have waited 50 s");
}

// A controller that is not a rank brings them work, by keys of a store.
JobBuilder AwaitingKeys(const std::vector<std::string>& lines) {
  JobBuilder job = AllWaiting(lines);
  for (Process& process : job.state.processes) {
    process.place.functions = " TCPStore::doWait TCPStore::get workers.take main ";
  }
  return job;
}

TEST(AllWaitTest, WhoWaitForKeysOfTheProgramsOwnMayIdle) {
  const Verdict v = OnlyVerdict(AwaitingKeys({kMeet, kMeet, kMeet}));
  EXPECT_TRUE(v.is_idle);
  EXPECT_EQ(v.certainty, Certainty::kPossible);
  EXPECT_EQ(
      v.summary,
      "all 3 ranks wait in `meet` (train.py:12), waiting in TCPStore.wait, for a process that is "
      "not among them, and no rank has made an NCCL call yet: if they wait for work, the job does "
      "not hang; 3 ranks have waited 50 s");
  EXPECT_EQ(v.advice.front().id, "idle-workers");
}

TEST(AllWaitTest, BlamesNoRankWhereAllWaitForKeysAtSeveralPoints) {
  JobBuilder job = AwaitingKeys({kMeet, kInit, kInit});
  EXPECT_TRUE(OnlyVerdict(job).culprits.empty());
  EXPECT_TRUE(OnlyVerdict(job).is_idle);
  job.state.processes[1].place.functions = " TCPStore::doWait distributed_c10d.barrier main ";
  EXPECT_FALSE(OnlyVerdict(job).is_idle) << "this one waits for all ranks";
}

// The first collective of a group takes its id from the store, and all ranks meet in it.
TEST(AllWaitTest, WhoWaitsInACollectiveIsNotAWorker) {
  JobBuilder job = AwaitingKeys({kMeet, kInit, kInit});
  for (const size_t rank : {1, 2}) {
    job.state.processes[rank].place.functions =
        " c10d::TCPStore::doWait c10d::PrefixStore::get c10d::ProcessGroup::allreduce main ";
  }
  const Verdict v = OnlyVerdict(job);
  EXPECT_FALSE(v.is_idle);
  EXPECT_EQ(CulpritRanks(v.culprits), Ranks{0});
}

TEST(StartTest, ARankWithoutAKnownProcessIsAbsent) {
  JobBuilder job = Starting();
  job.state.processes.erase(job.state.processes.begin());
  const std::vector<Verdict> verdicts = AtStart(job.state, 70);
  ASSERT_EQ(verdicts.size(), 1u);
  ASSERT_EQ(verdicts[0].culprits.size(), 1u);
  EXPECT_EQ(verdicts[0].culprits[0].rank, 0);
  EXPECT_EQ(verdicts[0].culprits[0].pid, 0);
}

// Sets the time of all samples.
void TakeStacks(JobBuilder* job, double at) {
  for (Process& process : job->state.processes) process.stacks_ns = At(at);
}

TEST(StartTest, UsesOnlyRecentStacks) {
  JobBuilder job = Starting();
  TakeStacks(&job, 30);
  EXPECT_FALSE(AtStart(job.state, 31).empty());
  EXPECT_EQ(AtStart(job.state, 31)[0].waited_ns, 20 * kSecondNs);
  EXPECT_TRUE(AtStart(job.state, 70).empty());
}

TEST(StartTest, OneSampleIsNotEnough) {
  JobBuilder job = Starting();
  TakeStacks(&job, 30);
  job.state.processes[2].waits_outside_since_ns = At(30);
  EXPECT_TRUE(AtStart(job.state, 31).empty());
}

// The ranks have trained together and have destroyed their communicators.
TEST(StartTest, RanksThatWereInACommunicatorHaveStarted) {
  JobBuilder job = Starting();
  job.state.processes[3].has_met = true;
  EXPECT_TRUE(AtStart(job.state, 70).empty());
  job.state.processes[3].liveness = Liveness::kExited;  // an earlier attempt
  EXPECT_FALSE(AtStart(job.state, 70).empty());
}

TEST(StartTest, StacksInsideNcclShowThatTheJobHasStarted) {
  JobBuilder job = Starting();
  job.state.processes[3].stack_words = "main ncclProxyService start_thread";
  EXPECT_TRUE(AtStart(job.state, 70).empty());
}

TEST(StartTest, AWorkerThatInheritedARankDoesNotRepresentIt) {
  JobBuilder job = Starting();
  Process worker = job.state.processes[1];
  worker.pid = 5001;
  worker.start_time += 1000;
  worker.waits_outside_since_ns = 0;
  job.state.processes.push_back(worker);
  const std::vector<Verdict> verdicts = AtStart(job.state, 70);
  ASSERT_EQ(verdicts.size(), 1u);
  EXPECT_EQ(CulpritRanks(verdicts[0].culprits), Ranks{0});
}

TEST(StartTest, TheEndOfAnEarlierAttemptIsNotAnAbsence) {
  JobBuilder job = Starting();
  for (int rank = 0; rank < 4; ++rank) {
    Process ended = job.state.processes[static_cast<size_t>(rank)];
    ended.pid -= 1000;
    ended.start_time -= 50;
    ended.liveness = Liveness::kDied;
    ended.has_segment = true;
    ended.waits_outside_since_ns = 0;
    job.state.processes.push_back(ended);
  }
  const std::vector<Verdict> verdicts = AtStart(job.state, 70);
  ASSERT_EQ(verdicts.size(), 1u);
  EXPECT_EQ(CulpritRanks(verdicts[0].culprits), Ranks{0});
  EXPECT_EQ(verdicts[0].culprits[0].pid, 4000);
}

TEST(StartTest, FindsNothingOnceThereIsACommunicator) {
  JobBuilder job = Starting();
  job.AddCommunicator(kDp, "dp", {0, 1, 2, 3});
  EXPECT_TRUE(AtStart(job.state, 70).empty());
}

}  // namespace
}  // namespace rollcall
