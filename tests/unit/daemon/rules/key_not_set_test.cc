// SPDX-License-Identifier: Apache-2.0
// Ranks that wait for a key of a store: who has not set it, and when no rank is to blame.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "daemon/diagnosis/diagnose.h"
#include "daemon/diagnosis/waits/awaited_keys.h"
#include "steps_of_calls.h"

namespace rollcall {
namespace {

constexpr char kKey[] = "/saved";

// The main thread of this rank waits for the key.
BlockedCall* AwaitKey(int rank, double since, JobBuilder* job, const std::string& key = kKey) {
  Process& process = job->state.processes[static_cast<size_t>(rank)];
  BlockedCall call;
  call.thread = static_cast<uint32_t>(process.pid);
  call.op = Op::kstore_wait;
  call.since_ns = At(since);
  call.key = key;
  call.keys = 1;
  process.blocked.push_back(call);
  return &process.blocked.back();
}

std::vector<Verdict> Judge(const JobBuilder& job) { return Diagnose(job.state, At(70), Limits()); }

Verdict First(const JobBuilder& job) {
  const std::vector<Verdict> verdicts = Judge(job);
  EXPECT_FALSE(verdicts.empty());
  return verdicts.empty() ? Verdict() : verdicts[0];
}

JobBuilder ThreeOfFourWait() {
  JobBuilder job(4);
  job.Finish(5);
  for (const int rank : {0, 1, 2}) AwaitKey(rank, 10, &job);
  return job;
}

TEST(KeyNotSetTest, BlamesTheRankThatDoesNotWaitAndNamesTheKey) {
  const Verdict v = First(ThreeOfFourWait());
  EXPECT_EQ(v.cause, Cause::kMissingRank);
  EXPECT_EQ(Blamed(v), (Ranks{3}));
  EXPECT_EQ(v.waiting_ranks, (Ranks{0, 1, 2}));
  EXPECT_EQ(v.certainty, Certainty::kLikely);
  EXPECT_EQ(v.communicator_name, kKey);
  EXPECT_EQ(v.communicator_kind, CommKind::kStore);
  EXPECT_EQ(v.summary,
            "rank 3 (node-3, pid 4003) has neither set nor awaited key \"/saved\" of the store; "
            "3 ranks have waited 60 s");
}

TEST(KeyNotSetTest, SkipsTheSearchWhenNoRankWaitsForAKey) {
  JobBuilder job(1000);
  job.Finish(5);
  job.process(7).blocked.push_back({1, Op::kAllReduce, kDp, At(10)});
  EXPECT_EQ(FindKeyWaits(job.state).looked_at, 0u);
  AwaitKey(7, 10, &job);
  EXPECT_EQ(FindKeyWaits(job.state).looked_at, 1000u);
}

TEST(KeyNotSetTest, WhoMaySetTheKeyAmongManyIsOnlyPossible) {
  JobBuilder job(4);
  job.Finish(5);
  AwaitKey(2, 10, &job);
  const Verdict v = First(job);
  EXPECT_EQ(Blamed(v), (Ranks{0, 1, 3}));
  EXPECT_EQ(v.certainty, Certainty::kPossible);
}

TEST(KeyNotSetTest, OfThoseThatHaveEndedTheOneThatFailedIsBlamed) {
  JobBuilder job(4);
  job.Finish(5);
  for (const int rank : {0, 1}) AwaitKey(rank, 10, &job);
  for (const int rank : {2, 3}) job.Exit(rank, At(20));
  job.process(3).error = "ValueError: no weight at engine.py:57";
  job.process(3).error_ns = At(19);
  const Verdict v = First(job);
  EXPECT_EQ(Blamed(v), (Ranks{3})) << v.summary;
  EXPECT_TRUE(absl::StrContains(v.summary, "ValueError: no weight")) << v.summary;
  EXPECT_NE(v.certainty, Certainty::kCertain);
}

TEST(KeyNotSetTest, ARankThatStandsElsewhereHoldsUpAllThatWait) {
  JobBuilder job(4);
  job.Finish(5);
  job.AddCommunicator(7, "pair", {2, 3});
  job.Enter({0}, At(11));  // rank 2 waits for rank 3, and the others for rank 2 or 3
  for (const int rank : {0, 1}) AwaitKey(rank, 12, &job);
  EXPECT_EQ(Blamed(First(job)), (Ranks{3}));
}

TEST(KeyNotSetTest, ARankThatWaitsAloneWhileTheOthersReduceIsTheCulprit) {
  JobBuilder job(4);
  job.Finish(5);
  job.Enter({0, 1, 2}, At(10));
  AwaitKey(3, 10, &job);
  const Verdict v = First(job);
  EXPECT_EQ(v.cause, Cause::kMissingRank) << v.summary;
  EXPECT_EQ(Blamed(v), (Ranks{3})) << v.summary;
  EXPECT_TRUE(Says(v.evidence, "rank 3 waits for key \"/saved\" of the store")) << v.summary;
}

TEST(KeyNotSetTest, TwoRanksThatWaitForEachOtherAreADeadlock) {
  JobBuilder job(2);
  job.Finish(5);
  job.Enter({0}, At(10));
  AwaitKey(1, 11, &job);
  const Verdict v = First(job);
  EXPECT_EQ(v.cause, Cause::kDeadlock) << v.summary;
  EXPECT_EQ(v.certainty, Certainty::kLikely);
  EXPECT_TRUE(Says(v.evidence,
                   "rank 1 waits for key \"/saved\" of the store, which rank 0 has not "
                   "set"));
}

TEST(KeyNotSetTest, NoCulpritIsMoreThanPossibleIfAllWait) {
  JobBuilder job = ThreeOfFourWait();
  AwaitKey(3, 12, &job);
  const Verdict v = First(job);
  EXPECT_EQ(v.certainty, Certainty::kPossible);
  EXPECT_EQ(
      v.summary,
      "all 4 ranks wait for key \"/saved\" of the store, which no rank sets; 4 ranks have waited "
      "60 s");
}

TEST(KeyNotSetTest, BlamesADeadRankIfNoOtherCouldSetTheKey) {
  JobBuilder job = ThreeOfFourWait();
  Process& dead = job.state.processes[3];
  dead.liveness = Liveness::kDied;
  dead.ended_ns = At(20);
  dead.exit_signal = 9;
  const Verdict v = First(job);
  EXPECT_EQ(v.cause, Cause::kRankDied) << v.summary;
  EXPECT_EQ(Blamed(v), (Ranks{3}));
  EXPECT_TRUE(Says({v.summary}, "and never set key \"/saved\" of the store")) << v.summary;
}

TEST(KeyNotSetTest, ARankThatHasEndedIsNotBlamedWhileAnotherOneLives) {
  JobBuilder job(4);
  job.Finish(5);
  for (const int rank : {0, 1}) AwaitKey(rank, 60, &job);
  job.state.processes[3].liveness = Liveness::kExited;
  job.state.processes[3].ended_ns = At(20);
  EXPECT_TRUE(Judge(job).empty());
}

TEST(KeyNotSetTest, BlamesNoRankWhileAnotherMakesCalls) {
  JobBuilder job = ThreeOfFourWait();
  job.AddCommunicator(7, "alone", {3});
  job.Finish({0}, 3, AllReduce(), At(66));
  EXPECT_TRUE(Judge(job).empty());
}

TEST(KeyNotSetTest, AWaitWithoutATimeOutIsIdle) {
  JobBuilder job = ThreeOfFourWait();
  for (const int rank : {0, 1, 2}) {
    job.state.processes[static_cast<size_t>(rank)].blocked[0].key_waits_forever = true;
  }
  EXPECT_TRUE(Judge(job).empty());
}

TEST(KeyNotSetTest, AThreadBesideTheMainOneMayWaitForGood) {
  JobBuilder job(2);
  job.Finish(5);
  AwaitKey(0, 10, &job)->thread = 77;
  EXPECT_TRUE(Judge(job).empty());
}

TEST(KeyNotSetTest, AShortWaitDoesNotCount) {
  JobBuilder job(2);
  job.Finish(5);
  AwaitKey(0, 60, &job);
  EXPECT_TRUE(Judge(job).empty());
}

TEST(KeyNotSetTest, ThePlaceOfAWorkerThatHasInheritedTheRankDoesNotCount) {
  JobBuilder job(2);
  job.Finish(5);
  for (const int rank : {0, 1}) AwaitKey(rank, 10, &job);
  Process worker = job.state.processes[1];
  worker.pid = 5000;
  worker.has_segment = false;
  worker.blocked.clear();
  job.state.processes.push_back(worker);
  EXPECT_EQ(First(job).waiting_ranks, (Ranks{0, 1}));
}

TEST(KeyNotSetTest, NamesNoRankIfManyMaySetTheKey) {
  JobBuilder job(40);
  for (int rank = 0; rank < 4; ++rank) AwaitKey(rank, 10, &job);
  EXPECT_TRUE(FindKeyWaits(job.state).calls.empty());
}

TEST(KeyNotSetTest, KeysOfBackendsAreJudgedWithTheirCommunicators) {
  EXPECT_TRUE(IsKeyOfBackend("/default_pg/0//1//cpu//0/2"));
  EXPECT_TRUE(IsKeyOfBackend("/default_pg/0//cuda//0"));
  EXPECT_FALSE(IsKeyOfBackend("/default_pg/0//store_based_barrier_key:1:last"));
  EXPECT_FALSE(IsKeyOfBackend("/default_pg/saved"));
  EXPECT_FALSE(IsKeyOfBackend("/default_pg/s3://bucket//step"));
  EXPECT_FALSE(IsKeyOfBackend("/default_pg/0//1//saved"));
  EXPECT_FALSE(IsKeyOfBackend("/s3://bucket//step"));
}

}  // namespace
}  // namespace rollcall
