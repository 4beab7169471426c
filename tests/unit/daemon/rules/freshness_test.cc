// SPDX-License-Identifier: Apache-2.0
// Old reports: hosts whose agents are stopped, late or silent, and verdicts on their ranks.
#include "daemon/rules/freshness.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "daemon/diagnosis/diagnose.h"
#include "daemon/diagnosis/life/incident_life.h"
#include "job_builder.h"

namespace rollcall {
namespace {

using Kind = IncidentEvent::Kind;
using Kinds = std::vector<Kind>;
using Ranks = std::vector<int32_t>;

constexpr size_t kA = 0, kB = 1;  // hosts, and their agents

// Ranks 0 and 1 on host a, 2 and 3 on host b; all have made 24 calls.
class FreshnessTest : public testing::Test {
 protected:
  FreshnessTest() {
    for (const char* host : {"a", "b"}) {
      AgentState& agent = job_.state.agents.emplace_back();
      agent.id = agent.host = host;
      agent.tick_ns = kSecondNs / 10;
    }
    for (int rank = 0; rank < 4; ++rank) {
      job_.process(rank).agent = rank / 2;
      job_.process(rank).host = rank < 2 ? "a" : "b";
    }
    job_.Finish(24);
  }

  // No report of the agent arrives from this time on.
  void FallStale(size_t agent, double at) {
    job_.state.agents[agent].stale = true;
    held_[agent] = At(at);
  }
  void FallSilent(size_t agent) {
    job_.state.agents[agent].stale = job_.state.agents[agent].silent = true;
    for (Process& process : job_.state.processes) {
      if (process.agent == static_cast<int32_t>(agent)) process.liveness = Liveness::kSilent;
    }
  }
  void ComeBack(size_t agent) {
    job_.state.agents[agent].stale = job_.state.agents[agent].silent = false;
    held_[agent] = 0;
  }

  // A restarted agent reports the process without its calls.
  void LoseSegment(int rank) {
    job_.process(rank).has_met = true;
    job_.process(rank).has_segment = false;
  }

  std::vector<Verdict> Diagnosed(double at) {
    for (size_t i = 0; i < job_.state.agents.size(); ++i) {
      job_.state.agents[i].heard_ns = held_[i] != 0 ? held_[i] : At(at);
    }
    return Diagnose(job_.state, At(at), limits_);
  }
  Kinds Look(double at) {
    Kinds kinds;
    for (const IncidentEvent& event : life_.Update(job_.state, Diagnosed(at), At(at), limits_)) {
      if (HasNews(event.kind)) kinds.push_back(event.kind);
    }
    return kinds;
  }
  bool IsConfirmed() const {
    return life_.live() && life_.live()->state == IncidentState::kConfirmed;
  }

  JobBuilder job_{4};
  IncidentLife life_{"train"};
  Limits limits_;
  int64_t held_[3] = {0, 0, 0};
};

// The agent of b is stopped while the job continues; then rank 1, on a, does not enter a call.
TEST_F(FreshnessTest, BlamesTheFreshAbsentRankAndNoRankOfTheStoppedHost) {
  FallStale(kB, 5);
  job_.Finish({0, 1}, 400);
  job_.Enter({0}, At(10));
  const std::vector<Verdict> verdicts = Diagnosed(70);
  ASSERT_EQ(verdicts.size(), 1u);
  EXPECT_EQ(verdicts[0].cause, Cause::kMissingRank);
  EXPECT_EQ(CulpritRanks(verdicts[0].culprits), Ranks{1});
  EXPECT_EQ(verdicts[0].position, 424u);
  EXPECT_EQ(verdicts[0].certainty, Certainty::kLikely);
  EXPECT_TRUE(verdicts[0].stale);
  EXPECT_EQ(verdicts[0].evidence_age_ns, 65 * kSecondNs);
  EXPECT_TRUE(absl::StrContains(verdicts[0].missing_evidence.back(), "from the agent of b"));
}

TEST_F(FreshnessTest, AVerdictOnFreshReportsIsCertain) {
  job_.Finish(400);
  job_.Enter({0, 2, 3}, At(10));
  const std::vector<Verdict> verdicts = Diagnosed(70);
  ASSERT_EQ(verdicts.size(), 1u);
  EXPECT_EQ(CulpritRanks(verdicts[0].culprits), Ranks{1});
  EXPECT_EQ(verdicts[0].certainty, Certainty::kCertain);
  EXPECT_EQ(verdicts[0].evidence_age_ns, 0);
}

// A hang ends: host a has reported it, and host b reports it a moment later.
TEST_F(FreshnessTest, DoesNotBlameRanksWhoseHostReportsTheEndOfAHangLast) {
  Communicator& comm = job_.state.communicators.begin()->second;
  job_.Enter({1, 2, 3}, At(10));
  Look(40);
  ASSERT_EQ(Look(70), Kinds{Kind::kConfirmed});
  job_.Enter({0}, At(80));
  job_.Complete({0, 1});
  comm.finish_seen_ns = At(80);
  const std::vector<Verdict> verdicts = Diagnosed(80.1);
  ASSERT_EQ(verdicts.size(), 1u);
  EXPECT_EQ(verdicts[0].cause, Cause::kStalledInFlight);
  EXPECT_EQ(verdicts[0].certainty, Certainty::kLikely);
  EXPECT_EQ(Look(80.1), Kinds());
  EXPECT_EQ(CulpritRanks(life_.live()->verdicts[0].culprits), Ranks{0});
  job_.Complete({2, 3});
  Look(80.2);
  EXPECT_EQ(Look(81.2), Kinds{Kind::kResolved});
}

TEST_F(FreshnessTest, BlamesTheLeastAdvancedWhenAllHostsHadTimeToReport) {
  job_.Enter({0, 1, 2, 3}, At(10));
  job_.Complete({0, 1});
  job_.state.communicators.begin()->second.finish_seen_ns = At(69);
  Look(40);
  EXPECT_EQ(Look(70.9), Kinds());
  EXPECT_EQ(Look(71), (Kinds{Kind::kUpdated, Kind::kConfirmed}));
  EXPECT_EQ(life_.live()->verdicts[0].certainty, Certainty::kCertain);
  EXPECT_EQ(CulpritRanks(life_.live()->verdicts[0].culprits), (Ranks{2, 3}));
}

TEST_F(FreshnessTest, ConfirmsNothingWhileOnlyStaleRanksAreAbsent) {
  FallStale(kB, 9);
  job_.Finish({0, 1}, 100);
  job_.Enter({0, 1}, At(10));
  EXPECT_EQ(Look(30), Kinds{Kind::kOpened});
  EXPECT_NE(life_.live()->verdicts[0].certainty, Certainty::kCertain);
  EXPECT_EQ(Look(100), Kinds());
  ComeBack(kB);
  EXPECT_EQ(Look(101), (Kinds{Kind::kUpdated, Kind::kConfirmed}));
  EXPECT_EQ(CulpritRanks(life_.live()->verdicts[0].culprits), (Ranks{2, 3}));
  EXPECT_EQ(life_.live()->verdicts[0].certainty, Certainty::kCertain);
}

// With many agents a tick may come every two seconds only.
TEST_F(FreshnessTest, AWaitIsProvenUpToTheOldestReportOnly) {
  job_.Finish(100);
  job_.Enter({0, 2, 3}, At(10));
  Look(30);
  held_[kB] = At(68.5);
  EXPECT_EQ(Look(70), Kinds());
  held_[kB] = At(70.5);
  EXPECT_EQ(Look(71), Kinds{Kind::kConfirmed});
  EXPECT_EQ(life_.live()->verdicts[0].certainty, Certainty::kCertain);
}

TEST_F(FreshnessTest, ASilentHostIsLostAtTheCallThatTheOthersWaitIn) {
  FallStale(kB, 9);
  job_.Finish({0, 1}, 100);
  job_.Enter({0, 1}, At(10));
  Look(30);
  FallSilent(kB);
  EXPECT_EQ(Look(71).back(), Kind::kConfirmed);
  const Verdict& verdict = life_.live()->verdicts[0];
  EXPECT_EQ(verdict.cause, Cause::kHostLost);
  EXPECT_EQ(CulpritRanks(verdict.culprits), (Ranks{2, 3}));
  EXPECT_EQ(verdict.certainty, Certainty::kLikely);
  EXPECT_EQ(verdict.position, 124u);
  EXPECT_FALSE(verdict.missing_evidence.empty());
}

TEST_F(FreshnessTest, BlamesAnAbsentRankAlthoughAnotherHostIsSilent) {
  FallSilent(kB);
  job_.Finish({0, 1}, 400);
  job_.Enter({0}, At(10));
  const std::vector<Verdict> verdicts = Diagnosed(70);
  ASSERT_EQ(verdicts.size(), 1u);
  EXPECT_EQ(CulpritRanks(verdicts[0].culprits), Ranks{1});
  EXPECT_EQ(verdicts[0].certainty, Certainty::kLikely);
}

// The agent's last report was in the middle of a call that has ended long ago.
TEST_F(FreshnessTest, AStoppedAgentIsNotAHang) {
  job_.Enter({2, 3}, At(10));
  FallStale(kB, 10);
  job_.Finish({0, 1}, 400);
  job_.Enter({0, 1}, At(69.9));
  EXPECT_TRUE(Diagnosed(70).empty());
  FallSilent(kB);
  EXPECT_TRUE(Diagnosed(70).empty());
}

TEST_F(FreshnessTest, GivesNoVerdictWithoutFreshReports) {
  job_.Enter({0, 1, 2}, At(10));
  FallStale(kA, 10);
  FallStale(kB, 10);
  EXPECT_TRUE(Diagnosed(70).empty());
}

TEST_F(FreshnessTest, AnIncidentStaysOpenWithoutFreshReports) {
  job_.Enter({0, 1, 2}, At(10));
  Look(30);
  EXPECT_EQ(Look(70), Kinds{Kind::kConfirmed});
  FallStale(kA, 70);
  FallStale(kB, 70);
  EXPECT_EQ(Look(75), Kinds());
  EXPECT_EQ(Look(79), Kinds());
  ComeBack(kA);
  ComeBack(kB);
  EXPECT_EQ(Look(80), Kinds());
  EXPECT_TRUE(IsConfirmed());
}

TEST_F(FreshnessTest, ALateAgentCausesNoEvent) {
  job_.Enter({0, 1, 2}, At(10));
  Look(30);
  EXPECT_EQ(Look(70), Kinds{Kind::kConfirmed});
  FallStale(kB, 70);
  EXPECT_EQ(Look(70.5), Kinds());
  EXPECT_EQ(life_.live()->verdicts[0].certainty, Certainty::kPossible);
  ComeBack(kB);
  EXPECT_EQ(Look(70.6), Kinds());
  EXPECT_EQ(life_.live()->verdicts[0].certainty, Certainty::kCertain);
}

// In a large job one agent or another is always a little late.
TEST_F(FreshnessTest, ConfirmsAWaitThatWasLongEnoughAtTheOldestReport) {
  job_.Enter({0, 2, 3}, At(10));
  Look(30);
  FallStale(kB, 69.9);
  EXPECT_EQ(Look(70.3), Kinds());
  held_[kB] = At(70.1);
  EXPECT_EQ(Look(70.5), Kinds{Kind::kConfirmed});
}

TEST_F(FreshnessTest, WaitsBeginAnewAfterTheDaemonWasStopped) {
  job_.Enter({0, 1, 2}, At(10));
  job_.state.counts_from_ns = At(60);
  Look(30);
  EXPECT_EQ(Look(119), Kinds());
  EXPECT_EQ(Look(120), Kinds{Kind::kConfirmed});
}

TEST_F(FreshnessTest, WaitsBeginAnewAfterTheAgentWasStopped) {
  job_.Enter({2}, At(10));  // ranks 2 and 3 are on the host with the stopped agent
  job_.Enter({0, 1}, At(50));
  job_.state.agents[kB].counts_from_ns = At(60);
  Look(75);
  EXPECT_EQ(Look(119), Kinds());
  EXPECT_EQ(Look(120), Kinds{Kind::kConfirmed});
}

TEST_F(FreshnessTest, ContradictionsDoNotAge) {
  job_.Enter({0, 1, 2}, At(10), AllReduce(100));
  job_.Enter({3}, At(10), AllReduce(200));
  FallStale(kB, 10);
  EXPECT_EQ(Look(11), (Kinds{Kind::kOpened, Kind::kConfirmed}));
  EXPECT_EQ(life_.live()->verdicts[0].certainty, Certainty::kCertain);
  EXPECT_EQ(life_.live()->verdicts[0].evidence_age_ns, 0);
}

TEST_F(FreshnessTest, ASingleMessageConfirmsNothing) {
  job_.Enter({0, 1, 2}, At(10), AllReduce(100));
  job_.Enter({3}, At(10), AllReduce(200));
  job_.state.agents[kB].is_settled = false;
  EXPECT_EQ(Look(11), Kinds{Kind::kOpened});
  EXPECT_EQ(Look(100), Kinds());
  job_.state.agents[kB].is_settled = true;
  EXPECT_EQ(Look(101), Kinds{Kind::kConfirmed});
}

TEST_F(FreshnessTest, AWaitInASingleMessageBlamesNoRank) {
  job_.Enter({3}, At(10));
  job_.state.agents[kB].is_settled = false;
  FallStale(kB, 20);
  for (const Verdict& verdict : Diagnosed(100)) ADD_FAILURE() << verdict.summary;
}

TEST_F(FreshnessTest, AWaitForRanksOfANewAgentIsNotCertain) {
  job_.Enter({0, 1, 2}, At(10));
  job_.state.agents[kB].is_settled = false;
  EXPECT_EQ(Diagnosed(30)[0].certainty, Certainty::kLikely);
  job_.state.agents[kB].is_settled = true;
  EXPECT_EQ(Diagnosed(30)[0].certainty, Certainty::kCertain);
}

// The agent of host b was restarted, and reports a process before it has found its segment: the
// daemon has the calls that the agent before had reported.
TEST_F(FreshnessTest, DoesNotBlameARankWithoutASegmentBesideAnotherAbsentRank) {
  job_.Enter({0, 1}, At(10));
  LoseSegment(2);
  std::vector<Verdict> verdicts = Diagnosed(70);
  ASSERT_EQ(verdicts.size(), 1u);
  EXPECT_EQ(CulpritRanks(verdicts[0].culprits), Ranks{3});
  LoseSegment(3);
  verdicts = Diagnosed(70);
  ASSERT_EQ(verdicts.size(), 1u);
  EXPECT_EQ(CulpritRanks(verdicts[0].culprits), (Ranks{2, 3}));
  EXPECT_EQ(verdicts[0].certainty, Certainty::kPossible);
  ASSERT_FALSE(verdicts[0].missing_evidence.empty());
  EXPECT_EQ(verdicts[0].missing_evidence[0],
            "the newest report on ranks 2-3 is old, and may miss calls made since");
}

TEST_F(FreshnessTest, DoubtsTheWaitOfARankWithoutASegment) {
  job_.Enter({2}, At(10));
  LoseSegment(2);
  const std::vector<Verdict> verdicts = Diagnosed(70);
  ASSERT_EQ(verdicts.size(), 1u);
  EXPECT_NE(verdicts[0].certainty, Certainty::kCertain);
}

// The daemon has asked the agents for seldom ticks: no rank is stale. The job is healthy.
TEST_F(FreshnessTest, DoubtsAWaitThatReportsDoNotShowToBeLong) {
  job_.Enter({0, 1}, At(10));
  held_[kA] = held_[kB] = At(11.8);
  for (const double at : {25.1, 30.0, 60.0}) {
    const std::vector<Verdict> verdicts = Diagnosed(at);
    ASSERT_EQ(verdicts.size(), 1u) << at;
    EXPECT_EQ(CulpritRanks(verdicts[0].culprits), (Ranks{2, 3}));
    EXPECT_EQ(verdicts[0].certainty, Certainty::kLikely) << at;
    EXPECT_EQ(verdicts[0].missing_evidence.back().substr(0, 14), "the oldest rep");
  }
  held_[kA] = held_[kB] = At(15.1);  // five seconds of the wait are shown
  EXPECT_EQ(Diagnosed(25.1)[0].certainty, Certainty::kCertain);
}

TEST_F(FreshnessTest, AnOldReportOnARankThatDiedIsCertain) {
  job_.Enter({0, 1, 2}, At(10));
  job_.Die(3, At(11));
  held_[kA] = held_[kB] = At(11.8);
  EXPECT_EQ(Diagnosed(25)[0].certainty, Certainty::kCertain);
}

// The agent of host b is killed and started again. On a loaded host, it finds rank 3 late.
class NewAgentTest : public FreshnessTest {
 protected:
  static constexpr size_t kNewB = 2;

  void ConfirmLostHost() {
    job_.Enter({0, 1}, At(10));
    FallSilent(kB);
    Look(30);
    ASSERT_EQ(Look(71).back(), Kind::kConfirmed);
    ASSERT_EQ(life_.live()->verdicts[0].cause, Cause::kHostLost);
    ASSERT_EQ(CulpritRanks(life_.live()->verdicts[0].culprits), (Ranks{2, 3}));
  }
  // Rank 2 lives, and waits for rank 3, too.
  void StartAgent(double at) {
    AgentState agent = job_.state.agents[kB];
    agent.id = "b, again";
    agent.stale = agent.silent = false;
    agent.first_ns = At(at);
    job_.state.agents.push_back(agent);
    job_.process(2).agent = kNewB;
    job_.process(2).liveness = Liveness::kAlive;
    job_.Enter({2}, At(10));
  }
};

TEST_F(NewAgentTest, DoesNotCallAHostLostThatReports) {
  ConfirmLostHost();
  StartAgent(80);
  EXPECT_EQ(Look(80.5), Kinds());
  EXPECT_EQ(CulpritRanks(life_.live()->verdicts[0].culprits), (Ranks{2, 3})) << "too early";
  EXPECT_EQ(Look(90), Kinds{Kind::kUpdated});
  const Verdict& verdict = life_.live()->verdicts[0];
  EXPECT_EQ(verdict.cause, Cause::kMissingRank);
  EXPECT_EQ(CulpritRanks(verdict.culprits), Ranks{3});
  EXPECT_EQ(verdict.certainty, Certainty::kPossible);
}

TEST_F(NewAgentTest, SaysThatARankExitedWhileTheAgentWasGone) {
  ConfirmLostHost();
  StartAgent(80);
  EXPECT_EQ(Look(80.5), Kinds());
  job_.process(3).agent = kNewB;
  job_.Exit(3, At(81));
  for (const double at : {81.1, 82.5, 84.0}) EXPECT_EQ(Look(at), Kinds()) << at;
  EXPECT_EQ(Look(87), Kinds{Kind::kUpdated});
  const Verdict& verdict = life_.live()->verdicts[0];
  EXPECT_EQ(verdict.cause, Cause::kRankExited);
  EXPECT_EQ(CulpritRanks(verdict.culprits), Ranks{3});
}

TEST_F(NewAgentTest, DoesNotConfirmWhileTheReportOnTheCulpritMayBeOnItsWay) {
  job_.Enter({0, 1}, At(10));
  FallSilent(kB);
  Look(30);
  StartAgent(69);
  EXPECT_EQ(Look(71), Kinds{Kind::kUpdated});
  EXPECT_EQ(Look(79.1), Kinds{Kind::kConfirmed});
}

TEST_F(FreshnessTest, AnEndedProcessStaysEndedWhileItsAgentIsStopped) {
  job_.Enter({0, 1, 2}, At(10));
  job_.Die(3, At(11));
  FallStale(kB, 12);
  const std::vector<Verdict> verdicts = Diagnosed(70);
  ASSERT_EQ(verdicts.size(), 1u);
  EXPECT_EQ(verdicts[0].cause, Cause::kRankDied);
  EXPECT_EQ(CulpritRanks(verdicts[0].culprits), Ranks{3});
}

}  // namespace
}  // namespace rollcall
