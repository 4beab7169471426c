// SPDX-License-Identifier: Apache-2.0
// Which agents are heard, stale or silent, and which of them may report a process.
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "daemon/jobs/job_store.h"
#include "job_store_ticks.h"
#include "rollcall/v1/agent.pb.h"

namespace rollcall {
namespace {

constexpr int64_t kSecond = 1'000'000'000;
constexpr int64_t kStart = 1'700'000'000 * kSecond;
constexpr int64_t kSilentAfter = 10 * kSecond;

int64_t At(double seconds) { return kStart + static_cast<int64_t>(seconds * 1e9); }

AgentName AgentOn(const std::string& host, const std::string& id) {
  return {host, id, kSecond / 10, false};
}

// An empty tick, made and received at this time.
v1::Tick Nothing(double at) {
  v1::Tick tick;
  tick.set_now_ns(At(at));
  return tick;
}

class HeardTest : public testing::Test {
 protected:
  HeardTest() {
    store_.agents()->Connected(agent_);
    v1::Tick tick = MakeTick(7);
    AddComm(&tick, 5, 1, 4);
    Hear(tick, 0);
  }
  void Hear(v1::Tick tick, double at) {
    tick.set_now_ns(At(at));
    EXPECT_TRUE(store_.Apply(agent_, tick, At(at)));
  }
  // The daemon calls these before each diagnosis.
  JobState Look(double at) {
    store_.agents()->MarkSilent(At(at), kSilentAfter);
    store_.UpdateHeard(kJob, 0);
    return store_.Get(kJob);
  }

  const AgentName agent_ = AgentOn("node", "first");
  JobStore store_{"unnamed"};
};

TEST_F(HeardTest, AnAgentWithoutTicksIsStaleThenSilentThoughItsStreamLives) {
  EXPECT_FALSE(Look(0.3).agents[0].stale);
  EXPECT_TRUE(Look(0.4).agents[0].stale);
  EXPECT_EQ(Look(9.9).processes[0].liveness, Liveness::kAlive);
  const JobState silent = Look(10);
  EXPECT_EQ(silent.processes[0].liveness, Liveness::kSilent);
  EXPECT_EQ(silent.processes[0].silent_since_ns, At(0));
}

TEST_F(HeardTest, EndedProcessesOfASilentAgentHaveEnded) {
  v1::Tick tick = MakeTick(7);
  tick.mutable_processes(0)->mutable_evidence()->set_liveness(v1::Evidence::DIED);
  Hear(tick, 0.1);
  const JobState state = Look(12);
  EXPECT_TRUE(state.agents[0].silent);
  EXPECT_EQ(state.processes[0].liveness, Liveness::kDied);
}

// A daemon to which a whole fleet comes back welcomes some agents at a time.
TEST_F(HeardTest, AnAgentIsNotSilentWhileItAwaitsItsWelcome) {
  store_.agents()->Disconnected(agent_);
  store_.agents()->Connected(agent_);
  const JobState waiting = Look(20);
  EXPECT_EQ(waiting.processes[0].liveness, Liveness::kAlive);
  EXPECT_TRUE(waiting.agents[0].stale);
  store_.agents()->Welcomed(agent_.id, At(20));
  EXPECT_EQ(Look(29.9).processes[0].liveness, Liveness::kAlive);
  EXPECT_EQ(Look(30).processes[0].liveness, Liveness::kSilent);
}

TEST_F(HeardTest, AnAgentThatDisconnectsBeforeItsWelcomeBecomesSilent) {
  store_.agents()->Disconnected(agent_);
  store_.agents()->Connected(agent_);
  store_.agents()->Disconnected(agent_);
  EXPECT_EQ(Look(20).processes[0].liveness, Liveness::kSilent);
}

// The agent continues its stream, and does not send again what has not changed.
TEST_F(HeardTest, ASuspendedAgentIsBackWithItsNextTick) {
  Look(12);
  Hear(Nothing(12.1), 12.1);
  const JobState state = Look(12.2);
  EXPECT_FALSE(state.agents[0].stale);
  EXPECT_EQ(state.processes[0].liveness, Liveness::kAlive);
  EXPECT_EQ(state.agents[0].counts_from_ns, At(12.1));  // waits count from here
}

// A daemon that was stopped reads the first ticks of a stream that ended meanwhile; the rest are
// lost.
TEST_F(HeardTest, AnAgentWithoutAStreamIsStaleAtOnceUntilItTicksAgain) {
  EXPECT_FALSE(Look(0.1).agents[0].stale);
  store_.agents()->Disconnected(agent_);
  EXPECT_TRUE(Look(0.1).agents[0].stale);
  store_.agents()->Connected(agent_);
  EXPECT_TRUE(Look(0.2).agents[0].stale);
  Hear(Nothing(0.3), 0.3);
  EXPECT_FALSE(Look(0.3).agents[0].stale);
}

TEST_F(HeardTest, TicksThatComeInTimeChangeNoVersion) {
  Look(0.1);
  const uint64_t before = store_.Version(kJob);
  for (double at = 0.2; at < 5; at += 0.2) {
    Hear(Nothing(at), at);
    Look(at + 0.1);
  }
  EXPECT_GT(store_.Version(kJob), before);  // once: the third tick settled the agent
  const uint64_t settled = store_.Version(kJob);
  for (double at = 5; at < 10; at += 0.2) {
    Hear(Nothing(at), at);
    Look(at + 0.1);
  }
  EXPECT_EQ(store_.Version(kJob), settled);
}

TEST_F(HeardTest, StateFromFilesNeverBecomesStale) {
  store_.Apply("files", MakeTick(9), 0);
  const JobState state = Look(1000);
  EXPECT_EQ(state.processes[1].agent, -1);
  EXPECT_EQ(state.processes[1].liveness, Liveness::kAlive);
}

TEST_F(HeardTest, ThreeTicksSettleAnAgent) {
  EXPECT_FALSE(Look(0).agents[0].is_settled);
  Hear(Nothing(0), 0);  // a part of the same tick
  Hear(Nothing(0.1), 0.1);
  EXPECT_FALSE(Look(0.1).agents[0].is_settled);
  Hear(Nothing(0.2), 0.2);
  EXPECT_TRUE(Look(0.2).agents[0].is_settled);
}

TEST_F(HeardTest, AnotherAgentOfTheHostCannotReportTheFirstOnesProcesses) {
  const AgentName other = AgentOn("node", "second");
  store_.agents()->Connected(other);
  v1::Tick forged = MakeTick(7);
  forged.mutable_processes(0)->mutable_evidence()->set_liveness(v1::Evidence::DIED);
  store_.Apply(other, forged, At(0.1));
  EXPECT_EQ(store_.Get(kJob).processes[0].liveness, Liveness::kAlive);
  store_.Apply(other, MakeTick(8), At(0.2));  // these processes are its own
  EXPECT_EQ(store_.Get(kJob).processes.size(), 2u);
}

TEST_F(HeardTest, AProcessPassesToAnotherAgentWhenItsOwnDisconnects) {
  const AgentName other = AgentOn("node", "second");
  store_.agents()->Connected(other);
  store_.Apply(other, MakeTick(7), At(0.1));
  // The store ignored its reports, so it must send all again.
  EXPECT_EQ(store_.agents()->Disconnected(agent_), std::vector<std::string>{"second"});
  v1::Tick change = MakeTick(7);
  change.mutable_processes(0)->clear_identity();
  EXPECT_FALSE(store_.Apply(other, change, At(0.2)));
  v1::Tick ended = MakeTick(7);
  ended.mutable_processes(0)->mutable_evidence()->set_liveness(v1::Evidence::EXITED);
  EXPECT_TRUE(store_.Apply(other, ended, At(0.3)));
  EXPECT_EQ(store_.Get(kJob).processes[0].liveness, Liveness::kExited);
  EXPECT_TRUE(store_.Apply(other, change, At(0.4)));
}

TEST_F(HeardTest, AProcessIsFreshHoweverOftenItsAgentIsRestarted) {
  AgentName running = agent_;
  for (int i = 1; i <= 5; ++i) {
    store_.agents()->Disconnected(running);
    Look(i);
    running = AgentOn("node", "run-" + std::to_string(i));
    store_.agents()->Connected(running);
    v1::Tick whole = MakeTick(7);
    // The clock of a new run may be behind that of the last one.
    whole.set_now_ns(At(10 - i));
    EXPECT_TRUE(store_.Apply(running, whole, At(i + 0.1)));
    const JobState state = Look(i + 0.2);
    ASSERT_GE(state.processes[0].agent, 0);
    const AgentState& agent = state.agents[static_cast<size_t>(state.processes[0].agent)];
    EXPECT_EQ(agent.id, running.id);
    EXPECT_FALSE(agent.stale);
    EXPECT_EQ(state.processes[0].liveness, Liveness::kAlive);
    EXPECT_LE(state.agents.size(), 2u);
  }
}

TEST_F(HeardTest, AProcessNeverPassesToAnAgentOfAnotherTenant) {
  AgentName other = AgentOn("node", "second");
  other.tenants = {"team-b"};
  store_.agents()->Connected(other);
  v1::Tick forged = MakeTick(7);
  forged.mutable_processes(0)->mutable_evidence()->set_liveness(v1::Evidence::DIED);
  EXPECT_TRUE(store_.Apply(other, forged, At(0.1)));
  EXPECT_TRUE(store_.agents()->Disconnected(agent_).empty()) << "to send all again is of no use";
  EXPECT_TRUE(store_.Apply(other, forged, At(0.2)));
  forged.mutable_processes(0)->clear_identity();
  EXPECT_TRUE(store_.Apply(other, forged, At(0.3)));
  const JobState state = store_.Get(kJob);
  EXPECT_EQ(state.processes[0].liveness, Liveness::kAlive);
  EXPECT_EQ(state.agents.size(), 1u);
}

// An agent chooses its id itself.
TEST_F(HeardTest, IgnoresAnAgentThatTakesTheIdOfAnotherTenants) {
  AgentName forger = agent_;
  forger.tenants = {"team-b"};
  v1::Tick forged = MakeTick(7);
  forged.set_now_ns(At(0.1));
  forged.mutable_processes(0)->mutable_evidence()->set_liveness(v1::Evidence::DIED);
  store_.Apply(forger, forged, At(0.1));
  EXPECT_EQ(store_.Get(kJob).processes[0].liveness, Liveness::kAlive);
}

TEST_F(HeardTest, AnAgentMayReconnectBeforeItsOldStreamEnds) {
  store_.agents()->Connected(agent_);
  v1::Tick ended = MakeTick(7);
  ended.mutable_processes(0)->mutable_evidence()->set_liveness(v1::Evidence::EXITED);
  Hear(ended, 1);
  EXPECT_TRUE(store_.agents()->Disconnected(agent_).empty());
  EXPECT_EQ(store_.Get(kJob).processes[0].liveness, Liveness::kExited);
}

// The daemon was stopped: ticks of the broken stream wait, and the agent has a new stream.
TEST_F(HeardTest, IgnoresALateTickOfAnOldStream) {
  v1::Tick old = MakeTick(7), whole = MakeTick(7);
  AddComm(&old, 5, 1, 4)->set_entered(3);
  old.set_now_ns(At(5));
  AddComm(&whole, 5, 1, 4)->set_entered(8);
  store_.agents()->Connected(agent_);
  Hear(whole, 11);
  EXPECT_TRUE(store_.Apply(agent_, old, At(11.1)));
  EXPECT_EQ(store_.Get(kJob).communicators.at(5).members.at(1).entered, 8u);
  store_.agents()->Disconnected(agent_);
  EXPECT_TRUE(Look(11.4).agents[0].stale) << "its newest tick is three ticks old";
  Hear(Nothing(11.5), 11.5);
  EXPECT_FALSE(Look(11.5).agents[0].stale);
}

TEST_F(HeardTest, TicksOfTwoStreamsThatArePostedInTheWrongOrderChangeNothing) {
  v1::Tick old = MakeTick(7), whole = MakeTick(7);
  AddComm(&old, 5, 1, 4)->set_entered(3);
  old.set_now_ns(At(5));
  AddComm(&whole, 5, 1, 4)->set_entered(8);
  whole.set_now_ns(At(6));
  const RoutedTick first = store_.places()->Route(agent_, old, At(11));
  const RoutedTick second = store_.places()->Route(agent_, whole, At(11));
  for (const RoutedTick::Part& part : second.parts) part.job->Apply(whole, second, part);
  for (const RoutedTick::Part& part : first.parts) part.job->Apply(old, first, part);
  EXPECT_EQ(store_.Get(kJob).communicators.at(5).members.at(1).entered, 8u);
}

TEST_F(HeardTest, AnotherAgentCannotReplaceARank) {
  const AgentName other = AgentOn("elsewhere", "second");
  store_.agents()->Connected(other);
  v1::Tick forged = MakeTick(99);
  AddComm(&forged, 5, 1, 4)->set_entered(1000);
  store_.Apply(other, forged, At(0.1));
  EXPECT_EQ(OnlyMember(store_.Get(kJob)).entered, 0u);
  EXPECT_EQ(OnlyMember(store_.Get(kJob)).process, 0);
}

}  // namespace
}  // namespace rollcall
