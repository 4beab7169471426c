// SPDX-License-Identifier: Apache-2.0
#include "daemon/diagnosis/diagnose.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "job_builder.h"

namespace rollcall {
namespace {

using Ranks = std::vector<int32_t>;

std::vector<Verdict> DiagnoseAt(const JobBuilder& job, double now = 70) {
  return Diagnose(job.state, At(now), Limits());
}

TEST(DiagnoseTest, NothingIsWrongWithAnEmptyJob) {
  EXPECT_TRUE(Diagnose(JobState(), At(1000), Limits()).empty());
}

TEST(DiagnoseTest, NothingIsWrongWithASlowFirstStep) {
  JobBuilder job(4);
  job.Enter({0, 1, 2}, At(0));
  EXPECT_TRUE(DiagnoseAt(job, 14).empty());
}

TEST(DiagnoseTest, AVerdictNamesTheReportedSteps) {
  JobBuilder job(4);
  job.Enter({0, 1, 2}, At(10));
  for (const int rank : {0, 1, 2}) job.process(rank).step = 812;
  job.process(0).step = 811;  // it has not reported the new step yet
  job.process(3).step = 812;
  job.process(3).phase = "validation";
  const std::vector<Verdict> verdicts = DiagnoseAt(job);
  ASSERT_EQ(verdicts.size(), 1u);
  EXPECT_EQ(verdicts[0].step, 812);
  EXPECT_EQ(verdicts[0].phase, "");
  EXPECT_EQ(verdicts[0].culprits[0].step, 812);
  EXPECT_EQ(verdicts[0].culprits[0].phase, "validation");
  EXPECT_NE(verdicts[0].summary.find("have waited 60 s in step 812"), std::string::npos)
      << verdicts[0].summary;
  EXPECT_EQ(verdicts[0].evidence.back(),
            "rank 3: in step 812 (validation), while the waiting ranks are in step 812");
}

TEST(DiagnoseTest, AVerdictNamesNoStepIfNoneIsReported) {
  JobBuilder job(4);
  job.Enter({0, 1, 2}, At(10));
  const std::vector<Verdict> verdicts = DiagnoseAt(job);
  ASSERT_EQ(verdicts.size(), 1u);
  EXPECT_EQ(verdicts[0].step, -1);
  EXPECT_EQ(verdicts[0].summary.find("step"), std::string::npos);
}

TEST(DiagnoseTest, TheAbsenceOfARankThatWaitsElsewhereIsAConsequence) {
  // Rank 0 is absent in "tp" of ranks 0 and 1, so rank 1 is absent in "dp" of ranks 1 and 2.
  JobBuilder job(3);
  job.AddCommunicator(1, "tp", {0, 1});
  job.AddCommunicator(2, "pp", {1, 2});
  job.On(2);
  job.Enter({1}, At(5));  // rank 2 of the job waits first
  job.On(1);
  job.Enter({1}, At(10));
  const std::vector<Verdict> verdicts = DiagnoseAt(job);
  ASSERT_EQ(verdicts.size(), 2u);
  EXPECT_EQ(CulpritRanks(verdicts[0].culprits), (Ranks{0}));
  EXPECT_FALSE(verdicts[0].is_consequence);
  EXPECT_EQ(CulpritRanks(verdicts[1].culprits), (Ranks{1}));
  EXPECT_TRUE(verdicts[1].is_consequence);
}

TEST(DiagnoseTest, ExcusesAbsentRanksThatWaitElsewhere) {
  JobBuilder job(4);
  job.AddCommunicator(1, "tp", {2, 3});
  job.Enter({1}, At(12));  // rank 3 waits for rank 2
  job.On(kDp);
  job.Enter({0, 1}, At(10));
  const std::vector<Verdict> verdicts = DiagnoseAt(job);
  ASSERT_EQ(verdicts.size(), 2u);
  EXPECT_EQ(CulpritRanks(verdicts[0].culprits), (Ranks{2}));
  EXPECT_EQ(CulpritRanks(verdicts[1].culprits), (Ranks{2}));
  EXPECT_TRUE(verdicts[1].is_consequence);
}

TEST(DiagnoseTest, AMismatchExplainsALaterWait) {
  JobBuilder job(4);
  job.Finish(3);
  job.Finish({0}, 1, Broadcast(), At(1));  // an extra call
  job.Finish({0, 1, 2, 3}, 20, AllReduce(), At(2));
  job.Enter({0}, At(9));
  const std::vector<Verdict> verdicts = DiagnoseAt(job);
  ASSERT_GE(verdicts.size(), 2u);
  EXPECT_EQ(verdicts[0].cause, Cause::kOperationMismatch);
  EXPECT_EQ(verdicts[0].position, 3u);
  EXPECT_EQ(CulpritRanks(verdicts[0].culprits), (Ranks{0}));
  for (size_t i = 1; i < verdicts.size(); ++i) EXPECT_TRUE(verdicts[i].is_consequence);
}

TEST(DiagnoseTest, FindsAHangAfterAMismatchThatDidNotStopTheJob) {
  JobBuilder job(4);
  job.Finish(10);
  job.Finish({0, 1, 2}, 1);
  job.Finish({3}, 1, AllReduce(9));
  job.Finish(10);
  job.Enter({0, 1, 3}, At(10));
  const std::vector<Verdict> verdicts = DiagnoseAt(job);
  ASSERT_EQ(verdicts.size(), 2u);
  EXPECT_EQ(verdicts[0].cause, Cause::kMissingRank);
  EXPECT_EQ(CulpritRanks(verdicts[0].culprits), (Ranks{2}));
  EXPECT_FALSE(verdicts[0].is_consequence);
  EXPECT_EQ(verdicts[1].cause, Cause::kArgumentMismatch);
}

TEST(DiagnoseTest, ADeadRankComesBeforeALateRank) {
  JobBuilder job(4);
  job.Finish(24);
  job.Enter({0, 1}, At(10));
  job.Die(3, At(9));
  const std::vector<Verdict> verdicts = DiagnoseAt(job);
  ASSERT_EQ(verdicts.size(), 2u);
  EXPECT_EQ(verdicts[0].cause, Cause::kRankDied);
  EXPECT_EQ(CulpritRanks(verdicts[1].culprits), (Ranks{2}));
  EXPECT_TRUE(verdicts[1].is_consequence);
}

// Somebody may have ended the rank because of the contradiction.
TEST(DiagnoseTest, ADeathBesideAContradictionOfOtherRanksIsLikely) {
  JobBuilder job(4);
  job.AddCommunicator(1, "pp", {2, 3});
  job.Finish(4);
  job.Enter({0}, At(9));
  job.AddCommunicator(2, "tp", {0, 1});
  job.Finish(4);
  job.Enter({0}, At(10), AllReduce(8));
  job.Enter({1}, At(10), AllReduce(9));
  job.On(1);
  job.Die(1, At(9));
  const std::vector<Verdict> verdicts = DiagnoseAt(job);
  ASSERT_GE(verdicts.size(), 2u);
  EXPECT_EQ(verdicts[0].cause, Cause::kRankDied);
  EXPECT_EQ(verdicts[0].certainty, Certainty::kLikely);
  EXPECT_EQ(verdicts[1].cause, Cause::kArgumentMismatch);
  EXPECT_FALSE(verdicts[1].is_consequence);
}

TEST(DiagnoseTest, ADeathBesideAHarmlessContradictionIsCertain) {
  JobBuilder job(4);
  job.Finish({0, 1, 2}, 1);
  job.Finish({3}, 1, AllReduce(9));
  job.Finish(10);
  job.Enter({0, 1, 3}, At(10));
  job.Die(2, At(9));
  const std::vector<Verdict> verdicts = DiagnoseAt(job);
  ASSERT_EQ(verdicts.size(), 2u);
  EXPECT_EQ(verdicts[0].cause, Cause::kRankDied);
  EXPECT_EQ(verdicts[0].certainty, Certainty::kCertain);
}

TEST(DiagnoseTest, OneDeathOnTwoCommunicatorsIsOneCause) {
  JobBuilder job(3);
  job.AddCommunicator(1, "tp", {0, 2});
  job.Enter({0}, At(11));
  job.On(kDp);
  job.Enter({1}, At(10));
  job.Die(2, At(9));
  const std::vector<Verdict> verdicts = DiagnoseAt(job);
  ASSERT_GE(verdicts.size(), 2u);
  EXPECT_EQ(verdicts[0].cause, Cause::kRankDied);
  for (size_t i = 1; i < verdicts.size(); ++i) EXPECT_TRUE(verdicts[i].is_consequence);
}

TEST(DiagnoseTest, ACircleIsADeadlock) {
  JobBuilder job(2);
  job.AddCommunicator(1, "a", {0, 1});
  job.Enter({0}, At(10));  // 0 waits on "a" for 1
  job.AddCommunicator(2, "b", {0, 1});
  job.Enter({1}, At(11));  // 1 waits on "b" for 0
  const std::vector<Verdict> verdicts = DiagnoseAt(job);
  ASSERT_EQ(verdicts.size(), 1u);
  EXPECT_EQ(verdicts[0].cause, Cause::kDeadlock);
  EXPECT_EQ(verdicts[0].communicator, 1u);
  EXPECT_EQ(verdicts[0].certainty, Certainty::kCertain);
  EXPECT_EQ(CulpritRanks(verdicts[0].culprits), (Ranks{0, 1}));
  EXPECT_EQ(verdicts[0].summary,
            "ranks 0-1 wait for each other: rank 0 waits in AllReduce #0 on communicator \"a\" for "
            "rank 1, and rank 1 waits in AllReduce #0 on communicator \"b\" for rank 0; 2 ranks "
            "have waited 60 s");
}

TEST(DiagnoseTest, AnInferredStallMayBeAWaitOnAnotherCommunicator) {
  JobBuilder job(2, false);
  job.AddCommunicator(1, "a", {0, 1});
  job.Finish({0}, 1);  // rank 1 has not entered it
  job.AddCommunicator(2, "b", {0, 1});
  job.Enter({0, 1}, At(10));
  const std::vector<Verdict> verdicts = DiagnoseAt(job);
  ASSERT_EQ(verdicts.size(), 1u);
  EXPECT_EQ(verdicts[0].cause, Cause::kMissingRank);
  EXPECT_EQ(verdicts[0].communicator, 1u);
}

TEST(DiagnoseTest, AMismatchExplainsACallThatDoesNotFinish) {
  JobBuilder job(4);
  job.Enter({0, 1}, At(10), Broadcast());
  job.Enter({2, 3}, At(10));
  const std::vector<Verdict> verdicts = DiagnoseAt(job);
  ASSERT_EQ(verdicts.size(), 1u);
  EXPECT_EQ(verdicts[0].cause, Cause::kOperationMismatch);
  EXPECT_EQ(verdicts[0].waiting_ranks, (Ranks{0, 1, 2, 3}));
}

// The reports of node-0 and node-3 are on their way: rank 3 has long entered the call that ranks 1
// and 2 have finished.
TEST(DiagnoseTest, AnUnsettledWaitDoesNotComeBeforeASettledContradiction) {
  JobBuilder job(4);
  for (int rank = 0; rank < 4; ++rank) {
    AgentState& agent = job.state.agents.emplace_back();
    agent.host = job.process(rank).host;
    agent.heard_ns = At(58);
    agent.is_settled = true;
    job.process(rank).agent = rank;
  }
  job.Finish(24);
  job.Enter({0}, At(30));
  job.Finish({1, 2}, 1, AllReduce(), At(57));
  job.comm().finish_seen_ns = At(57.5);
  job.Enter({1}, At(57.6), AllReduce(128));
  job.Enter({2}, At(57.6), AllReduce(256));
  const std::vector<Verdict> verdicts = DiagnoseAt(job, 58);
  ASSERT_EQ(verdicts.size(), 2u);
  EXPECT_EQ(verdicts[0].cause, Cause::kArgumentMismatch);
  EXPECT_FALSE(verdicts[0].unsettled);
  EXPECT_EQ(verdicts[1].cause, Cause::kMissingRank);
  EXPECT_TRUE(verdicts[1].unsettled);
}

TEST(DiagnoseTest, FillsInSummaryAndAdvice) {
  JobBuilder job(4);
  job.Finish(24);
  job.Enter({0, 1, 2}, At(10));
  job.Exit(3, At(11));
  const std::vector<Verdict> verdicts = DiagnoseAt(job, 20);
  ASSERT_EQ(verdicts.size(), 1u);
  EXPECT_EQ(verdicts[0].summary,
            "rank 3 (node-3, pid 4003) left after 24 calls (exited normally) and never "
            "called AllReduce #24 on communicator \"dp\"; 3 ranks have waited 10 s");
  ASSERT_FALSE(verdicts[0].advice.empty());
  EXPECT_EQ(verdicts[0].advice[0].id, "uneven-inputs");
}

// A state from damaged data: any index, any counter, any order.
class DamagedJob {
 public:
  explicit DamagedJob(uint32_t seed) : random_(seed) {}

  JobState Make() {
    JobState job;
    job.offline = Pick(2) == 0;
    job.processes.resize(Pick(5));
    for (Process& p : job.processes) {
      p.global_rank = static_cast<int32_t>(Pick(6)) - 1;
      p.world_size = static_cast<int32_t>(Pick(6)) - 1;
      p.liveness = static_cast<Liveness>(Pick(5));
      p.ended_ns = Time();
      p.has_segment = Pick(2) == 0;
      for (size_t i = Pick(3); i > 0; --i) {
        p.blocked.push_back({1, static_cast<Op>(Pick(100)), Pick(4), Time()});
      }
    }
    for (size_t i = Pick(4); i > 0; --i) {
      Communicator& comm = job.communicators[i];
      comm.id = Pick(8) == 0 ? 99 : i;
      comm.parent = Pick(4);
      comm.size = Pick(9) == 0 ? INT32_MAX : static_cast<int32_t>(Pick(6)) - 1;
      for (size_t m = Pick(6); m > 0; --m) Fill(&comm.members[static_cast<int32_t>(Pick(6))]);
    }
    return job;
  }

 private:
  uint64_t Pick(uint64_t below) { return random_() % below; }
  uint64_t Count() { return Pick(9) == 0 ? UINT64_MAX - Pick(2) : Pick(5); }
  int64_t Time() { return Pick(3) == 0 ? 0 : At(static_cast<double>(Pick(100))); }

  void Fill(Member* m) {
    m->process = static_cast<int32_t>(Pick(7)) - 1;
    m->state = static_cast<MemberState>(Pick(Pick(2) == 0 ? 8 : 2));
    m->init_entered_ns = Time();
    m->entered = Count();
    m->has_markers = Pick(2) == 0;
    m->started = Count();
    m->finished = Count();
    m->waiting_since_ns = Time();
    m->host_blocked_since_ns = Time();
    m->host_waits_since_ns = Time();
    m->signature = Pick(3);
    for (size_t i = Pick(4); i > 0; --i) m->checkpoints.push_back({Count(), Pick(2)});
    for (size_t i = Pick(6); i > 0; --i) {
      CallRecord record;
      record.index = Count();
      record.position = Count();
      record.args.op = static_cast<Op>(Pick(30));
      record.args.count = Pick(2);
      record.entered_ns = Time();
      m->records.push_back(record);
    }
  }

  std::mt19937 random_;
};

TEST(DiagnoseTest, GivesValidVerdictsOnDamagedData) {
  size_t found = 0;
  for (uint32_t seed = 0; seed < 4000; ++seed) {
    const std::vector<Verdict> verdicts = Diagnose(DamagedJob(seed).Make(), At(100), Limits());
    found += verdicts.size();
    bool roots_are_over = false;
    for (const Verdict& v : verdicts) {
      ASSERT_FALSE(roots_are_over && !v.is_consequence) << seed;  // causes come first
      roots_are_over = v.is_consequence;
      ASSERT_TRUE(!v.culprits.empty() || v.cause == Cause::kStalledInFlight) << seed;
      ASSERT_FALSE(v.summary.empty() || (v.advice.empty() && !v.is_consequence)) << seed;
      ASSERT_TRUE(IsContradiction(v.cause) || !v.waiting_ranks.empty()) << seed;
    }
    ASSERT_FALSE(!verdicts.empty() && verdicts[0].is_consequence) << seed;
  }
  EXPECT_GT(found, 500u);
}

TEST(NextDueTest, AHealthyJobIsNeverDue) {
  JobBuilder job(4);
  job.Finish(24);
  Diagnoser diagnoser;
  EXPECT_EQ(diagnoser.NextDueNs(), 0);
  EXPECT_TRUE(diagnoser.Run(job.state, At(10), Limits()).empty());
  EXPECT_EQ(diagnoser.NextDueNs(), Diagnoser::kNever);
}

TEST(NextDueTest, AWaitIsDueAfterTheShortestLimit) {
  JobBuilder job(4);
  job.Finish(24);
  job.Enter({0, 1, 2}, At(10));
  Diagnoser diagnoser;
  EXPECT_TRUE(diagnoser.Run(job.state, At(11), Limits()).empty());
  EXPECT_EQ(diagnoser.NextDueNs(), At(15));
}

TEST(NextDueTest, GivesTheSameForAJobWithVersions) {
  JobBuilder job(4);
  job.Finish(24);
  Communicator& comm = job.state.communicators.begin()->second;
  comm.version = 1;
  Diagnoser diagnoser;
  diagnoser.Run(job.state, At(10), Limits());
  EXPECT_EQ(diagnoser.NextDueNs(), Diagnoser::kNever);
  job.Enter({0, 1, 2}, At(11));
  comm.version = 2;
  comm.may_wait = 3;
  EXPECT_TRUE(diagnoser.Run(job.state, At(12), Limits()).empty());
  EXPECT_GT(diagnoser.NextDueNs(), At(12));
  EXPECT_LE(diagnoser.NextDueNs(), At(16));
}

TEST(NextDueTest, AThreadInsideACallIsDueAfterTheShortestLimit) {
  JobBuilder job(4);
  job.Finish(24);
  job.process(1).blocked.push_back({7, Op::kCommDestroy, kDp, At(9)});
  Diagnoser diagnoser;
  EXPECT_TRUE(diagnoser.Run(job.state, At(10), Limits()).empty());
  EXPECT_EQ(diagnoser.NextDueNs(), At(14));
}

TEST(NextDueTest, ARankThatWaitsInTheStoreBeforeTheFirstCallIsDue) {
  JobState job;
  job.processes.resize(2);
  job.processes[0].global_rank = 0;
  job.processes[0].waits_outside_since_ns = At(10);
  Diagnoser diagnoser;
  EXPECT_TRUE(diagnoser.Run(job, At(11), Limits()).empty());
  EXPECT_EQ(diagnoser.NextDueNs(), At(25));
}

TEST(NextDueTest, AnErrorAndAVerdictAreDueAtOnce) {
  JobBuilder job(4);
  job.Finish(24);
  job.process(3).error = "ValueError: no at train.py:5";
  Diagnoser diagnoser;
  diagnoser.Run(job.state, At(10), Limits());
  EXPECT_EQ(diagnoser.NextDueNs(), At(10));
  JobBuilder hung(4);
  hung.Finish(24);
  hung.Enter({0, 1, 2}, At(10));
  Diagnoser other;
  EXPECT_FALSE(other.Run(hung.state, At(40), Limits()).empty());
  EXPECT_EQ(other.NextDueNs(), At(40));
}

// The rule that the caller relies on: no diagnosis of the same state finds anything before the
// time that NextDueNs() gives.
TEST(NextDueTest, NothingIsFoundBeforeTheTime) {
  for (uint32_t seed = 0; seed < 2000; ++seed) {
    const JobState job = DamagedJob(seed).Make();
    Diagnoser diagnoser;
    const int64_t begin = At(50);
    const bool found = !diagnoser.Run(job, begin, Limits()).empty();
    const int64_t due = diagnoser.NextDueNs();
    if (found) {
      ASSERT_EQ(due, begin) << seed;
    }
    for (int64_t now = begin; now < due && now < At(200); now += kSecondNs) {
      ASSERT_TRUE(Diagnose(job, now, Limits()).empty()) << seed;
    }
  }
}

}  // namespace
}  // namespace rollcall
