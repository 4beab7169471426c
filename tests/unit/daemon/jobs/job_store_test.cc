// SPDX-License-Identifier: Apache-2.0
// What ticks make of the states of jobs: processes, communicators and records.
#include "daemon/jobs/job_store.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include "interpose/segment.h"
#include "job_store_ticks.h"
#include "rollcall/v1/agent.pb.h"

namespace rollcall {
namespace {

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
  const RoutedTick routed = store->places()->Route(agent, tick, 1'000);
  for (const RoutedTick::Part& part : routed.parts) part.job->Apply(tick, routed, part);
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

TEST(JobStoreTest, AFactThatAnOlderAgentDoesNotSendIsZeroAndKeepsTheRows) {
  JobStore store("unnamed");
  v1::Tick tick = MakeTick(7);
  v1::CommUpdate* comm = AddComm(&tick, 5, 1, 4);
  AddRecords(comm, 0, 3);
  comm->mutable_records()->clear_thread();
  store.Apply("node", tick, 0);
  const JobState state = store.Get(kJob);
  ASSERT_EQ(OnlyMember(state).records.size(), 3u);
  EXPECT_EQ(OnlyMember(state).records[2].thread, 0u);
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
  EXPECT_TRUE(store.jobs().Keys().empty());
}

TEST(JobStoreTest, UnnamedProcessesMakeUpTheDefaultJob) {
  JobStore store("unnamed");
  store.Apply("node", MakeTick(7, ""), 0);
  EXPECT_EQ(store.jobs().Keys(), std::vector<JobKey>{JobKey("unnamed")});
}

TEST(JobStoreTest, EqualPidsOfTwoHostsAreTwoProcesses) {
  JobStore store("unnamed");
  store.Apply("one", MakeTick(7), 0);
  store.Apply("two", MakeTick(7), 0);
  EXPECT_EQ(store.Get(kJob).processes.size(), 2u);
}

TEST(JobStoreTest, EndsASplitWhenItsLastRankUsesTheChild) {
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
    AddComm(&tick, 5, rank, 2)->set_state(static_cast<uint32_t>(segment::CommState::kDestroyed));
    store.Apply("node", tick, 0);
  }
  EXPECT_TRUE(store.Get(kJob).communicators.empty());
}

TEST(JobStoreTest, ForgettingAJobLeavesTheOthers) {
  JobStore store("unnamed");
  store.Apply("node", MakeTick(1, "a"), 0);
  store.Apply("node", MakeTick(2, "b"), 0);
  store.places()->Forget(JobKey("a"));
  EXPECT_EQ(store.jobs().Keys(), std::vector<JobKey>{JobKey("b")});
}

TEST(JobStoreTest, AcceptsALateIdentity) {
  JobStore store("unnamed");
  v1::Tick tick = MakeTick(7);
  AddRecords(AddComm(&tick, 5, 1, 4), 0, 3);
  v1::Tick nameless = tick;
  nameless.mutable_processes(0)->clear_identity();
  store.Apply("node", nameless, 0);
  EXPECT_TRUE(store.jobs().Keys().empty());
  store.Apply("node", tick, 0);
  store.Apply("node", nameless, 0);  // the process is known by now
  EXPECT_EQ(store.jobs().Keys(), std::vector<JobKey>{JobKey("job")});
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

}  // namespace
}  // namespace rollcall
