// SPDX-License-Identifier: Apache-2.0
#include "daemon/server/job_store.h"

#include <gtest/gtest.h>

#include <string>
#include <thread>

#include "daemon/server/daemon_counters.h"
#include "interpose/segment.h"
#include "rollcall/v1/agent.pb.h"

namespace rollcall {
namespace {

const JobKey kJob("job");

// A tick with one process that has an identity.
v1::Tick MakeTick(int pid, const std::string& job = "job") {
  v1::Tick tick;
  v1::ProcessUpdate* process = tick.add_processes();
  process->set_pid(pid);
  process->set_start_time(1);
  process->mutable_identity()->set_job(job);
  process->mutable_identity()->set_global_rank(pid);
  process->mutable_evidence()->set_liveness(v1::Evidence::ALIVE);
  return tick;
}

v1::CommUpdate* AddComm(v1::Tick* tick, uint64_t id, int rank, int size) {
  v1::CommUpdate* comm = tick->mutable_processes(0)->add_communicators();
  comm->set_id(id);
  comm->set_rank(rank);
  comm->set_size(size);
  comm->set_state(static_cast<uint32_t>(segment::CommState::kReady));
  return comm;
}

void AddRecords(v1::CommUpdate* comm, uint64_t first, int count, int64_t duration = 5) {
  v1::RecordBatch* batch = comm->mutable_records();
  batch->set_first_index(first);
  for (int i = 0; i < count; ++i) {
    batch->add_position(first + static_cast<uint64_t>(i));
    batch->add_op(1);
    batch->add_dtype(7);
    batch->add_reduction(0);
    batch->add_peer(-1);
    batch->add_count(8);
    batch->add_entered_delta_ns(100);
    batch->add_duration_ns(duration);
    batch->add_stream(0);
    batch->add_caller(0);
    batch->add_thread(1);
    batch->add_group(0);
    batch->add_result(0);
    batch->add_flags(0);
  }
}

const Member& OnlyMember(const JobState& state) {
  return state.communicators.begin()->second.members.begin()->second;
}

TEST(JobStoreTest, KeepsTheFactsOfATick) {
  JobStore store("unnamed");
  v1::Tick tick = MakeTick(7);
  AddRecords(AddComm(&tick, 5, 1, 4), 0, 3);
  store.Apply("node", tick, 0);
  const JobState state = store.Get(kJob);
  ASSERT_EQ(state.processes.size(), 1u);
  EXPECT_EQ(state.processes[0].host, "node");
  EXPECT_EQ(state.processes[0].liveness, Liveness::kAlive);
  EXPECT_EQ(OnlyMember(state).records.size(), 3u);
  EXPECT_EQ(OnlyMember(state).records[2].entered_ns, 300);
}

// Whether the next tick of the job's agent says that the agent is urgent.
bool IsUrgent(const std::string& job, JobStore* store) {
  v1::Tick tick = MakeTick(1);
  tick.mutable_processes(0)->mutable_identity()->set_job(job);
  const AgentName agent = {"node-" + job, "agent-" + job, 1, true};
  const JobStore::Routed routed = store->Route(agent, tick, 1'000);
  for (const JobStore::Part& part : routed.parts) store->Apply(tick, routed, part);
  return routed.origin.is_urgent;
}

TEST(JobStoreTest, TheAgentsOfGivenJobsAreUrgent) {
  JobStore store("unnamed");
  for (const char* job : {"a", "b"}) EXPECT_FALSE(IsUrgent(job, &store));
  store.SetUrgent({JobKey("a")}, 10);
  EXPECT_TRUE(IsUrgent("a", &store));
  EXPECT_FALSE(IsUrgent("b", &store));
}

TEST(JobStoreTest, UrgencyDoesNotWaitForADiagnosis) {
  JobStore store("unnamed");
  store.Apply("node", MakeTick(1), 1);
  // A diagnosis reads the job for as long as this takes.
  store.Read(JobKey("job"), [&store](const JobState&) {
    std::thread clock([&store] { store.SetUrgent({JobKey("job")}, 10); });
    clock.join();
  });
}

TEST(JobStoreTest, TooManyAgentsAreNotUrgent) {
  JobStore store("unnamed");
  EXPECT_FALSE(IsUrgent("a", &store));
  store.SetUrgent({JobKey("a")}, 0);
  EXPECT_FALSE(IsUrgent("a", &store));
}

TEST(JobStoreTest, ResendingChangesNothing) {
  JobStore store("unnamed");
  v1::Tick tick = MakeTick(7);
  AddRecords(AddComm(&tick, 5, 1, 4), 0, 3);
  store.Apply("node", tick, 0);
  store.Apply("node", tick, 0);
  EXPECT_EQ(store.Get(kJob).processes.size(), 1u);
  EXPECT_EQ(OnlyMember(store.Get(kJob)).records.size(), 3u);
}

TEST(JobStoreTest, AnOpenRecordIsReplacedByItsReturn) {
  JobStore store("unnamed");
  v1::Tick open = MakeTick(7), returned = MakeTick(7);
  AddRecords(AddComm(&open, 5, 1, 4), 0, 1, -1);
  AddRecords(AddComm(&returned, 5, 1, 4), 0, 1, 50);
  store.Apply("node", open, 0);
  EXPECT_EQ(OnlyMember(store.Get(kJob)).records[0].returned_ns, 0);
  store.Apply("node", returned, 0);
  EXPECT_EQ(OnlyMember(store.Get(kJob)).records[0].returned_ns, 150);
}

TEST(JobStoreTest, RecordsThatComeOutOfOrderAreKeptInOrder) {
  JobStore store("unnamed");
  v1::Tick late = MakeTick(7), early = MakeTick(7);
  AddRecords(AddComm(&late, 5, 1, 4), 4, 2);
  AddRecords(AddComm(&early, 5, 1, 4), 1, 2);
  store.Apply("node", late, 0);
  store.Apply("node", early, 0);
  std::vector<uint64_t> indices;
  const JobState state = store.Get(kJob);
  for (const CallRecord& record : OnlyMember(state).records) indices.push_back(record.index);
  EXPECT_EQ(indices, (std::vector<uint64_t>{1, 2, 4, 5}));
}

TEST(JobStoreTest, ColumnsOfUnequalLengthAreCutToTheShortest) {
  JobStore store("unnamed");
  v1::Tick tick = MakeTick(7);
  v1::CommUpdate* comm = AddComm(&tick, 5, 1, 4);
  AddRecords(comm, 0, 3);
  comm->mutable_records()->mutable_count()->RemoveLast();
  store.Apply("node", tick, 0);
  EXPECT_EQ(OnlyMember(store.Get(kJob)).records.size(), 2u);
}

TEST(JobStoreTest, AColumnWithOneValueHasItInAllRows) {
  JobStore store("unnamed");
  v1::Tick tick = MakeTick(7);
  v1::CommUpdate* comm = AddComm(&tick, 5, 1, 4);
  AddRecords(comm, 0, 3);
  v1::RecordBatch* batch = comm->mutable_records();
  batch->mutable_count()->Truncate(1);
  batch->mutable_thread()->Truncate(1);
  batch->set_dtype(2, 3);
  store.Apply("node", tick, 0);
  const JobState state = store.Get(kJob);
  const auto& records = OnlyMember(state).records;
  ASSERT_EQ(records.size(), 3u);
  for (const CallRecord& record : records) {
    EXPECT_EQ(record.args.count, 8u);
    EXPECT_EQ(record.thread, 1u);
    EXPECT_EQ(record.args.dtype, record.index == 2 ? 3 : 7);
  }
}

TEST(JobStoreTest, AProcessWithoutIdentityIsNotTakenIn) {
  JobStore store("unnamed");
  v1::Tick tick = MakeTick(7);
  tick.mutable_processes(0)->clear_identity();
  store.Apply("node", tick, 0);
  EXPECT_TRUE(store.Keys().empty());
}

TEST(JobStoreTest, UnnamedProcessesMakeUpTheDefaultJob) {
  JobStore store("unnamed");
  store.Apply("node", MakeTick(7, ""), 0);
  EXPECT_EQ(store.Keys(), std::vector<JobKey>{JobKey("unnamed")});
}

TEST(JobStoreTest, EqualPidsOfTwoHostsAreTwoProcesses) {
  JobStore store("unnamed");
  store.Apply("one", MakeTick(7), 0);
  store.Apply("two", MakeTick(7), 0);
  EXPECT_EQ(store.Get(kJob).processes.size(), 2u);
}

TEST(JobStoreTest, ASplitUnderWayEndsWhenItsLastRankHasGoneToItsChild) {
  JobStore store("unnamed");
  for (int rank : {0, 1}) {
    v1::Tick tick = MakeTick(rank + 1);
    v1::CommUpdate* comm = AddComm(&tick, 11, rank, 2);
    comm->set_split_pending(true);
    comm->set_state(static_cast<uint32_t>(segment::CommState::kInitializing));
    store.Apply("node", tick, 0);
  }
  EXPECT_EQ(store.Get(kJob).communicators.at(11).members.size(), 2u);
  v1::Tick first = MakeTick(1);
  AddComm(&first, 20, 0, 1);
  store.Apply("node", first, 0);
  // Rank 0 has entered and left: it is not absent for rank 1.
  const JobState between = store.Get(kJob);
  EXPECT_EQ(between.communicators.at(11).members.at(0).state, MemberState::kReady);
  v1::Tick second = MakeTick(2);
  AddComm(&second, 21, 0, 1);
  store.Apply("node", second, 0);
  EXPECT_EQ(store.Get(kJob).communicators.count(11), 0u);
  EXPECT_EQ(store.Get(kJob).communicators.size(), 2u);
}

TEST(JobStoreTest, ACommunicatorThatAllHaveEndedIsForgotten) {
  JobStore store("unnamed");
  for (int rank : {0, 1}) {
    v1::Tick tick = MakeTick(rank + 1);
    AddComm(&tick, 5, rank, 2);
    store.Apply("node", tick, 0);
  }
  for (int rank : {0, 1}) {
    EXPECT_EQ(store.Get(kJob).communicators.size(), 1u);
    v1::Tick tick = MakeTick(rank + 1);
    AddComm(&tick, 5, rank, 2)
        ->set_state(static_cast<uint32_t>(segment::CommState::kDestroyed));
    store.Apply("node", tick, 0);
  }
  EXPECT_TRUE(store.Get(kJob).communicators.empty());
}

TEST(JobStoreTest, ForgettingAJobLeavesTheOthers) {
  JobStore store("unnamed");
  store.Apply("node", MakeTick(1, "a"), 0);
  store.Apply("node", MakeTick(2, "b"), 0);
  store.Forget(JobKey("a"));
  EXPECT_EQ(store.Keys(), std::vector<JobKey>{JobKey("b")});
}

TEST(JobStoreTest, AcceptsALateIdentity) {
  JobStore store("unnamed");
  v1::Tick tick = MakeTick(7);
  AddRecords(AddComm(&tick, 5, 1, 4), 0, 3);
  v1::Tick nameless = tick;
  nameless.mutable_processes(0)->clear_identity();
  store.Apply("node", nameless, 0);
  EXPECT_TRUE(store.Keys().empty());
  store.Apply("node", tick, 0);
  store.Apply("node", nameless, 0);  // the process is known by now
  EXPECT_EQ(store.Keys(), std::vector<JobKey>{JobKey("job")});
  EXPECT_EQ(OnlyMember(store.Get(kJob)).records.size(), 3u);
}

TEST(JobStoreTest, AnUpdateWithoutEvidenceLeavesItAsItWas) {
  JobStore store("unnamed");
  store.Apply("node", MakeTick(7), 0);
  v1::Tick tick = MakeTick(7);
  tick.mutable_processes(0)->clear_evidence();
  AddComm(&tick, 5, 1, 4);
  store.Apply("node", tick, 0);
  EXPECT_EQ(store.Get(kJob).processes[0].liveness, Liveness::kAlive);
}

TEST(JobStoreTest, OnlyTheNewestRecordsAreKept) {
  JobStore store("unnamed");
  for (uint64_t first = 0; first < 3000; first += 500) {
    v1::Tick tick = MakeTick(7);
    AddRecords(AddComm(&tick, 5, 1, 4), first, 500);
    store.Apply("node", tick, 0);
  }
  v1::Tick old = MakeTick(7);
  AddRecords(AddComm(&old, 5, 1, 4), 0, 500);
  store.Apply("node", old, 0);
  const JobState state = store.Get(kJob);
  EXPECT_EQ(OnlyMember(state).records.front().index, 3000u - 1024u);
  EXPECT_EQ(OnlyMember(state).records.back().index, 2999u);
}

TEST(JobStoreTest, ARestartedRankBeginsAtZero) {
  JobStore store("unnamed");
  v1::Tick first = MakeTick(7), second = MakeTick(8);
  AddRecords(AddComm(&first, 5, 1, 4), 0, 3);
  AddRecords(AddComm(&second, 5, 1, 4), 0, 1);
  store.Apply("node", first, 0);
  store.Apply("node", second, 0);
  const JobState state = store.Get(kJob);
  EXPECT_EQ(state.processes.size(), 2u);
  EXPECT_EQ(OnlyMember(state).records.size(), 1u);
}

TEST(JobStoreTest, AnEndWithoutCodeAndSignalIsUnknown) {
  JobStore store("unnamed");
  v1::Tick tick = MakeTick(1);
  v1::Evidence* evidence = tick.mutable_processes(0)->mutable_evidence();
  evidence->set_liveness(v1::Evidence::ENDED);
  evidence->set_exit_code(-1);
  store.Apply("one", tick, 0);
  EXPECT_EQ(store.Get(kJob).processes[0].liveness, Liveness::kEnded);
  // Older agents report this for an unknown exit status.
  evidence->set_liveness(v1::Evidence::DIED);
  store.Apply("one", tick, 1);
  EXPECT_EQ(store.Get(kJob).processes[0].liveness, Liveness::kEnded);
  evidence->set_exit_signal(9);
  store.Apply("one", tick, 2);
  EXPECT_EQ(store.Get(kJob).processes[0].liveness, Liveness::kDied);
}

TEST(JobStoreTest, AChangeIsANewVersion) {
  JobStore store("unnamed");
  EXPECT_EQ(store.Version(kJob), 0u);
  store.Apply("node", MakeTick(1), 0);
  const uint64_t before = store.Version(kJob);
  store.Apply("node", MakeTick(2), 0);
  EXPECT_GT(store.Version(kJob), before);
}

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

// A daemon that was stopped reads the first ticks of a stream that ended meanwhile; the rest are lost.
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
TEST_F(HeardTest, AnAgentOfAnotherTenantThatTakesTheIdOfTheFirstReportsNothing) {
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
TEST_F(HeardTest, ATickOfAnOldStreamThatComesAfterANewerTickChangesNothing) {
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
  const JobStore::Routed first = store_.Route(agent_, old, At(11));
  const JobStore::Routed second = store_.Route(agent_, whole, At(11));
  for (const JobStore::Part& part : second.parts) store_.Apply(whole, second, part);
  for (const JobStore::Part& part : first.parts) store_.Apply(old, first, part);
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

uint64_t CountDropped(const DaemonCounters& counters, Dropped what) {
  return counters.Get().dropped[static_cast<size_t>(what)];
}

TEST(JobStoreLimitsTest, IgnoresAndCountsJobsBeyondTheLimit) {
  DaemonCounters counters;
  JobStoreLimits most;
  most.jobs = 3;
  JobStore store("unnamed", most, &counters);
  for (int i = 0; i < 5; ++i) store.Apply("node", MakeTick(i, "job-" + std::to_string(i)), 1);
  EXPECT_EQ(store.CountJobs(), 3u);
  EXPECT_EQ(CountDropped(counters, Dropped::kJobs), 2u);
  store.Forget(JobKey("job-1"));
  store.Apply("node", MakeTick(9, "job-9"), 2);
  EXPECT_EQ(store.CountJobs(), 3u);
  EXPECT_TRUE(store.Find("", "job-9", std::nullopt).has_value());
  EXPECT_FALSE(store.Find("", "job-1", std::nullopt).has_value());
}

TEST(JobStoreLimitsTest, AJobThatIsKnownBeginsAgainBeyondTheLimit) {
  DaemonCounters counters;
  JobStoreLimits most;
  most.jobs = 2;
  JobStore store("unnamed", most, &counters);
  store.Apply("node", MakeTick(1, "other"), 1);
  for (int attempt = 0; attempt < 5; ++attempt) {
    v1::Tick tick = MakeTick(100 + attempt);
    tick.mutable_processes(0)->mutable_identity()->set_attempt(attempt);
    tick.mutable_processes(0)->mutable_identity()->set_restarts("TORCHELASTIC_RESTART_COUNT=" +
                                                                std::to_string(attempt));
    store.Apply("node", tick, 2 + attempt);
  }
  EXPECT_EQ(store.Find("", "job", std::nullopt)->attempt, 4);
  EXPECT_EQ(store.AllKeys("job").size(), 2u);
  EXPECT_EQ(CountDropped(counters, Dropped::kAttempts), 3u);
}

TEST(JobStoreLimitsTest, IgnoresAndCountsProcessesBeyondTheLimit) {
  DaemonCounters counters;
  JobStoreLimits most;
  most.processes = 3;
  JobStore store("unnamed", most, &counters);
  for (int pid = 0; pid < 5; ++pid) store.Apply("node", MakeTick(pid), 1);
  EXPECT_EQ(store.Get(kJob).processes.size(), 3u);
  EXPECT_EQ(CountDropped(counters, Dropped::kProcesses), 2u);
  store.Forget(kJob);
  store.Apply("node", MakeTick(9, "later"), 2);
  EXPECT_EQ(store.Get(JobKey("later")).processes.size(), 1u);
}

TEST(JobStoreLimitsTest, CutsLongNamesAndCountsWhatAJobDropped) {
  DaemonCounters counters;
  JobStore store("unnamed", {}, &counters);
  v1::Tick tick = MakeTick(1, std::string(1000, 'j'));
  tick.mutable_processes(0)->mutable_evidence()->set_error(std::string(100'000, 'e'));
  v1::Identity* identity = tick.mutable_processes(0)->mutable_identity();
  identity->set_launch(std::string(100'000, 'l'));
  identity->set_restarts(std::string(100'000, 'r'));
  identity->set_pod(std::string(100'000, 'p'));
  store.Apply("node", tick, 1);
  const JobKey key(std::string(limits::kName, 'j'));
  EXPECT_EQ(store.Get(key).processes.at(0).error.size(), limits::kError);
  EXPECT_EQ(store.Get(key).processes.at(0).pod.size(), limits::kCommand);
  EXPECT_EQ(CountDropped(counters, Dropped::kTexts), 5u);
}

// As many rows as a ring holds, as an agent sends them that has just read a segment.
TEST(JobStoreLimitsTest, KeepsAWholeRing) {
  DaemonCounters counters;
  JobStore store("unnamed", {}, &counters);
  v1::Tick tick = MakeTick(7);
  AddRecords(AddComm(&tick, 5, 1, 4), 40, segment::kRingCapacity);
  store.Apply("node", tick, 0);
  const JobState state = store.Get(kJob);
  ASSERT_EQ(OnlyMember(state).records.size(), segment::kRingCapacity);
  EXPECT_EQ(OnlyMember(state).records.front().index, 40u);
  EXPECT_EQ(CountDropped(counters, Dropped::kRecords), 0u);
}

TEST(JobStoreLimitsTest, KeepsTheNewestRowsThatARingHoldsAndCountsTheOthers) {
  DaemonCounters counters;
  JobStore store("unnamed", {}, &counters);
  v1::Tick tick = MakeTick(7);
  AddRecords(AddComm(&tick, 5, 1, 4), 40, segment::kRingCapacity + 100);
  store.Apply("node", tick, 0);
  const JobState state = store.Get(kJob);
  const auto& records = OnlyMember(state).records;
  ASSERT_EQ(records.size(), segment::kRingCapacity);
  EXPECT_EQ(records.front().index, 140u);
  EXPECT_EQ(records.front().position, 140u);
  EXPECT_EQ(records.front().entered_ns, 101 * 100);  // the times of the rows before count
  EXPECT_EQ(CountDropped(counters, Dropped::kRecords), 100u);
}

TEST(JobStoreLimitsTest, KeepsTheNewestCheckpointsAndLaunchesAndCountsTheOthers) {
  DaemonCounters counters;
  JobStore store("unnamed", {}, &counters);
  v1::Tick tick = MakeTick(7);
  v1::CommUpdate* comm = AddComm(&tick, 5, 1, 4);
  AddRecords(comm, 0, 64);  // a member without records keeps no checkpoints
  for (uint64_t i = 1; i <= segment::kCheckpointCapacity + 7; ++i) {
    comm->add_checkpoint_positions(i);
    comm->add_checkpoint_signatures(i);
  }
  for (uint32_t i = 0; i < limits::kGraphLaunches + 3; ++i) {
    comm->add_graph_launches()->set_graph(i + 1);
  }
  for (uint64_t i = 1; i <= limits::kGrownIdsOfUpdate + 2; ++i) {
    v1::GrownId* grown = comm->add_grown();
    grown->set_unique_id(1000 + i);
    grown->set_id(2000 + i);
  }
  store.Apply("node", tick, 0);
  const JobState state = store.Get(kJob);
  const Member& member = OnlyMember(state);
  ASSERT_EQ(member.checkpoints.size(), segment::kCheckpointCapacity);
  EXPECT_EQ(member.checkpoints.front().position, 8u);
  ASSERT_EQ(member.graph_launches.size(), limits::kGraphLaunches);
  EXPECT_EQ(member.graph_launches.begin()->graph, 4u);
  EXPECT_EQ(CountDropped(counters, Dropped::kRecords), 7u);
  EXPECT_EQ(CountDropped(counters, Dropped::kGraphLaunches), 3u);
  EXPECT_EQ(CountDropped(counters, Dropped::kIds), 2u);
}

// A job that has another shape in each call, beside a job with one.
TEST(JobStoreLimitsTest, AJobWithTooManyShapesLeavesRoomForOthers) {
  constexpr int kMore = 5;
  DaemonCounters counters;
  JobStore store("unnamed", {}, &counters);
  constexpr int kRows = 512;
  const int shapes = static_cast<int>(limits::kShapesOfJob) + kMore;
  for (int first = 0; first < shapes; first += kRows) {
    v1::Tick tick = MakeTick(7);
    v1::CommUpdate* comm = AddComm(&tick, 5, 0, 1);
    const int rows = std::min(kRows, shapes - first);
    AddRecords(comm, static_cast<uint64_t>(first), rows);
    for (int i = first; i < first + rows; ++i) {
      comm->mutable_records()->add_shape("[3, 7, " + std::to_string(i) + "]");
    }
    store.Apply("node", tick, 1 + first);
  }
  EXPECT_EQ(CountDropped(counters, Dropped::kShapes), static_cast<uint64_t>(kMore));
  v1::Tick tick = MakeTick(8, "other");
  v1::CommUpdate* comm = AddComm(&tick, 6, 0, 1);
  AddRecords(comm, 0, 2);
  comm->mutable_records()->add_shape("[3, 7, other]");
  comm->mutable_records()->add_shape(std::string(limits::kShape + 1, '1'));
  store.Apply("node", tick, 1 + shapes);
  const JobState state = store.Get(JobKey("other"));
  ASSERT_NE(OnlyMember(state).records.front().args.shape, nullptr);
  EXPECT_EQ(*OnlyMember(state).records.front().args.shape, "[3, 7, other]");
  EXPECT_EQ(CountDropped(counters, Dropped::kShapes), uint64_t{kMore} + 1) << "one is too long";
}

TEST(JobStoreLimitsTest, CountsTheCallSitesOfAMessageBeyondTheLimit) {
  DaemonCounters counters;
  JobStore store("unnamed", {}, &counters);
  v1::Tick tick = MakeTick(7);
  for (size_t i = 0; i < limits::kSites + 6; ++i) tick.mutable_processes(0)->add_sites("a.py:1");
  store.Apply("node", tick, 1);
  EXPECT_EQ(store.Get(kJob).processes.at(0).sites.size(), limits::kSites);
  EXPECT_EQ(CountDropped(counters, Dropped::kSites), 6u);
}

TEST(JobStoreLimitsTest, CountsEachBlockedCallBeyondTheLimit) {
  DaemonCounters counters;
  JobStore store("unnamed", {}, &counters);
  v1::Tick tick = MakeTick(7);
  v1::Evidence* evidence = tick.mutable_processes(0)->mutable_evidence();
  for (uint32_t i = 0; i < limits::kBlockedCalls + 5; ++i) evidence->add_blocked()->set_thread(i);
  store.Apply("node", tick, 0);
  EXPECT_EQ(store.Get(kJob).processes.at(0).blocked.size(), limits::kBlockedCalls);
  EXPECT_EQ(CountDropped(counters, Dropped::kBlockedCalls), 5u);
}

TEST(JobStoreLimitsTest, TheCounterOfChangesRisesOnlyWithAChange) {
  JobStore store("unnamed");
  const uint64_t empty = store.Changes();
  store.Apply("node", MakeTick(1), 1);
  const uint64_t one = store.Changes();
  EXPECT_GT(one, empty);
  EXPECT_EQ(store.Version(kJob), store.Version(kJob));
  store.UpdateHeard(kJob, 0);
  EXPECT_EQ(store.Changes(), one);
  store.Apply("node", MakeTick(2, "other"), 1);
  EXPECT_GT(store.Changes(), one);
  const uint64_t two = store.Changes();
  store.Forget(kJob);
  EXPECT_GT(store.Changes(), two);
}

TEST(JobStoreLimitsTest, ListsAPartOfTheJobs) {
  JobStore store("unnamed");
  for (int i = 0; i < 9; ++i) store.Apply("node", MakeTick(i, "job-" + std::to_string(i)), 1);
  const std::vector<JobKey> keys = store.NewestKeys(3);
  ASSERT_EQ(keys.size(), 3u);
  EXPECT_EQ(keys[0].job, "job-0");
  EXPECT_EQ(store.NewestKeys().size(), 9u);
}

// The ranks 0 to 3 of one start, with pids from `first_pid` on.
v1::Tick MakeStart(int first_pid) {
  v1::Tick tick;
  for (int rank = 0; rank < 4; ++rank) {
    v1::Tick one = MakeTick(first_pid + rank);
    v1::ProcessUpdate* process = tick.add_processes();
    process->Swap(one.mutable_processes(0));
    process->mutable_identity()->set_global_rank(rank);
    process->mutable_identity()->set_has_segment(true);
  }
  return tick;
}

// The ranks of a start at a common address, that began in this second.
v1::Tick MakeStartAtOneAddress(int first_pid, int64_t started_s) {
  v1::Tick tick = MakeStart(first_pid);
  for (v1::ProcessUpdate& process : *tick.mutable_processes()) {
    process.mutable_identity()->set_launch("1000 127.0.0.1:29500@node");
    process.mutable_identity()->set_started_ns(started_s * 1'000'000'000);
  }
  return tick;
}

void End(int64_t after_s, int64_t by_s, v1::Tick* tick) {
  for (v1::ProcessUpdate& process : *tick->mutable_processes()) {
    process.mutable_evidence()->set_liveness(v1::Evidence::DIED);
    process.mutable_evidence()->set_ended_after_ns(after_s * 1'000'000'000);
    process.mutable_evidence()->set_ended_ns(by_s * 1'000'000'000);
  }
}

// Pids wrap around, so the new processes may come first in a tick.
TEST(JobStoreTest, EndsAndStartsOfOneTickAreTwoAttempts) {
  for (const bool is_known : {true, false}) {
    JobStore store("unnamed");
    v1::Tick first = MakeStartAtOneAddress(500, 10);
    if (is_known) store.Apply("node", first, 0);
    End(50, 52, &first);
    v1::Tick tick = MakeStartAtOneAddress(100, 51);
    tick.MergeFrom(first);
    store.Apply("node", tick, 0);
    ASSERT_EQ(store.Keys(), std::vector<JobKey>({JobKey("job", 0), JobKey("job", 1)}));
    EXPECT_EQ(store.Get(JobKey("job", 0)).processes.front().pid, 500);
    EXPECT_EQ(store.Get(JobKey("job", 1)).processes.size(), 4u);
    EXPECT_FALSE(store.AttemptsFor(kJob).front().has_twin);
  }
}

TEST(JobStoreTest, ARestartedStoreContinuesTheAttempts) {
  JobStore before("unnamed");
  before.Apply("node", MakeStart(100), 0);
  before.Apply("node", MakeStart(200), 0);
  const AttemptChanges changes = before.TakeAttemptChanges({});
  ASSERT_EQ(changes.changed.size(), 2u);
  EXPECT_EQ(changes.changed.at(JobKey("job", 1)).members.size(), 4u);
  EXPECT_TRUE(before.TakeAttemptChanges({}).changed.empty()) << "nothing has changed since";
  EXPECT_EQ(before.TakeAttemptChanges({true, {}}).changed.size(), 2u);

  JobStore after("unnamed");
  after.RestoreAttempts(changes.changed);
  EXPECT_EQ(after.CountJobs(), 0u) << "its processes have not returned";
  after.Apply("node", MakeStart(200), 0);
  EXPECT_EQ(after.Keys(), std::vector<JobKey>({JobKey("job", 1)}));
  EXPECT_TRUE(after.TakeAttemptChanges({}).changed.empty()) << "they are recorded";
  after.Apply("node", MakeStart(300), 0);
  EXPECT_EQ(after.Keys(), std::vector<JobKey>({JobKey("job", 1), JobKey("job", 2)}));
}

TEST(JobStoreTest, TheHistoryGetsAnAdoptedJobAnewAndNoOtherOne) {
  JobStore store("unnamed");
  store.Apply("node", MakeStart(100), 0);
  v1::Tick other = MakeStart(200);
  for (v1::ProcessUpdate& process : *other.mutable_processes()) {
    process.mutable_identity()->set_job("other");
  }
  store.Apply("elsewhere", other, 0);
  ASSERT_EQ(store.TakeAttemptChanges({}).changed.size(), 2u);
  const AttemptChanges changes = store.TakeAttemptChanges({false, {JobKey("other", 0), JobKey("gone", 0)}});
  ASSERT_EQ(changes.changed.size(), 1u);
  EXPECT_EQ(changes.changed.at(JobKey("other", 0)).members.size(), 4u);
}

TEST(JobStoreTest, AForgottenAttemptIsForgottenInTheHistory) {
  JobStore store("unnamed");
  store.Apply("node", MakeStart(100), 0);
  store.Forget(kJob);
  const AttemptChanges changes = store.TakeAttemptChanges({});
  EXPECT_TRUE(changes.changed.empty());
  EXPECT_EQ(changes.forgotten.count(kJob), 1u);
}

TEST(JobStoreTest, AttemptsThatAreRestoredLateLeaveAJobThatHasCome) {
  JobStore before("unnamed");
  before.Apply("node", MakeStart(100), 0);
  before.Apply("node", MakeStart(200), 0);
  JobStore late("unnamed");
  late.Apply("node", MakeStart(200), 0);
  late.RestoreAttempts(before.TakeAttemptChanges({}).changed);
  late.Apply("node", MakeStart(200), 0);
  EXPECT_EQ(late.Keys(), std::vector<JobKey>({JobKey("job", 0)}));
}

AgentName AgentWithTenants(std::vector<std::string> tenants) {
  AgentName agent = {"node", "node", 0, true};
  agent.tenants = std::move(tenants);
  return agent;
}

v1::Tick TickOfTenant(const std::string& tenant) {
  v1::Tick tick = MakeTick(1);
  tick.mutable_processes(0)->mutable_identity()->set_tenant(tenant);
  return tick;
}

TEST(JobStoreTest, AJobBelongsToTheTenantThatItsProcessesName) {
  JobStore store("default");
  store.Apply("node", TickOfTenant("team-a"), 1000);
  store.Apply("other", MakeTick(2), 1000);
  ASSERT_TRUE(store.Find("team-a", "job", std::nullopt).has_value());
  EXPECT_EQ(store.Find("", "job", std::nullopt)->tenant, "default");
  EXPECT_EQ(store.CountJobs(), 2);
}

TEST(JobStoreTest, AnAgentOfOneTenantWritesItsJobsWithoutAClaim) {
  JobStore store("default");
  store.Apply(AgentWithTenants({"team-a"}), MakeTick(1), 1000);
  EXPECT_TRUE(store.Find("team-a", "job", std::nullopt).has_value());
  EXPECT_FALSE(store.Find("default", "job", std::nullopt).has_value());
}

TEST(JobStoreTest, DropsAndCountsProcessesOfTenantsThatTheAgentMayNotWrite) {
  DaemonCounters counters;
  JobStore store("default", {}, &counters);
  const AgentName agent = AgentWithTenants({"team-a"});
  v1::Tick more = TickOfTenant("team-b");
  more.mutable_processes(0)->clear_identity();
  EXPECT_TRUE(store.Apply(agent, TickOfTenant("team-b"), 1000));
  EXPECT_TRUE(store.Apply(agent, more, 2000)) << "it would send the same again";
  EXPECT_EQ(store.CountJobs(), 0);
  EXPECT_EQ(counters.Get().dropped[static_cast<size_t>(Dropped::kTenants)], 1);
}

}  // namespace
}  // namespace rollcall
