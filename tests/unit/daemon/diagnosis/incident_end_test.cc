// SPDX-License-Identifier: Apache-2.0
// How an incident ends: ranks that end before, with and after the rest of the job, and lost hosts.
#include <gtest/gtest.h>

#include <vector>

#include "daemon/diagnosis/diagnose.h"
#include "incidents_of_job.h"

namespace rollcall {
namespace {

class IncidentEndTest : public IncidentsTest {};

TEST_F(IncidentEndTest, TheEndOfTheJobDoesNotRewriteTheVerdict) {
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
TEST_F(IncidentEndTest, ARankInTheStoreEndsWithTheJob) {
  job_.state.processes[3].has_segment = false;
  job_.state.processes[3].waits_outside_since_ns = At(12);
  RanksWait(10);
  Look(25);
  EXPECT_EQ(LookPastStacks(70), Kinds{Kind::kConfirmed});
  job_.state.processes[3].liveness = Liveness::kDied;
  EXPECT_EQ(LookPastStacks(80), Kinds()) << "no update";
}

// The last rank comes, and all make the last call and exit within a moment.
TEST_F(IncidentEndTest, AJobThatGoesOnAndExitsAtOnceIsResolved) {
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

TEST_F(IncidentEndTest, AJobThatIsEndedWhileItHangsIsNotResolved) {
  RanksWait(10);
  Look(25);
  EXPECT_EQ(LookPastStacks(70), Kinds{Kind::kConfirmed});
  for (int rank = 0; rank < 4; ++rank) job_.Exit(rank, At(80));
  EXPECT_EQ(LookPastStacks(80.5), Kinds{Kind::kEnded}) << "a handler of SIGTERM may exit with 0";
}

TEST_F(IncidentEndTest, KeepsTheJobOpenAfterARankEndsBeforeItsHostReports) {
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

// Two threads of each rank make calls, and gloo ends the ranks at the first that differs. What is
// left of them shows the same calls.
TEST_F(IncidentEndTest, CallsOfTwoThreadsAreToldOnce) {
  job_.Finish(24);
  job_.Enter({0, 1, 2}, At(10), AllReduce(264));
  job_.Enter({3}, At(10), AllReduce(3));
  for (int rank = 0; rank < 4; ++rank) {
    for (CallRecord& record : job_.member(rank).records) record.thread = 1;
    job_.process(rank).callers = {{1, 0, "python"}, {2, 0, "Flusher"}};
  }
  job_.member(3).records.back().thread = 2;
  EXPECT_EQ(LookPastStacks(10.5), (Kinds{Kind::kOpened, Kind::kConfirmed}));
  EXPECT_EQ(events_[0].incident.verdicts[0].cause, Cause::kConcurrentUse);
  for (int rank = 0; rank < 4; ++rank) job_.Die(rank, At(11), 6);
  EXPECT_EQ(LookPastStacks(11.1), Kinds{Kind::kEnded});
  EXPECT_EQ(LookPastStacks(15), Kinds());
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

TEST_F(IncidentEndTest, EndsWithTheOtherRanksIfAHostIsLostForGood) {
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

TEST_F(IncidentEndTest, DoesNotEndWhileAllHostsAreSilent) {
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

TEST_F(IncidentEndTest, TheNormalEndIsNotAnIncident) {
  job_.Finish(24);
  for (int rank = 0; rank < 4; ++rank) {
    job_.Exit(rank, At(rank));
    EXPECT_EQ(Look(rank + 0.5), Kinds());
  }
  EXPECT_EQ(Look(100), Kinds());
}

TEST_F(IncidentEndTest, ReportsAContradictionThatIsSeenOnlyAfterTheEnd) {
  job_.Finish({0, 1, 2}, 1);
  job_.Finish({3}, 1, Broadcast());
  for (int rank = 0; rank < 4; ++rank) job_.Exit(rank, At(1));
  EXPECT_EQ(Look(2), (Kinds{Kind::kOpened, Kind::kConfirmed, Kind::kEnded}));
  EXPECT_EQ(Look(3), Kinds());
}

}  // namespace
}  // namespace rollcall
