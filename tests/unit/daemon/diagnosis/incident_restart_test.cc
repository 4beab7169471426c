// SPDX-License-Identifier: Apache-2.0
// Incidents that an earlier daemon opened.
#include <gtest/gtest.h>

#include <algorithm>
#include <initializer_list>
#include <vector>

#include "daemon/diagnosis/diagnose.h"
#include "incidents_of_job.h"

namespace rollcall {
namespace {

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
