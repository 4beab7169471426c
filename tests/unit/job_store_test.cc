#include "daemon/job_store.h"

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

TEST(JobStoreTest, AChangeIsANewVersion) {
  JobStore store("unnamed");
  EXPECT_EQ(store.Version("job"), 0u);
  store.Apply("node", TickOf(1), 0);
  const uint64_t before = store.Version("job");
  store.Apply("node", TickOf(2), 0);
  EXPECT_GT(store.Version("job"), before);
}

}  // namespace
}  // namespace rollcall
