// SPDX-License-Identifier: Apache-2.0
// To which attempt and which tenant a process belongs.
#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "daemon/jobs/daemon_counters.h"
#include "daemon/jobs/job_store.h"
#include "job_store_ticks.h"
#include "rollcall/v1/agent.pb.h"

namespace rollcall {
namespace {

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

// Each start takes the ranks of living processes.
TEST(JobStoreTest, AttemptsOfAStrangerLeaveTheOwnersAttempt) {
  JobStore store("unnamed");
  const auto start = [&store](int64_t uid, int first_pid) {
    v1::Tick tick = MakeStart(first_pid);
    for (v1::ProcessUpdate& process : *tick.mutable_processes()) {
      process.mutable_identity()->set_uid(uid);
    }
    store.Apply("node", tick, 0);
  };
  start(1, 100);
  start(1, 200);
  for (int i = 0; i < 100; ++i) start(7, 1000 + 10 * i);
  const std::vector<JobKey> keys = store.jobs().Keys();
  EXPECT_EQ(keys.size(), limits::kAttemptsOfJob);
  EXPECT_EQ(keys.at(0), JobKey("job", 0));
  EXPECT_EQ(keys.at(1), JobKey("job", 1));
  start(1, 200);  // a report on known processes begins nothing
  EXPECT_EQ(store.jobs().Keys(), keys);
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
    ASSERT_EQ(store.jobs().Keys(), std::vector<JobKey>({JobKey("job", 0), JobKey("job", 1)}));
    EXPECT_EQ(store.Get(JobKey("job", 0)).processes.front().pid, 500);
    EXPECT_EQ(store.Get(JobKey("job", 1)).processes.size(), 4u);
    EXPECT_FALSE(store.jobs().AttemptsFor(kJob).front().has_twin);
  }
}

// A process with this pid that is rank 2 of the communicator.
v1::Tick MakeRankTwo(int pid, uint64_t communicator, const std::string& name = "") {
  v1::Tick tick = MakeTick(pid);
  tick.mutable_processes(0)->mutable_identity()->set_global_rank(2);
  tick.mutable_processes(0)->mutable_identity()->set_has_segment(true);
  if (communicator != 0) AddComm(&tick, communicator, 2, 4)->set_name(name);
  return tick;
}

TEST(JobStoreTest, TwoProcessesWithOneRankOfACommunicatorAreOneAttempt) {
  for (const bool is_late : {false, true}) {
    JobStore store("unnamed");
    store.Apply("node", MakeRankTwo(100, is_late ? 0 : 77), 0);
    if (is_late) store.Apply("node", MakeRankTwo(100, 77), 0);
    store.Apply("node", MakeRankTwo(101, 77), 0);
    EXPECT_EQ(store.jobs().Keys(), std::vector<JobKey>({JobKey("job", 0)})) << is_late;
  }
}

// Without PMIx the world of each MPI job has one id.
TEST(JobStoreTest, TwoMpiJobsOfOneNameAreTwoAttempts) {
  JobStore store("unnamed");
  store.Apply("node", MakeRankTwo(100, 77, "MPI_COMM_WORLD"), 0);
  store.Apply("node", MakeRankTwo(101, 77, "MPI_COMM_WORLD"), 0);
  EXPECT_EQ(store.jobs().Keys().size(), 2u);
}

// Their communicators have the same ids in each start: by names that the program gives, or by
// counts.
TEST(JobStoreTest, TwoJobsOfOneNameWithCountedCommunicatorsAreTwoAttempts) {
  for (const CommKind kind : {CommKind::kGloo, CommKind::kUcc, CommKind::kNvshmem}) {
    JobStore store("unnamed");
    for (const int pid : {100, 101}) {
      v1::Tick tick = MakeRankTwo(pid, 77);
      v1::CommUpdate* comm = tick.mutable_processes(0)->mutable_communicators(0);
      comm->set_kind(static_cast<uint32_t>(kind));
      store.Apply("node", tick, 0);
    }
    EXPECT_EQ(store.jobs().Keys().size(), 2u) << CommKindName(kind);
  }
}

TEST(JobStoreTest, ARestartedStoreContinuesTheAttempts) {
  JobStore before("unnamed");
  before.Apply("node", MakeStart(100), 0);
  before.Apply("node", MakeStart(200), 0);
  const AttemptChanges changes = before.places()->TakeAttemptChanges({});
  ASSERT_EQ(changes.changed.size(), 2u);
  EXPECT_EQ(changes.changed.at(JobKey("job", 1)).members.size(), 4u);
  EXPECT_TRUE(before.places()->TakeAttemptChanges({}).changed.empty())
      << "nothing has changed since";
  EXPECT_EQ(before.places()->TakeAttemptChanges({true, {}}).changed.size(), 2u);

  JobStore after("unnamed");
  after.places()->RestoreAttempts(changes.changed);
  EXPECT_EQ(after.jobs().CountJobs(), 0u) << "its processes have not returned";
  after.Apply("node", MakeStart(200), 0);
  EXPECT_EQ(after.jobs().Keys(), std::vector<JobKey>({JobKey("job", 1)}));
  EXPECT_TRUE(after.places()->TakeAttemptChanges({}).changed.empty()) << "they are recorded";
  after.Apply("node", MakeStart(300), 0);
  EXPECT_EQ(after.jobs().Keys(), std::vector<JobKey>({JobKey("job", 1), JobKey("job", 2)}));
}

TEST(JobStoreTest, TheHistoryGetsAnAdoptedJobAnewAndNoOtherOne) {
  JobStore store("unnamed");
  store.Apply("node", MakeStart(100), 0);
  v1::Tick other = MakeStart(200);
  for (v1::ProcessUpdate& process : *other.mutable_processes()) {
    process.mutable_identity()->set_job("other");
  }
  store.Apply("elsewhere", other, 0);
  ASSERT_EQ(store.places()->TakeAttemptChanges({}).changed.size(), 2u);
  const AttemptChanges changes =
      store.places()->TakeAttemptChanges({false, {JobKey("other", 0), JobKey("gone", 0)}});
  ASSERT_EQ(changes.changed.size(), 1u);
  EXPECT_EQ(changes.changed.at(JobKey("other", 0)).members.size(), 4u);
}

TEST(JobStoreTest, AForgottenAttemptIsForgottenInTheHistory) {
  JobStore store("unnamed");
  store.Apply("node", MakeStart(100), 0);
  store.places()->Forget(kJob);
  const AttemptChanges changes = store.places()->TakeAttemptChanges({});
  EXPECT_TRUE(changes.changed.empty());
  EXPECT_EQ(changes.forgotten.count(kJob), 1u);
}

TEST(JobStoreTest, AttemptsThatAreRestoredLateLeaveAJobThatHasCome) {
  JobStore before("unnamed");
  before.Apply("node", MakeStart(100), 0);
  before.Apply("node", MakeStart(200), 0);
  JobStore late("unnamed");
  late.Apply("node", MakeStart(200), 0);
  late.places()->RestoreAttempts(before.places()->TakeAttemptChanges({}).changed);
  late.Apply("node", MakeStart(200), 0);
  EXPECT_EQ(late.jobs().Keys(), std::vector<JobKey>({JobKey("job", 0)}));
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
  ASSERT_TRUE(store.jobs().Find("team-a", "job", std::nullopt).has_value());
  EXPECT_EQ(store.jobs().Find("", "job", std::nullopt)->tenant, "default");
  EXPECT_EQ(store.jobs().CountJobs(), 2);
}

TEST(JobStoreTest, AnAgentOfOneTenantWritesItsJobsWithoutAClaim) {
  JobStore store("default");
  store.Apply(AgentWithTenants({"team-a"}), MakeTick(1), 1000);
  EXPECT_TRUE(store.jobs().Find("team-a", "job", std::nullopt).has_value());
  EXPECT_FALSE(store.jobs().Find("default", "job", std::nullopt).has_value());
}

TEST(JobStoreTest, DropsAndCountsProcessesOfTenantsThatTheAgentMayNotWrite) {
  DaemonCounters counters;
  JobStore store("default", {}, &counters);
  const AgentName agent = AgentWithTenants({"team-a"});
  v1::Tick more = TickOfTenant("team-b");
  more.mutable_processes(0)->clear_identity();
  EXPECT_TRUE(store.Apply(agent, TickOfTenant("team-b"), 1000));
  EXPECT_TRUE(store.Apply(agent, more, 2000)) << "it would send the same again";
  EXPECT_EQ(store.jobs().CountJobs(), 0);
  EXPECT_EQ(counters.Get().dropped[static_cast<size_t>(Dropped::kTenants)], 1);
}

}  // namespace
}  // namespace rollcall
