// SPDX-License-Identifier: Apache-2.0
// What exceeds a limit is left out and counted.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "daemon/jobs/daemon_counters.h"
#include "daemon/jobs/job_store.h"
#include "daemon/model/client_limits.h"
#include "interpose/segment.h"
#include "job_store_ticks.h"
#include "rollcall/v1/agent.pb.h"

namespace rollcall {
namespace {

std::string Name(const char* word, int number) { return word + std::to_string(number); }

uint64_t CountDropped(const DaemonCounters& counters, Dropped what) {
  return counters.Get().dropped[static_cast<size_t>(what)];
}

TEST(JobStoreLimitsTest, IgnoresAndCountsJobsBeyondTheLimit) {
  DaemonCounters counters;
  JobStoreLimits most;
  most.jobs = 3;
  JobStore store("unnamed", most, &counters);
  for (int i = 0; i < 5; ++i) store.Apply("node", MakeTick(i, "job-" + std::to_string(i)), 1);
  EXPECT_EQ(store.jobs().CountJobs(), 3u);
  EXPECT_EQ(CountDropped(counters, Dropped::kJobs), 2u);
  store.places()->Forget(JobKey("job-1"));
  store.Apply("node", MakeTick(9, "job-9"), 2);
  EXPECT_EQ(store.jobs().CountJobs(), 3u);
  EXPECT_TRUE(store.jobs().Find("", "job-9", std::nullopt).has_value());
  EXPECT_FALSE(store.jobs().Find("", "job-1", std::nullopt).has_value());
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
  EXPECT_EQ(store.jobs().Find("", "job", std::nullopt)->attempt, 4);
  EXPECT_EQ(store.jobs().AllKeys("job").size(), 2u);
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
  store.places()->Forget(kJob);
  store.Apply("node", MakeTick(9, "later"), 2);
  EXPECT_EQ(store.Get(JobKey("later")).processes.size(), 1u);
}

v1::Tick TickOf(uint32_t uid, int pid, const std::string& job) {
  v1::Tick tick = MakeTick(pid, job);
  tick.mutable_processes(0)->mutable_identity()->set_uid(uid);
  return tick;
}

void End(int pid, const std::string& host, JobStore* store) {
  v1::Tick tick = MakeTick(pid);
  tick.mutable_processes(0)->clear_identity();
  tick.mutable_processes(0)->mutable_evidence()->set_liveness(v1::Evidence::EXITED);
  store->Apply(host, tick, 1);
}

bool HasJob(const JobStore& store, const std::string& job) {
  return store.jobs().Find("", job, std::nullopt).has_value();
}

TEST(JobStoreLimitsTest, JobsThatAreOverMakeRoomForLivingOnes) {
  DaemonCounters counters;
  JobStoreLimits most;
  most.jobs = 3;
  JobStore store("unnamed", most, &counters);
  for (int i = 0; i < 3; ++i) store.Apply("node", TickOf(7, i, "short-" + std::to_string(i)), 1);
  End(1, "node", &store);
  store.Apply("node", TickOf(7, 9, "next"), 1);
  EXPECT_TRUE(HasJob(store, "next"));
  EXPECT_FALSE(HasJob(store, "short-1"));
  EXPECT_EQ(store.jobs().CountJobs(), 3u);
  EXPECT_EQ(CountDropped(counters, Dropped::kJobs), 0u);
}

// A launcher's helper may end before its agent has looked whose it is.
TEST(JobStoreLimitsTest, AJobWithoutAKnownStarterIsTheFirstKnownUsers) {
  DaemonCounters counters;
  JobStore store("unnamed", JobStoreLimits(), &counters);
  store.Apply("node", MakeTick(1, "train"), 1);
  for (int pid = 10; pid < 410; ++pid) store.Apply("node", TickOf(7, pid, "train"), 1);
  EXPECT_EQ(store.Get(JobKey("train")).processes.size(), 401u);
  EXPECT_EQ(CountDropped(counters, Dropped::kProcesses), 0u);
  for (int pid = 500; pid < 900; ++pid) store.Apply("node", TickOf(8, pid, "train"), 1);
  EXPECT_EQ(store.Get(JobKey("train")).processes.size(), 401u + limits::kGuestsOfUser);
}

TEST(JobStoreLimitsTest, AFloodOfJobsLeavesAnotherUsersJobs) {
  DaemonCounters counters;
  JobStoreLimits most;
  most.jobs = 10;
  JobStore store("unnamed", most, &counters);
  store.Apply("node", TickOf(1, 1, "early"), 1);
  for (int i = 0; i < 100; ++i) store.Apply("node", TickOf(7, 10 + i, Name("flood-", i)), 1);
  store.Apply("node", TickOf(2, 2, "late"), 1);
  store.Apply("other-node", TickOf(7, 3, "of the same user elsewhere"), 1);
  EXPECT_TRUE(HasJob(store, "early"));
  EXPECT_TRUE(HasJob(store, "late"));
  EXPECT_EQ(store.jobs().CountJobs(), 10u);
  const auto over = counters.Get().over_share;
  ASSERT_EQ(over.size(), 1u);
  EXPECT_EQ(over.begin()->first,
            std::make_tuple(Dropped::kJobs, std::string("7"), std::string("node")));
  EXPECT_EQ(over.begin()->second, CountDropped(counters, Dropped::kJobs));
}

TEST(JobStoreLimitsTest, AHostThatInventsUsersLeavesTheJobsOfOtherHosts) {
  JobStoreLimits most;
  most.jobs = 10;
  JobStore store("unnamed", most);
  for (int i = 0; i < 100; ++i) {
    store.Apply("hostile", TickOf(1000 + i, 10 + i, Name("flood-", i)), 1);
  }
  for (int i = 0; i < 4; ++i) store.Apply("node", TickOf(1, i, Name("job-", i)), 1);
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(HasJob(store, Name("job-", i))) << i;
}

TEST(JobStoreLimitsTest, AFloodOfProcessesLeavesAnotherUsersJobs) {
  DaemonCounters counters;
  JobStoreLimits most;
  most.processes = 10;
  JobStore store("unnamed", most, &counters);
  for (int i = 0; i < 100; ++i) store.Apply("node", TickOf(7, 10 + i, "flood"), 1);
  store.Apply("node", TickOf(7, 200, "flood-2"), 1);
  store.Apply("node", TickOf(2, 1, "late"), 1);
  EXPECT_TRUE(HasJob(store, "late"));
  EXPECT_EQ(counters.Get().over_share.begin()->first,
            std::make_tuple(Dropped::kProcesses, std::string("7"), std::string("node")));
}

// A user may know the name of another user's job.
TEST(JobStoreLimitsTest, ChargesAFloodToItsOwnUserInAnotherUsersJob) {
  DaemonCounters counters;
  JobStoreLimits most;
  most.processes = 1000;
  JobStore store("unnamed", most, &counters);
  store.Apply("node", TickOf(1, 0, "train"), 1);
  for (int i = 1; i <= 2000; ++i) store.Apply("node", TickOf(7, i, "train"), 1);
  EXPECT_EQ(counters.Get().over_share.begin()->first,
            std::make_tuple(Dropped::kProcesses, std::string("7"), std::string("node")));
  for (int i = 0; i < 700; ++i) store.Apply("node", TickOf(2, 10000 + i, "other"), 1);
  EXPECT_TRUE(HasJob(store, "train"));
  EXPECT_TRUE(HasJob(store, "other"));
}

TEST(JobStoreLimitsTest, ReadmitsADroppedJobByAWholeTick) {
  JobStoreLimits most;
  most.jobs = 2;
  JobStore store("unnamed", most);
  for (int i = 0; i < 2; ++i) store.Apply("node", TickOf(7, i, Name("flood-", i)), 1);
  store.Apply("node", TickOf(2, 5, "late"), 1);
  ASSERT_FALSE(HasJob(store, "flood-1"));
  store.Apply("node", TickOf(7, 1, "flood-1"), 1);
  EXPECT_FALSE(HasJob(store, "flood-1"));
  End(0, "node", &store);
  store.Apply("node", TickOf(7, 1, "flood-1"), 1);
  EXPECT_TRUE(HasJob(store, "flood-1"));
}

TEST(JobStoreLimitsTest, CutsLongNamesAndCountsWhatAJobDropped) {
  DaemonCounters counters;
  JobStore store("unnamed", {}, &counters);
  v1::Tick tick = MakeTick(1, std::string(1000, 'j'));
  tick.mutable_processes(0)->mutable_evidence()->set_error(std::string(100'000, 'e'));
  v1::ThreadFailure* failure =
      tick.mutable_processes(0)->mutable_evidence()->mutable_thread_failure();
  failure->set_thread(std::string(100'000, 't'));
  failure->set_error(std::string(100'000, 'e'));
  for (size_t i = 0; i < limits::kAwaitedKeys + 1; ++i) {
    v1::BlockedCall* call = tick.mutable_processes(0)->mutable_evidence()->add_blocked();
    call->set_key(std::string(i == 0 ? 100'000 : 1, 'k'));
  }
  v1::Identity* identity = tick.mutable_processes(0)->mutable_identity();
  identity->set_launch(std::string(100'000, 'l'));
  identity->set_restarts(std::string(100'000, 'r'));
  identity->set_pod(std::string(100'000, 'p'));
  store.Apply("node", tick, 1);
  const JobKey key(std::string(limits::kName, 'j'));
  EXPECT_EQ(store.Get(key).processes.at(0).error.size(), limits::kError);
  EXPECT_EQ(store.Get(key).processes.at(0).thread_failure.error.size(), limits::kError);
  EXPECT_EQ(store.Get(key).processes.at(0).thread_failure.thread.size(), limits::kName);
  EXPECT_EQ(store.Get(key).processes.at(0).pod.size(), limits::kCommand);
  EXPECT_EQ(store.Get(key).processes.at(0).blocked.at(0).key.size(), limits::kName);
  EXPECT_EQ(store.Get(key).processes.at(0).blocked.at(limits::kAwaitedKeys).key, "");
  EXPECT_EQ(CountDropped(counters, Dropped::kTexts), 8u);
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
  store.places()->Forget(kJob);
  EXPECT_GT(store.Changes(), two);
}

TEST(JobStoreLimitsTest, ListsAPartOfTheJobs) {
  JobStore store("unnamed");
  for (int i = 0; i < 9; ++i) store.Apply("node", MakeTick(i, "job-" + std::to_string(i)), 1);
  const std::vector<JobKey> keys = store.jobs().NewestKeys(3);
  ASSERT_EQ(keys.size(), 3u);
  EXPECT_EQ(keys[0].job, "job-0");
  EXPECT_EQ(store.jobs().NewestKeys().size(), 9u);
}

}  // namespace
}  // namespace rollcall
