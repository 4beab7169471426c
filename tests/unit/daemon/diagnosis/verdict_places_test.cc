// SPDX-License-Identifier: Apache-2.0
// Which stacks show where a culprit stands.
#include "daemon/diagnosis/verdict_places.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "daemon/diagnosis/diagnose.h"
#include "job_builder.h"

namespace rollcall {
namespace {

// Rank 3 stands in upload(); its stack was taken at that time.
Verdict Judge(int64_t taken, const std::function<void(JobBuilder*)>& change = [](JobBuilder*) {}) {
  JobBuilder job(4);
  job.Finish(10);
  job.Enter({0, 1, 2}, At(10));
  job.process(3).place = {"/x/train.py:31 in upload", "Queue.get", true, " queue.Queue.get "};
  job.process(0).place = {"/x/train.py:9 in main", "", true, " train.main "};
  job.process(3).stacks_ns = job.process(0).stacks_ns = taken;
  change(&job);
  const std::vector<Verdict> verdicts = Diagnoser().Run(job.state, At(80), Limits());
  EXPECT_EQ(verdicts.size(), 1u);
  return verdicts.empty() ? Verdict() : verdicts.front();
}

TEST(VerdictPlacesTest, TheSentenceLeadsWithTheLine) {
  const Verdict v = Judge(At(30));
  EXPECT_EQ(v.summary,
            "rank 3 (node-3, pid 4003) is in `upload` (train.py:31), waiting in Queue.get, and has "
            "not called AllReduce #10 on communicator \"dp\"; 3 ranks have waited 70 s");
  EXPECT_EQ(v.waiting_place.functions, " train.main ");
  EXPECT_NE(std::find(v.evidence.begin(), v.evidence.end(),
                      "rank 3 is in `upload` (train.py:31), waiting in Queue.get"),
            v.evidence.end());
}

TEST(VerdictPlacesTest, StacksOfBeforeTheWaitShowNothing) {
  for (const int64_t taken : {int64_t{0}, At(5)}) {
    const Verdict v = Judge(taken);
    EXPECT_TRUE(v.places.empty());
    EXPECT_EQ(v.summary.rfind("rank 3 (node-3, pid 4003) has not called", 0), 0u) << v.summary;
  }
}

// The others have waited since 10 s, and rank 3 makes another call at 40 s.
TEST(VerdictPlacesTest, StacksOfBeforeTheOddCallShowNothing) {
  const auto enter = [](JobBuilder* job) { job->Enter({3}, At(40), Broadcast()); };
  const Verdict before = Judge(At(30), enter);
  EXPECT_EQ(before.cause, Cause::kOperationMismatch);
  EXPECT_TRUE(before.places.empty());
  ASSERT_EQ(Judge(At(50), enter).places.size(), 1U);
}

TEST(VerdictPlacesTest, AProcessThatHasEndedStandsNowhere) {
  const Verdict v = Judge(At(30), [](JobBuilder* job) { job->Die(3, At(40)); });
  EXPECT_EQ(v.cause, Cause::kRankDied);
  EXPECT_TRUE(v.places.empty());
}

// The training of rank 0 is in a thread, and its main thread waits for that.
TEST(VerdictPlacesTest, ARankStandsWhereTheThreadOfTheCallStands) {
  const Verdict v = Judge(At(30), [](JobBuilder* job) {
    job->process(0).blocked = {{4100, Op::kcudaStreamSynchronize, kDp, At(10)}};
    job->process(0).thread_places = {
        {4100, "", {"/x/train.py:40 in train", "", true, " train.train "}},
        {4000, "", {"/x/train.py:9 in main", "", true, " train.main "}}};
  });
  EXPECT_EQ(v.waiting_place.at, "/x/train.py:40 in train");
}

// Rank 0 waits for rank 1 in "tp", and rank 1 for rank 0 in "dp", each beside another thread.
TEST(VerdictPlacesTest, InACycleEachRankStandsWhereItsOwnEdgeIs) {
  constexpr uint64_t kTp = 77;
  JobBuilder job(2);
  job.AddCommunicator(kTp, "tp", {0, 1});
  Verdict v;
  v.cause = Cause::kDeadlock;
  v.communicator = kTp;
  v.since_ns = At(10);
  for (const int rank : {0, 1}) {
    const uint64_t own = rank == 0 ? kTp : kDp;
    WaitEdge edge;
    edge.from = {rank};
    edge.communicator = own;
    v.chain.push_back(edge);
    Culprit culprit;
    culprit.process = culprit.rank = rank;
    v.culprits.push_back(culprit);
    Process& process = job.process(rank);
    process.stacks_ns = At(30);
    process.blocked = {{1, Op::kAllReduce, kTp, At(10)}, {2, Op::kAllReduce, kDp, At(10)}};
    process.thread_places = {{1, "", {"/x/train.py:10 in sync", "", true, " train.sync "}},
                             {2, "", {"/x/train.py:27 in train", "", true, " train.train "}}};
  }
  AddPlaces(job.state, &v);
  ASSERT_EQ(v.places.size(), 2u);
  EXPECT_EQ(v.places[0].at, "/x/train.py:10 in sync");
  EXPECT_EQ(v.places[1].at, "/x/train.py:27 in train");
}

TEST(VerdictPlacesTest, ConcurrentUseNamesTheLinesOfBothThreads) {
  JobBuilder job(2);
  job.Finish(10);
  job.Enter({0, 1}, At(10));
  job.process(1).blocked = {{4001, Op::kAllReduce, kDp, At(10)},
                            {4100, Op::kAllGather, kDp, At(10)}};
  job.process(1).stacks_ns = At(30);
  job.process(1).place = {"/x/train.py:31 in step", "", true, " train.step "};
  job.process(1).thread_places = {
      {4001, "python", job.process(1).place},
      {4100, "Saver", {"/x/train.py:57 in save", "", true, " train.save "}}};
  const std::vector<Verdict> verdicts = Diagnoser().Run(job.state, At(80), Limits());
  ASSERT_FALSE(verdicts.empty());
  EXPECT_EQ(verdicts[0].cause, Cause::kConcurrentUse);
  EXPECT_EQ(verdicts[0].summary.rfind(
                "rank 1 is in `step` (train.py:31) and in `save` (train.py:57): two threads of", 0),
            0u)
      << verdicts[0].summary;
}

}  // namespace
}  // namespace rollcall
