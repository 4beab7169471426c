// SPDX-License-Identifier: Apache-2.0
// Incidents on a time line: a sequence of states and the events that result.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "daemon/diagnosis/diagnose.h"
#include "incidents_of_job.h"

namespace rollcall {
namespace {

TEST_F(IncidentsTest, AWaitIsSuspectedThenConfirmed) {
  RanksWait(10);
  EXPECT_EQ(Look(24), Kinds());
  EXPECT_EQ(Look(25), Kinds{Kind::kOpened});
  EXPECT_EQ(events_[0].incident.id, "train-1");
  EXPECT_EQ(events_[0].take_stacks_of, (std::vector<int32_t>{3, 0, 1, 2}));
  EXPECT_EQ(Look(25.5), Kinds());
  EXPECT_EQ(Look(26), Kinds{Kind::kTakeStacksAgain});
  EXPECT_EQ(Look(69.9), Kinds());
  EXPECT_EQ(Look(70), Kinds{Kind::kConfirmed});
  EXPECT_EQ(events_[0].incident.opened_ns, At(25));
  EXPECT_EQ(events_[0].incident.confirmed_ns, At(70));
  EXPECT_EQ(Look(200), Kinds());
  EXPECT_EQ(life_.live()->verdicts[0].waited_ns, 190 * kSecondNs);
}

TEST_F(IncidentsTest, ConfirmsAnExceptionThatOthersWaitForAtOnce) {
  RanksWait(10);
  job_.process(3).error = "ValueError: no at train.py:5";
  job_.process(3).error_ns = At(10.2);
  EXPECT_EQ(Look(10.3), (Kinds{Kind::kOpened, Kind::kConfirmed}));
  const Verdict& verdict = events_[0].incident.verdicts[0];
  EXPECT_EQ(verdict.cause, Cause::kRankExited);
  EXPECT_EQ(verdict.summary,
            "rank 3 (node-3, pid 4003) failed after 24 calls with \"ValueError: no at "
            "train.py:5\" and never called AllReduce #24 on communicator \"dp\"; 3 ranks have "
            "waited 0.3 s");
}

TEST_F(IncidentsTest, IgnoresAnExceptionAfterWhichARankMakesCalls) {
  RanksWait(10);
  job_.process(3).error = "ValueError: no at <stdin>:1";
  job_.process(3).error_ns = At(-1);  // before its last calls
  EXPECT_EQ(Look(10.3), Kinds());
}

TEST_F(IncidentsTest, ResolvesASlowCallWithoutAConfirmation) {
  RanksWait(10);
  EXPECT_EQ(Look(25), Kinds{Kind::kOpened});
  job_.Finish({3}, 1);
  job_.Complete({0, 1, 2});
  EXPECT_EQ(Look(26), Kinds{Kind::kTakeStacksAgain});
  EXPECT_EQ(Look(27), Kinds{Kind::kResolved});
  EXPECT_EQ(events_[0].incident.confirmed_ns, 0);
  EXPECT_FALSE(life_.live());
}

TEST_F(IncidentsTest, AVerdictMayBeAbsentFromOneDiagnosis) {
  RanksWait(10);
  EXPECT_EQ(Look(25), Kinds{Kind::kOpened});
  const JobState before = job_.state;
  job_.state = JobState();
  EXPECT_EQ(Look(25.5), Kinds());
  job_.state = before;
  EXPECT_EQ(Look(30), Kinds{Kind::kTakeStacksAgain});
  EXPECT_TRUE(life_.live());
}

// All agents were restarted: each counts the waits on its host from its own start.
TEST_F(IncidentsTest, TheSameWaitThatCountsAnewIsTheSameIncident) {
  RanksWait(10);
  Look(25);
  EXPECT_EQ(Look(70).back(), Kind::kConfirmed);
  for (const int rank : {0, 1, 2}) job_.member(rank).waiting_since_ns = At(75);
  for (const double at : {75.5, 77.0, 80.0, 91.0, 140.0}) EXPECT_EQ(Look(at), Kinds()) << at;
  EXPECT_EQ(life_.live()->id, "train-1");
  job_.Finish({3}, 1);
  job_.Complete({0, 1, 2});
  EXPECT_EQ(Look(141), Kinds());
  EXPECT_EQ(Look(142), Kinds{Kind::kResolved});
}

// A restarted agent reports its processes a moment before their waits.
TEST_F(IncidentsTest, KeepsTheIncidentWhenAWaitBrieflyDisappears) {
  RanksWait(10);
  Look(25);
  EXPECT_EQ(Look(70).back(), Kind::kConfirmed);
  for (const int rank : {0, 1, 2}) job_.member(rank).waiting_since_ns = 0;
  EXPECT_EQ(Look(75.0), Kinds());
  for (const int rank : {0, 1, 2}) job_.member(rank).waiting_since_ns = At(75.2);
  for (const double at : {75.3, 76.1, 80.0}) EXPECT_EQ(Look(at), Kinds()) << at;
  EXPECT_EQ(life_.live()->id, "train-1");
}

TEST_F(IncidentsTest, AWaitThatCountsAnewIsOverOnceTheCulpritHasCome) {
  RanksWait(10);
  Look(25);
  EXPECT_EQ(Look(70).back(), Kind::kConfirmed);
  job_.Enter({3}, At(74));
  for (const int rank : {0, 1, 2}) job_.member(rank).waiting_since_ns = At(75);
  EXPECT_EQ(Look(75.5), Kinds());
  EXPECT_EQ(Look(77), Kinds{Kind::kResolved});
}

TEST_F(IncidentsTest, TheSameCreationThatCountsAnewIsTheSameIncident) {
  for (const int rank : {0, 1, 2}) job_.Initializing(rank, At(10));
  job_.comm().members.erase(3);
  Look(25);
  EXPECT_EQ(Look(70).back(), Kind::kConfirmed);
  for (const int rank : {0, 1, 2}) job_.member(rank).init_entered_ns = At(75);
  for (const double at : {75.5, 77.0, 80.0, 91.0}) EXPECT_EQ(Look(at), Kinds()) << at;
  EXPECT_EQ(life_.live()->id, "train-1");
}

TEST_F(IncidentsTest, ConfirmsARankThatLeftEarly) {
  RanksWait(10);
  job_.Exit(3, At(11));
  EXPECT_EQ(Look(15.9), Kinds());
  EXPECT_EQ(Look(16), (Kinds{Kind::kOpened, Kind::kConfirmed}));
  // A process that has ended has no stacks.
  EXPECT_EQ(events_[0].take_stacks_of, (std::vector<int32_t>{0, 1, 2}));
  EXPECT_EQ(Look(17), Kinds{Kind::kTakeStacksAgain});
}

TEST_F(IncidentsTest, AShortHangAfterAppliesToRanksThatLeft) {
  limits_.hang_after_ns = 2 * kSecondNs;
  limits_.suspect_after_ns = kSecondNs;
  RanksWait(10);
  job_.Exit(3, At(10));
  EXPECT_EQ(Look(11), Kinds{Kind::kOpened});
  EXPECT_EQ(Look(12), (Kinds{Kind::kTakeStacksAgain, Kind::kConfirmed}));
}

TEST_F(IncidentsTest, ConfirmsAContradictionAtOnceAndReportsItOnce) {
  job_.Finish(3);
  job_.Finish({0, 1, 2}, 1, AllReduce(), At(1));
  job_.Finish({3}, 1, AllReduce(7), At(1));
  EXPECT_EQ(Look(2), (Kinds{Kind::kOpened, Kind::kConfirmed}));
  job_.Finish(5);  // the job continues
  EXPECT_EQ(Look(4), (Kinds{Kind::kTakeStacksAgain, Kind::kTakeStacksOfRest}));
  EXPECT_EQ(Look(5), Kinds{Kind::kResolved});
  EXPECT_GT(events_[0].incident.confirmed_ns, 0);
  EXPECT_EQ(Look(6), Kinds());
  job_.Finish(600);
  job_.LoseRecordsBefore(100);  // now only checkpoints show the divergence
  EXPECT_EQ(Look(7), Kinds());
}

TEST_F(IncidentsTest, ConfirmsAContradictionWithTheMajorityThatArrivesLater) {
  job_.Finish(3);
  job_.Finish({0}, 1, AllReduce(7), At(1));
  job_.Finish({1}, 1, AllReduce(), At(1));
  EXPECT_EQ(Look(1.1), Kinds{Kind::kOpened});
  job_.Finish({2}, 1, AllReduce(), At(1.2));
  EXPECT_EQ(LookPastStacks(1.3), Kinds{Kind::kUpdated})
      << "two against one, and one may follow either";
  job_.Finish({3}, 1, AllReduce(), At(1.4));
  EXPECT_EQ(LookPastStacks(1.5), (Kinds{Kind::kUpdated, Kind::kConfirmed}));
  const Verdict& verdict = events_.back().incident.verdicts[0];
  EXPECT_EQ(CulpritRanks(verdict.culprits), (std::vector<int32_t>{0}));
  EXPECT_EQ(verdict.certainty, Certainty::kCertain);
}

TEST_F(IncidentsTest, AContradictionWaitsOneSecondForOtherRanks) {
  job_.Finish(3);
  job_.Finish({0, 1}, 1, AllReduce(), At(1));
  job_.Finish({2}, 1, AllReduce(7), At(1));
  EXPECT_EQ(Look(1.1), Kinds{Kind::kOpened});
  EXPECT_EQ(LookPastStacks(2), Kinds());
  EXPECT_EQ(LookPastStacks(2.1), Kinds{Kind::kConfirmed});
  EXPECT_EQ(events_.back().incident.verdicts[0].certainty, Certainty::kLikely);
}

TEST_F(IncidentsTest, AContradictionDoesNotWaitForOtherRanksOnceOneHasEnded) {
  job_.Finish(3);
  job_.Finish({0, 1}, 1, AllReduce(), At(1));
  job_.Finish({2}, 1, AllReduce(7), At(1));
  EXPECT_EQ(Look(1.1), Kinds{Kind::kOpened});
  job_.Die(0, At(1.2), 15);
  Look(1.3);
  ASSERT_TRUE(life_.live());
  EXPECT_EQ(life_.live()->state, IncidentState::kConfirmed);
}

TEST_F(IncidentsTest, ReportsAHangAfterAReportedContradiction) {
  job_.Finish(3);
  job_.Finish({0, 1, 2}, 1, AllReduce(), At(1));
  job_.Finish({3}, 1, AllReduce(7), At(1));
  job_.Finish(5);
  EXPECT_EQ(Look(2), (Kinds{Kind::kOpened, Kind::kConfirmed}));
  EXPECT_EQ(Look(3), (Kinds{Kind::kTakeStacksAgain, Kind::kTakeStacksOfRest}));
  EXPECT_EQ(Look(4), Kinds{Kind::kResolved});
  job_.Enter({0, 1, 2}, At(10));
  EXPECT_EQ(Look(25), Kinds{Kind::kOpened});
  EXPECT_EQ(events_[0].incident.id, "train-2");
  EXPECT_EQ(events_[0].incident.verdicts[0].cause, Cause::kMissingRank);
  EXPECT_EQ(Look(70), (Kinds{Kind::kTakeStacksAgain, Kind::kConfirmed}));
}

TEST_F(IncidentsTest, AnotherRootUpdatesTheLiveIncident) {
  RanksWait(10);
  EXPECT_EQ(Look(25), Kinds{Kind::kOpened});
  job_.Die(3, At(26));
  EXPECT_EQ(Look(32), (Kinds{Kind::kTakeStacksAgain, Kind::kUpdated, Kind::kConfirmed}));
  EXPECT_EQ(events_[1].incident.verdicts[0].cause, Cause::kRankDied);
  EXPECT_EQ(life_.live()->id, "train-1");
}

}  // namespace
}  // namespace rollcall
