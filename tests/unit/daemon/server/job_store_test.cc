// SPDX-License-Identifier: Apache-2.0
#include "daemon/server/job_store.h"

#include <gtest/gtest.h>

#include "interpose/segment.h"
#include "rollcall/v1/agent.pb.h"

namespace rollcall {
namespace {

// A tick with one process that has an identity.
v1::Tick TickOf(int pid, const std::string& job = "job") {
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

TEST(JobStoreTest, KeepsWhatATickSays) {
  JobStore store("unnamed");
  v1::Tick tick = TickOf(7);
  AddRecords(AddComm(&tick, 5, 1, 4), 0, 3);
  store.Apply("node", tick, 0);
  const JobState state = store.Get("job");
  ASSERT_EQ(state.processes.size(), 1u);
  EXPECT_EQ(state.processes[0].host, "node");
  EXPECT_EQ(state.processes[0].liveness, Liveness::kAlive);
  EXPECT_EQ(OnlyMember(state).records.size(), 3u);
  EXPECT_EQ(OnlyMember(state).records[2].entered_ns, 300);
}

TEST(JobStoreTest, ResendingChangesNothing) {
  JobStore store("unnamed");
  v1::Tick tick = TickOf(7);
  AddRecords(AddComm(&tick, 5, 1, 4), 0, 3);
  store.Apply("node", tick, 0);
  store.Apply("node", tick, 0);
  EXPECT_EQ(store.Get("job").processes.size(), 1u);
  EXPECT_EQ(OnlyMember(store.Get("job")).records.size(), 3u);
}

TEST(JobStoreTest, AnOpenRecordIsReplacedByItsReturn) {
  JobStore store("unnamed");
  v1::Tick open = TickOf(7), returned = TickOf(7);
  AddRecords(AddComm(&open, 5, 1, 4), 0, 1, -1);
  AddRecords(AddComm(&returned, 5, 1, 4), 0, 1, 50);
  store.Apply("node", open, 0);
  EXPECT_EQ(OnlyMember(store.Get("job")).records[0].returned_ns, 0);
  store.Apply("node", returned, 0);
  EXPECT_EQ(OnlyMember(store.Get("job")).records[0].returned_ns, 150);
}

TEST(JobStoreTest, RecordsThatComeOutOfOrderAreKeptInOrder) {
  JobStore store("unnamed");
  v1::Tick late = TickOf(7), early = TickOf(7);
  AddRecords(AddComm(&late, 5, 1, 4), 4, 2);
  AddRecords(AddComm(&early, 5, 1, 4), 1, 2);
  store.Apply("node", late, 0);
  store.Apply("node", early, 0);
  std::vector<uint64_t> indices;
  const JobState state = store.Get("job");
  for (const CallRecord& record : OnlyMember(state).records) indices.push_back(record.index);
  EXPECT_EQ(indices, (std::vector<uint64_t>{1, 2, 4, 5}));
}

TEST(JobStoreTest, ColumnsOfUnequalLengthAreCutToTheShortest) {
  JobStore store("unnamed");
  v1::Tick tick = TickOf(7);
  v1::CommUpdate* comm = AddComm(&tick, 5, 1, 4);
  AddRecords(comm, 0, 3);
  comm->mutable_records()->mutable_count()->RemoveLast();
  store.Apply("node", tick, 0);
  EXPECT_EQ(OnlyMember(store.Get("job")).records.size(), 2u);
}

TEST(JobStoreTest, AProcessWithoutIdentityIsNotTakenIn) {
  JobStore store("unnamed");
  v1::Tick tick = TickOf(7);
  tick.mutable_processes(0)->clear_identity();
  store.Apply("node", tick, 0);
  EXPECT_TRUE(store.JobNames().empty());
}

TEST(JobStoreTest, UnnamedProcessesMakeUpTheDefaultJob) {
  JobStore store("unnamed");
  store.Apply("node", TickOf(7, ""), 0);
  EXPECT_EQ(store.JobNames(), std::vector<std::string>{"unnamed"});
}

TEST(JobStoreTest, EqualPidsOfTwoHostsAreTwoProcesses) {
  JobStore store("unnamed");
  store.Apply("one", TickOf(7), 0);
  store.Apply("two", TickOf(7), 0);
  EXPECT_EQ(store.Get("job").processes.size(), 2u);
}

TEST(JobStoreTest, OfASilentHostNothingIsKnownUntilItSpeaksAgain) {
  JobStore store("unnamed");
  store.Apply("one", TickOf(1), 0);
  store.Apply("two", TickOf(2), 0);
  store.SetSilent("one", 5);
  EXPECT_EQ(store.Get("job").processes[0].liveness, Liveness::kSilent);
  EXPECT_EQ(store.Get("job").processes[1].liveness, Liveness::kAlive);
  store.Apply("one", TickOf(1), 0);
  EXPECT_EQ(store.Get("job").processes[0].liveness, Liveness::kAlive);
}

TEST(JobStoreTest, ASplitUnderWayEndsWhenItsLastRankHasGoneToItsChild) {
  JobStore store("unnamed");
  for (int rank : {0, 1}) {
    v1::Tick tick = TickOf(rank + 1);
    v1::CommUpdate* comm = AddComm(&tick, 11, rank, 2);
    comm->set_split_pending(true);
    comm->set_state(static_cast<uint32_t>(segment::CommState::kInitializing));
    store.Apply("node", tick, 0);
  }
  EXPECT_EQ(store.Get("job").communicators.at(11).members.size(), 2u);
  v1::Tick first = TickOf(1);
  AddComm(&first, 20, 0, 1);
  store.Apply("node", first, 0);
  // Rank 0 has come and gone: rank 1 must not be told that it is absent.
  const JobState between = store.Get("job");
  EXPECT_EQ(between.communicators.at(11).members.at(0).state, MemberState::kReady);
  v1::Tick second = TickOf(2);
  AddComm(&second, 21, 0, 1);
  store.Apply("node", second, 0);
  EXPECT_EQ(store.Get("job").communicators.count(11), 0u);
  EXPECT_EQ(store.Get("job").communicators.size(), 2u);
}

TEST(JobStoreTest, ACommunicatorThatAllHaveEndedIsForgotten) {
  JobStore store("unnamed");
  for (int rank : {0, 1}) {
    v1::Tick tick = TickOf(rank + 1);
    AddComm(&tick, 5, rank, 2);
    store.Apply("node", tick, 0);
  }
  for (int rank : {0, 1}) {
    EXPECT_EQ(store.Get("job").communicators.size(), 1u);
    v1::Tick tick = TickOf(rank + 1);
    AddComm(&tick, 5, rank, 2)
        ->set_state(static_cast<uint32_t>(segment::CommState::kDestroyed));
    store.Apply("node", tick, 0);
  }
  EXPECT_TRUE(store.Get("job").communicators.empty());
}

TEST(JobStoreTest, ForgettingAJobLeavesTheOthers) {
  JobStore store("unnamed");
  store.Apply("node", TickOf(1, "a"), 0);
  store.Apply("node", TickOf(2, "b"), 0);
  store.Forget("a");
  EXPECT_EQ(store.JobNames(), std::vector<std::string>{"b"});
}

TEST(JobStoreTest, AnIdentityThatComesLateIsEarlyEnough) {
  JobStore store("unnamed");
  v1::Tick tick = TickOf(7);
  AddRecords(AddComm(&tick, 5, 1, 4), 0, 3);
  v1::Tick nameless = tick;
  nameless.mutable_processes(0)->clear_identity();
  store.Apply("node", nameless, 0);
  EXPECT_TRUE(store.JobNames().empty());
  store.Apply("node", tick, 0);
  store.Apply("node", nameless, 0);  // known by now
  EXPECT_EQ(store.JobNames(), std::vector<std::string>{"job"});
  EXPECT_EQ(OnlyMember(store.Get("job")).records.size(), 3u);
}

TEST(JobStoreTest, AnUpdateWithoutEvidenceLeavesItAsItWas) {
  JobStore store("unnamed");
  store.Apply("node", TickOf(7), 0);
  v1::Tick tick = TickOf(7);
  tick.mutable_processes(0)->clear_evidence();
  AddComm(&tick, 5, 1, 4);
  store.Apply("node", tick, 0);
  EXPECT_EQ(store.Get("job").processes[0].liveness, Liveness::kAlive);
}

TEST(JobStoreTest, OnlyTheNewestRecordsAreKept) {
  JobStore store("unnamed");
  for (uint64_t first = 0; first < 3000; first += 500) {
    v1::Tick tick = TickOf(7);
    AddRecords(AddComm(&tick, 5, 1, 4), first, 500);
    store.Apply("node", tick, 0);
  }
  v1::Tick old = TickOf(7);
  AddRecords(AddComm(&old, 5, 1, 4), 0, 500);
  store.Apply("node", old, 0);
  const JobState state = store.Get("job");
  EXPECT_EQ(OnlyMember(state).records.front().index, 3000u - 1024u);
  EXPECT_EQ(OnlyMember(state).records.back().index, 2999u);
}

TEST(JobStoreTest, ARankThatWasStartedAnewBeginsAfresh) {
  JobStore store("unnamed");
  v1::Tick first = TickOf(7), second = TickOf(8);
  AddRecords(AddComm(&first, 5, 1, 4), 0, 3);
  AddRecords(AddComm(&second, 5, 1, 4), 0, 1);
  store.Apply("node", first, 0);
  store.Apply("node", second, 0);
  const JobState state = store.Get("job");
  EXPECT_EQ(state.processes.size(), 2u);
  EXPECT_EQ(OnlyMember(state).records.size(), 1u);
}

TEST(JobStoreTest, EndedProcessesOfASilentHostHaveEnded) {
  JobStore store("unnamed");
  v1::Tick tick = TickOf(1);
  tick.mutable_processes(0)->mutable_evidence()->set_liveness(v1::Evidence::DIED);
  store.Apply("one", tick, 0);
  store.SetSilent("one", 5);
  EXPECT_EQ(store.Get("job").processes[0].liveness, Liveness::kDied);
}

TEST(JobStoreTest, HowAProcessEndedIsNotKnownWhereNeitherCodeNorSignalIs) {
  JobStore store("unnamed");
  v1::Tick tick = TickOf(1);
  v1::Evidence* evidence = tick.mutable_processes(0)->mutable_evidence();
  evidence->set_liveness(v1::Evidence::ENDED);
  evidence->set_exit_code(-1);
  store.Apply("one", tick, 0);
  EXPECT_EQ(store.Get("job").processes[0].liveness, Liveness::kEnded);
  evidence->set_liveness(v1::Evidence::DIED);  // as agents say that know no better word
  store.Apply("one", tick, 1);
  EXPECT_EQ(store.Get("job").processes[0].liveness, Liveness::kEnded);
  evidence->set_exit_signal(9);
  store.Apply("one", tick, 2);
  EXPECT_EQ(store.Get("job").processes[0].liveness, Liveness::kDied);
}

TEST(JobStoreTest, AChangeIsANewVersion) {
  JobStore store("unnamed");
  EXPECT_EQ(store.Version("job"), 0u);
  store.Apply("node", TickOf(1), 0);
  const uint64_t before = store.Version("job");
  store.Apply("node", TickOf(2), 0);
  EXPECT_GT(store.Version("job"), before);
}

constexpr int64_t kSecond = 1'000'000'000;
constexpr int64_t kStart = 1'700'000'000 * kSecond;
constexpr int64_t kSilentAfter = 10 * kSecond;

int64_t At(double seconds) { return kStart + static_cast<int64_t>(seconds * 1e9); }

AgentName AgentOn(const std::string& host, const std::string& id) {
  return {host, id, kSecond / 10, false};
}

// A tick that says nothing, made and heard then.
v1::Tick Nothing(double at) {
  v1::Tick tick;
  tick.set_now_ns(At(at));
  return tick;
}

class HeardTest : public testing::Test {
 protected:
  HeardTest() {
    store_.Connected(agent_);
    v1::Tick tick = TickOf(7);
    AddComm(&tick, 5, 1, 4);
    Hear(tick, 0);
  }
  void Hear(v1::Tick tick, double at) {
    tick.set_now_ns(At(at));
    EXPECT_TRUE(store_.Apply(agent_, tick, At(at)));
  }
  // What the daemon does each time before it looks at the job.
  JobState Look(double at) {
    store_.MarkSilentAgents(At(at), kSilentAfter);
    store_.UpdateHeard("job", 0);
    return store_.Get("job");
  }

  const AgentName agent_ = AgentOn("node", "first");
  JobStore store_{"unnamed"};
};

TEST_F(HeardTest, AnAgentWhoseTicksAreMissingIsStaleThenSilentThoughItsStreamLives) {
  EXPECT_FALSE(Look(0.3).agents[0].stale);
  EXPECT_TRUE(Look(0.4).agents[0].stale);
  EXPECT_EQ(Look(9.9).processes[0].liveness, Liveness::kAlive);
  const JobState silent = Look(10);
  EXPECT_EQ(silent.processes[0].liveness, Liveness::kSilent);
  EXPECT_EQ(silent.processes[0].silent_since_ns, At(0));
}

// It goes on where it was: what has not changed is not told again.
TEST_F(HeardTest, AnAgentThatWasHeldIsBelievedAgainWhenItTicks) {
  Look(12);
  Hear(Nothing(12.1), 12.1);
  const JobState state = Look(12.2);
  EXPECT_FALSE(state.agents[0].stale);
  EXPECT_EQ(state.processes[0].liveness, Liveness::kAlive);
  EXPECT_EQ(state.agents[0].counts_from_ns, At(12.1));  // waits begin anew
}

TEST_F(HeardTest, TicksThatComeInTimeChangeNoVersion) {
  Look(0.1);
  const uint64_t before = store_.Version("job");
  for (double at = 0.2; at < 5; at += 0.2) {
    Hear(Nothing(at), at);
    Look(at + 0.1);
  }
  EXPECT_GT(store_.Version("job"), before);  // once: its third tick made it believed
  const uint64_t settled = store_.Version("job");
  for (double at = 5; at < 10; at += 0.2) {
    Hear(Nothing(at), at);
    Look(at + 0.1);
  }
  EXPECT_EQ(store_.Version("job"), settled);
}

TEST_F(HeardTest, WhatIsReadFromFilesNeverGrowsOld) {
  store_.Apply("files", TickOf(9), 0);
  const JobState state = Look(1000);
  EXPECT_EQ(state.processes[1].agent, -1);
  EXPECT_EQ(state.processes[1].liveness, Liveness::kAlive);
}

TEST_F(HeardTest, ThreeTicksMakeAnAgentBelieved) {
  EXPECT_FALSE(Look(0).agents[0].is_settled);
  Hear(Nothing(0), 0);  // a piece of the same tick
  Hear(Nothing(0.1), 0.1);
  EXPECT_FALSE(Look(0.1).agents[0].is_settled);
  Hear(Nothing(0.2), 0.2);
  EXPECT_TRUE(Look(0.2).agents[0].is_settled);
}

TEST_F(HeardTest, AnotherAgentOfTheHostDoesNotSpeakForTheFirstsProcesses) {
  const AgentName other = AgentOn("node", "second");
  store_.Connected(other);
  v1::Tick forged = TickOf(7);
  forged.mutable_processes(0)->mutable_evidence()->set_liveness(v1::Evidence::DIED);
  store_.Apply(other, forged, At(0.1));
  EXPECT_EQ(store_.Get("job").processes[0].liveness, Liveness::kAlive);
  store_.Apply(other, TickOf(8), At(0.2));  // its own are its own
  EXPECT_EQ(store_.Get("job").processes.size(), 2u);
}

TEST_F(HeardTest, AProcessPassesToAnotherAgentWhenItsOwnIsGone) {
  const AgentName other = AgentOn("node", "second");
  store_.Connected(other);
  store_.Apply(other, TickOf(7), At(0.1));
  // What it told was left out, so it must tell all again.
  EXPECT_EQ(store_.Gone(agent_), std::vector<std::string>{"second"});
  v1::Tick change = TickOf(7);
  change.mutable_processes(0)->clear_identity();
  EXPECT_FALSE(store_.Apply(other, change, At(0.2)));
  v1::Tick ended = TickOf(7);
  ended.mutable_processes(0)->mutable_evidence()->set_liveness(v1::Evidence::EXITED);
  EXPECT_TRUE(store_.Apply(other, ended, At(0.3)));
  EXPECT_EQ(store_.Get("job").processes[0].liveness, Liveness::kExited);
  EXPECT_TRUE(store_.Apply(other, change, At(0.4)));
}

TEST_F(HeardTest, AnAgentThatComesBackBeforeItsOldStreamHasEndedIsTheSame) {
  store_.Connected(agent_);
  v1::Tick ended = TickOf(7);
  ended.mutable_processes(0)->mutable_evidence()->set_liveness(v1::Evidence::EXITED);
  Hear(ended, 1);
  EXPECT_TRUE(store_.Gone(agent_).empty());
  EXPECT_EQ(store_.Get("job").processes[0].liveness, Liveness::kExited);
}

TEST_F(HeardTest, NobodyTakesTheSeatOfARankThatAnotherAgentSpeaksFor) {
  const AgentName other = AgentOn("elsewhere", "second");
  store_.Connected(other);
  v1::Tick forged = TickOf(99);
  AddComm(&forged, 5, 1, 4)->set_entered(1000);
  store_.Apply(other, forged, At(0.1));
  EXPECT_EQ(OnlyMember(store_.Get("job")).entered, 0u);
  EXPECT_EQ(OnlyMember(store_.Get("job")).process, 0);
}

}  // namespace
}  // namespace rollcall
