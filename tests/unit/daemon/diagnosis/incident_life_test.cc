// SPDX-License-Identifier: Apache-2.0
// Incidents on a time line: a sequence of states and the events that result.
#include "daemon/diagnosis/life/incident_life.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <initializer_list>
#include <numeric>
#include <set>
#include <string>
#include <vector>

#include "daemon/diagnosis/diagnose.h"
#include "job_builder.h"

namespace rollcall {
namespace {

using Kind = IncidentEvent::Kind;
using Kinds = std::vector<Kind>;

class IncidentsTest : public testing::Test {
 protected:
  IncidentsTest() { limits_.stacks_apart_ns = kSecondNs; }

  // Diagnoses the job at this time, as the daemon does in each tick.
  Kinds Look(double at) {
    events_ = life_.Update(job_.state, Diagnose(job_.state, At(at), limits_), At(at), limits_);
    Kinds kinds;
    for (const IncidentEvent& event : events_) kinds.push_back(event.kind);
    return kinds;
  }

  // Without the events that ask for more stacks.
  Kinds LookPastStacks(double at) {
    Kinds kinds = Look(at);
    kinds.erase(std::remove_if(kinds.begin(), kinds.end(),
                               [](Kind kind) {
                                 return kind == Kind::kTakeStacksAgain ||
                                        kind == Kind::kTakeStacksOfRest;
                               }),
                kinds.end());
    return kinds;
  }

  void RanksWait(double at) {
    job_.Finish(24);
    job_.Enter({0, 1, 2}, At(at));
  }

  JobBuilder job_{4};
  IncidentLife life_{"train"};
  Limits limits_;
  std::vector<IncidentEvent> events_;
};

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

TEST_F(IncidentsTest, SamplesRanksThatBeginToWaitLater) {
  job_.Finish(24);
  job_.Enter({3}, At(10), Broadcast());
  job_.Enter({0, 1}, At(10));
  EXPECT_EQ(Look(10.2), Kinds{Kind::kOpened});
  EXPECT_EQ(events_[0].take_stacks_of, (std::vector<int32_t>{3, 0, 1}));
  job_.Enter({2}, At(10.3));
  EXPECT_EQ(LookPastStacks(10.4), (Kinds{Kind::kUpdated, Kind::kConfirmed}));
  EXPECT_EQ(events_[events_.size() - 2].take_stacks_of, (std::vector<int32_t>{2}));
}

TEST_F(IncidentsTest, IgnoresAnExceptionAfterWhichARankMakesCalls) {
  RanksWait(10);
  job_.process(3).error = "ValueError: no at <stdin>:1";
  job_.process(3).error_ns = At(-1);  // before its last calls
  EXPECT_EQ(Look(10.3), Kinds());
}

TEST_F(IncidentsTest, ACallThatStandsStillInFlightLaterIsAskedForAgain) {
  RanksWait(10);
  EXPECT_EQ(Look(25), Kinds{Kind::kOpened});
  EXPECT_EQ(events_[0].take_stacks_of.size(), 4U);
  job_.Enter({3}, At(25.5));
  Look(41);
  const auto updated = std::find_if(events_.begin(), events_.end(), [](const IncidentEvent& event) {
    return event.kind == Kind::kUpdated;
  });
  ASSERT_NE(updated, events_.end());
  EXPECT_EQ(updated->incident.verdicts[0].cause, Cause::kStalledInFlight);
  EXPECT_EQ(updated->take_stacks_of, (std::vector<int32_t>{0, 1, 2, 3}))
      << "their stacks came without their transfers";
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

TEST_F(IncidentsTest, TheEndOfTheJobDoesNotRewriteTheVerdict) {
  RanksWait(10);
  Look(25);
  Look(26);
  EXPECT_EQ(Look(70), Kinds{Kind::kConfirmed});
  job_.Die(1, At(71), 15);  // the launcher ends one rank after the other
  EXPECT_EQ(Look(80), Kinds());
  for (const int rank : {0, 2, 3}) job_.Die(rank, At(81), 15);
  EXPECT_EQ(Look(82), Kinds{Kind::kEnded});
  EXPECT_EQ(events_[0].incident.verdicts[0].cause, Cause::kMissingRank);
  EXPECT_EQ(CulpritRanks(events_[0].incident.verdicts[0].culprits), (std::vector<int32_t>{3}));
  EXPECT_EQ(Look(83), Kinds());
}

// It has made no NCCL call, and is the first that the launcher ends.
TEST_F(IncidentsTest, ARankInTheStoreEndsWithTheJob) {
  job_.state.processes[3].has_segment = false;
  job_.state.processes[3].waits_outside_since_ns = At(12);
  RanksWait(10);
  Look(25);
  EXPECT_EQ(LookPastStacks(70), Kinds{Kind::kConfirmed});
  job_.state.processes[3].liveness = Liveness::kDied;
  EXPECT_EQ(LookPastStacks(80), Kinds()) << "no update";
}

// The last rank comes, and all make the last call and exit within a moment.
TEST_F(IncidentsTest, AJobThatGoesOnAndExitsAtOnceIsResolved) {
  for (const bool is_seen : {true, false}) {
    job_ = JobBuilder(4);
    life_ = IncidentLife("train");
    RanksWait(10);
    Look(25);
    EXPECT_EQ(LookPastStacks(70), Kinds{Kind::kConfirmed});
    job_.Finish({3}, 1);
    job_.Complete({0, 1, 2});
    if (is_seen) {
      EXPECT_EQ(LookPastStacks(80), Kinds());
    }
    for (int rank = 0; rank < 4; ++rank) job_.Exit(rank, At(80.2));
    EXPECT_EQ(LookPastStacks(80.5), Kinds{Kind::kResolved}) << is_seen;
  }
}

TEST_F(IncidentsTest, AJobThatIsEndedWhileItHangsIsNotResolved) {
  RanksWait(10);
  Look(25);
  EXPECT_EQ(LookPastStacks(70), Kinds{Kind::kConfirmed});
  for (int rank = 0; rank < 4; ++rank) job_.Exit(rank, At(80));
  EXPECT_EQ(LookPastStacks(80.5), Kinds{Kind::kEnded}) << "a handler of SIGTERM may exit with 0";
}

TEST_F(IncidentsTest, KeepsTheJobOpenAfterARankEndsBeforeItsHostReports) {
  RanksWait(10);
  const Process unheard = job_.state.processes[3];
  job_.state.processes.pop_back();
  job_.member(3).process = -1;
  Look(25);
  Look(26);
  EXPECT_EQ(Look(70), Kinds{Kind::kConfirmed});
  job_.state.processes.push_back(unheard);
  job_.member(3).process = 3;
  job_.Die(3, At(9));
  Look(80);
  EXPECT_EQ(life_.live()->verdicts[0].cause, Cause::kRankDied);
}

// The agent of rank 3's host is gone, and a new one reports what happened meanwhile.
class LostHostTest : public IncidentsTest {
 protected:
  void ConfirmWithoutTheHost() {
    RanksWait(10);
    job_.process(3).liveness = Liveness::kSilent;
    job_.process(3).silent_since_ns = At(11);
    Look(25);
    Look(26);
    ASSERT_EQ(Look(70), Kinds{Kind::kConfirmed});
    ASSERT_EQ(life_.live()->verdicts[0].cause, Cause::kHostLost);
  }
  // `seen_alive`: the new agent has seen the process alive at that time.
  void Exits(double at, double seen_alive) {
    job_.Exit(3, At(at));
    job_.process(3).ended_after_ns = seen_alive == 0 ? 0 : At(seen_alive);
  }
};

TEST_F(LostHostTest, KeepsTheJobOpenAfterARankEndsOnAnUnreachableHost) {
  ConfirmWithoutTheHost();
  Exits(75, 0);
  for (const double at : {75.1, 76.0, 77.5, 79.9}) EXPECT_EQ(Look(at), Kinds()) << at;
  EXPECT_EQ(Look(81), Kinds{Kind::kUpdated});
  EXPECT_EQ(events_[0].incident.verdicts[0].cause, Cause::kRankExited);
  job_.Die(0, At(90), 15);
  EXPECT_EQ(Look(91), Kinds());
  EXPECT_EQ(life_.live()->verdicts[0].waiting_ranks, (std::vector<int32_t>{0, 1, 2}));
}

TEST_F(LostHostTest, ARankThatWasSeenAliveAfterTheConfirmationEndsWithTheJob) {
  ConfirmWithoutTheHost();
  Exits(75, 74);
  Look(81);
  EXPECT_EQ(life_.live()->verdicts[0].cause, Cause::kHostLost);
}

TEST_F(LostHostTest, ARankThatCameBackEndsWithTheJob) {
  ConfirmWithoutTheHost();
  job_.process(3).liveness = Liveness::kAlive;
  EXPECT_EQ(Look(80), Kinds{Kind::kUpdated});
  Exits(85, 0);
  Look(91);
  EXPECT_EQ(life_.live()->verdicts[0].cause, Cause::kMissingRank);
}

TEST_F(IncidentsTest, EndsWithTheOtherRanksIfAHostIsLostForGood) {
  RanksWait(10);
  Look(25);
  Look(26);
  EXPECT_EQ(Look(70), Kinds{Kind::kConfirmed});
  job_.process(3).liveness = Liveness::kSilent;
  job_.process(3).silent_since_ns = At(71);
  Look(90);
  for (const int rank : {0, 1, 2}) job_.Die(rank, At(91), 15);
  EXPECT_EQ(Look(670.9), Kinds());
  EXPECT_EQ(Look(671), Kinds{Kind::kEnded});
}

TEST_F(IncidentsTest, DoesNotEndWhileAllHostsAreSilent) {
  RanksWait(10);
  job_.Die(3, At(11));
  EXPECT_EQ(Look(30), (Kinds{Kind::kOpened, Kind::kConfirmed}));
  job_.state.agents.emplace_back().silent = true;
  for (int rank = 0; rank < 4; ++rank) job_.process(rank).agent = 0;
  for (const int rank : {0, 1, 2}) {
    job_.process(rank).liveness = Liveness::kSilent;
    job_.process(rank).silent_since_ns = At(31);
  }
  Look(2000);
  EXPECT_TRUE(life_.live());
}

TEST_F(IncidentsTest, TheNormalEndIsNotAnIncident) {
  job_.Finish(24);
  for (int rank = 0; rank < 4; ++rank) {
    job_.Exit(rank, At(rank));
    EXPECT_EQ(Look(rank + 0.5), Kinds());
  }
  EXPECT_EQ(Look(100), Kinds());
}

TEST_F(IncidentsTest, ReportsAContradictionThatIsSeenOnlyAfterTheEnd) {
  job_.Finish({0, 1, 2}, 1);
  job_.Finish({3}, 1, Broadcast());
  for (int rank = 0; rank < 4; ++rank) job_.Exit(rank, At(1));
  EXPECT_EQ(Look(2), (Kinds{Kind::kOpened, Kind::kConfirmed, Kind::kEnded}));
  EXPECT_EQ(Look(3), Kinds());
}

// As the store has it: without indices of processes, and without details.
Incident Stored(const Incident& incident) {
  Incident stored = incident;
  for (Verdict& verdict : stored.verdicts) {
    verdict.waiting_processes.clear();
    for (Culprit& culprit : verdict.culprits) {
      culprit.process = -1;
      culprit.ending.clear();
    }
  }
  return stored;
}

class RestartTest : public IncidentsTest {
 protected:
  void ConfirmAndRestart() {
    RanksWait(10);
    Look(25);
    Look(26);
    ASSERT_EQ(Look(70), Kinds{Kind::kConfirmed});
    Restart();
  }
  void Restart() {
    const Incident live = *life_.live();
    life_ = IncidentLife(JobKey("train"), 1);
    life_.Restore(Stored(live));
  }
  static bool HasAny(const Kinds& kinds, std::initializer_list<Kind> wanted) {
    return std::any_of(kinds.begin(), kinds.end(), [&](Kind kind) {
      return std::find(wanted.begin(), wanted.end(), kind) != wanted.end();
    });
  }
};

TEST_F(RestartTest, TheSameHangKeepsItsIdAndIsNotConfirmedAgain) {
  ConfirmAndRestart();
  const Kinds kinds = Look(80);
  EXPECT_FALSE(HasAny(kinds, {Kind::kOpened, Kind::kConfirmed, Kind::kResolved, Kind::kEnded}));
  EXPECT_EQ(life_.live()->id, "train-1");
  EXPECT_EQ(life_.live()->state, IncidentState::kConfirmed);
  EXPECT_EQ(life_.live()->confirmed_ns, At(70));
  EXPECT_FALSE(life_.live()->is_stored);
  EXPECT_FALSE(HasAny(Look(90), {Kind::kConfirmed, Kind::kResolved}));
}

TEST_F(RestartTest, ASuspicionIsConfirmedUnderItsId) {
  RanksWait(10);
  Look(25);
  Restart();
  EXPECT_FALSE(HasAny(Look(60), {Kind::kOpened, Kind::kConfirmed}));
  EXPECT_TRUE(HasAny(Look(70), {Kind::kConfirmed}));
  EXPECT_EQ(life_.live()->id, "train-1");
}

TEST_F(RestartTest, AHangThatIsOverIsResolvedOnce) {
  ConfirmAndRestart();
  job_.Finish({3}, 1);
  job_.Complete({0, 1, 2});
  EXPECT_FALSE(HasAny(Look(80), {Kind::kResolved}));
  EXPECT_TRUE(HasAny(Look(81), {Kind::kResolved}));
  EXPECT_FALSE(life_.live());
}

TEST_F(RestartTest, AHangAtAnotherPlaceIsAnotherIncident) {
  ConfirmAndRestart();
  job_.Finish({3}, 1);
  job_.Complete({0, 1, 2});
  job_.Finish(5);
  job_.Enter({0, 1, 2}, At(71));
  Look(100);
  EXPECT_TRUE(HasAny(Look(101), {Kind::kResolved}));
  EXPECT_TRUE(HasAny(Look(102), {Kind::kOpened}));
  EXPECT_EQ(life_.live()->id, "train-2");
}

TEST_F(RestartTest, AJobThatWasEndedMeanwhileKeepsItsVerdict) {
  ConfirmAndRestart();
  job_.Die(1, At(71), 15);
  Look(80);
  EXPECT_EQ(life_.live()->verdicts[0].cause, Cause::kMissingRank);
  for (const int rank : {0, 2, 3}) job_.Die(rank, At(81), 15);
  EXPECT_TRUE(HasAny(Look(82), {Kind::kEnded}));
}

TEST_F(RestartTest, KeepsTheJobOpenAfterARankOfALostHostEnds) {
  RanksWait(10);
  job_.process(3).liveness = Liveness::kSilent;
  Look(25);
  Look(26);
  ASSERT_EQ(Look(70), Kinds{Kind::kConfirmed});
  Restart();
  job_.Exit(3, At(75));
  EXPECT_TRUE(HasAny(Look(81), {Kind::kUpdated}));
  EXPECT_EQ(life_.live()->verdicts[0].cause, Cause::kRankExited);
}

TEST_F(RestartTest, APartOfTheJobDoesNotChangeAConfirmedVerdict) {
  ConfirmAndRestart();
  const JobState whole = job_.state;
  job_.state = JobState();
  const auto look = [&](double at) {
    Kinds kinds;
    for (const IncidentEvent& event : life_.Update(
             job_.state, Diagnose(job_.state, At(at), limits_), At(at), limits_, View::kPart)) {
      kinds.push_back(event.kind);
    }
    return kinds;
  };
  EXPECT_EQ(look(110), Kinds());
  EXPECT_EQ(look(120), Kinds()) << "none of those that wait has reported";
  job_.state = whole;
  look(130);
  EXPECT_TRUE(life_.live()->is_stored);
}

TEST_F(RestartTest, AReportedContradictionIsNotNews) {
  job_.Finish(3);
  job_.Finish({0, 1, 2}, 1, AllReduce(), At(1));
  job_.Finish({3}, 1, AllReduce(7), At(1));
  ASSERT_EQ(Look(2), (Kinds{Kind::kOpened, Kind::kConfirmed}));
  const Incident closed = *life_.live();
  life_ = IncidentLife(JobKey("train"), 1);
  life_.RestoreClosed(Stored(closed));
  job_.Finish(5);
  EXPECT_EQ(Look(4), Kinds());
}

TEST_F(RestartTest, AJobThatDoesNotComeBackIsEnded) {
  ConfirmAndRestart();
  const auto events = life_.End(At(700));
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].kind, Kind::kEnded);
  EXPECT_EQ(events[0].incident.closed_ns, At(700));
  EXPECT_TRUE(life_.End(At(701)).empty());
}

}  // namespace
}  // namespace rollcall
