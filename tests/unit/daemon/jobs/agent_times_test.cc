// SPDX-License-Identifier: Apache-2.0
// What an agent claims is limited to what can be, and counted.
#include "daemon/jobs/agent_times.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>

#include "base/durations.h"
#include "daemon/jobs/daemon_counters.h"
#include "daemon/jobs/job_store.h"
#include "job_store_ticks.h"
#include "rollcall/v1/agent.pb.h"

namespace rollcall {
namespace {

constexpr int64_t kHour = 3600 * kSecond;
// The agent's clock when the tick is made, and the daemon's when it comes.
constexpr int64_t kMade = 1'900'000'000 * kSecond, kCame = kMade + 1000 * kSecond;

class AgentTimesTest : public testing::Test {
 protected:
  // A process that waits in a communicator of four ranks. All times are hours before the tick;
  // `started`: 0, if it is not known.
  static v1::Tick Waits(int64_t started, int64_t booted = 0) {
    v1::Tick tick = MakeTick(7);
    tick.set_now_ns(kMade);
    v1::Identity* identity = tick.mutable_processes(0)->mutable_identity();
    if (started != 0) identity->set_started_ns(kMade - started * kHour);
    if (booted != 0) identity->set_booted_ns(kMade - booted * kHour);
    AddComm(&tick, 5, 1, 4)->set_entered(1);
    return tick;
  }
  static v1::CommUpdate* Comm(v1::Tick* tick) {
    return tick->mutable_processes(0)->mutable_communicators(0);
  }

  // The hours before the tick of a time on the daemon's clock.
  static double Hours(int64_t time_ns) {
    return static_cast<double>(kCame - time_ns) / static_cast<double>(kHour);
  }
  double HoursOfWait(const v1::Tick& tick) {
    store_.Apply("node", tick, kCame);
    return Hours(OnlyMember(store_.Get(kJob)).waiting_since_ns);
  }
  uint64_t Times() const { return Count(Dropped::kTimes); }
  uint64_t Count(Dropped what) const { return counters_.Get().dropped[static_cast<size_t>(what)]; }

  DaemonCounters counters_;
  JobStore store_{"unnamed", {}, &counters_};
};

TEST_F(AgentTimesTest, AWaitIsNotOlderThanItsProcess) {
  v1::Tick tick = Waits(2);
  Comm(&tick)->set_waiting_since_ns(1);  // 1970
  EXPECT_DOUBLE_EQ(HoursOfWait(tick), 2);
  EXPECT_EQ(Times(), 1u);
}

TEST_F(AgentTimesTest, LimitsAWaitToTheProcesssAgeInLaterTicks) {
  store_.Apply("node", Waits(2), kCame);
  v1::Tick tick = Waits(0);
  tick.mutable_processes(0)->clear_identity();
  Comm(&tick)->set_waiting_since_ns(kMade - 3 * kHour);
  EXPECT_DOUBLE_EQ(HoursOfWait(tick), 2);
  EXPECT_EQ(Times(), 1u);
}

TEST_F(AgentTimesTest, LimitsAWaitWithoutAStartTimeToTheHostsAge) {
  v1::Tick tick = Waits(0, 5);
  Comm(&tick)->set_waiting_since_ns(1);
  EXPECT_DOUBLE_EQ(HoursOfWait(tick), 5);
}

// It reads the clock before the segments.
TEST_F(AgentTimesTest, ToleratesEventsWhileABusyAgentReadsSegments) {
  v1::Tick tick = Waits(2);
  Comm(&tick)->set_waiting_since_ns(kMade + 5 * kSecond);
  store_.Apply("node", tick, kCame);
  EXPECT_EQ(Times(), 0u);
  EXPECT_EQ(OnlyMember(store_.Get(kJob)).waiting_since_ns, kCame + 5 * kSecond);
}

TEST_F(AgentTimesTest, NoClaimMakesAWaitOlderThanAYear) {
  for (const int64_t started_ns : {int64_t{0}, int64_t{1}}) {
    JobStore store("unnamed", {}, &counters_);
    v1::Tick tick = Waits(0);
    tick.mutable_processes(0)->mutable_identity()->set_started_ns(started_ns);
    Comm(&tick)->set_waiting_since_ns(1);
    store.Apply("node", tick, kCame);
    EXPECT_DOUBLE_EQ(Hours(OnlyMember(store.Get(kJob)).waiting_since_ns), 366 * 24);
    EXPECT_EQ(store.BeganNs(kJob), started_ns == 0 ? 0 : kCame - limits::kOldestNs);
  }
}

TEST_F(AgentTimesTest, NothingHappensAfterTheTickThatTellsIt) {
  v1::Tick tick = Waits(2);
  Comm(&tick)->set_waiting_since_ns(kMade + 9 * kHour);
  v1::Evidence* evidence = tick.mutable_processes(0)->mutable_evidence();
  evidence->set_error_ns(kMade + 9 * kHour);
  evidence->add_blocked()->set_since_ns(kMade + 9 * kHour);
  EXPECT_DOUBLE_EQ(HoursOfWait(tick), 0);
  const Process process = store_.Get(kJob).processes.at(0);
  EXPECT_EQ(process.error_ns, kCame);
  EXPECT_EQ(process.blocked.at(0).since_ns, kCame);
  EXPECT_EQ(Times(), 3u);
}

TEST_F(AgentTimesTest, TheTimesOfRecordsCanBe) {
  v1::Tick tick = Waits(2);
  AddRecords(Comm(&tick), 0, 3, 100 * kHour);
  v1::RecordBatch* records = Comm(&tick)->mutable_records();
  records->set_entered_delta_ns(0, 5);  // 1970
  records->set_entered_delta_ns(1, kMade - kHour - 5);
  store_.Apply("node", tick, kCame);
  const JobState state = store_.Get(kJob);
  const auto& kept = OnlyMember(state).records;
  ASSERT_EQ(kept.size(), 3u);
  EXPECT_DOUBLE_EQ(Hours(kept[0].entered_ns), 2);
  EXPECT_DOUBLE_EQ(Hours(kept[1].entered_ns), 1);
  for (const CallRecord& record : kept) {
    EXPECT_GE(record.returned_ns, record.entered_ns);
    EXPECT_LE(record.returned_ns, kCame);
  }
}

// Its clock may be years away from the daemon's.
TEST_F(AgentTimesTest, AnHonestAgentsTimesAreKept) {
  v1::Tick tick = Waits(30, 400);
  Comm(&tick)->set_init_entered_ns(kMade - 30 * kHour - kSecond / 2);
  Comm(&tick)->set_state_since_ns(kMade - 29 * kHour);
  Comm(&tick)->set_waiting_since_ns(kMade + kSecond / 10);
  tick.mutable_processes(0)->mutable_evidence()->add_blocked()->set_since_ns(kMade - kSecond);
  store_.Apply("node", tick, kCame - 100'000 * kHour);
  const JobState state = store_.Get(kJob);
  EXPECT_EQ(OnlyMember(state).waiting_since_ns, kCame - 100'000 * kHour + kSecond / 10);
  EXPECT_DOUBLE_EQ(Hours(OnlyMember(state).state_since_ns), 100'000 + 29);
  EXPECT_EQ(OnlyMember(state).host_blocked_since_ns, 0);
  EXPECT_EQ(Times(), 0u);
}

TEST_F(AgentTimesTest, TimesThatAreReadFromFilesAreKept) {
  v1::Tick tick = Waits(2);
  Comm(&tick)->set_waiting_since_ns(1);
  store_.Apply("node", tick, 0);
  EXPECT_EQ(OnlyMember(store_.Get(kJob)).waiting_since_ns, 1);
  EXPECT_EQ(Times(), 0u);
}

TEST_F(AgentTimesTest, NumbersThatCannotBeAreNotKnown) {
  v1::Tick tick = Waits(2);
  v1::ProcessUpdate* process = tick.mutable_processes(0);
  process->mutable_identity()->set_global_rank(INT32_MAX);
  process->mutable_identity()->set_world_size(INT32_MAX);
  process->mutable_identity()->set_local_rank(INT32_MAX);
  process->mutable_evidence()->set_cpu_seconds(std::numeric_limits<double>::quiet_NaN());
  process->mutable_evidence()->set_memory_bytes(UINT64_MAX);
  Comm(&tick)->set_size(INT32_MAX);
  store_.Apply("node", tick, kCame);
  const JobState state = store_.Get(kJob);
  const Process& kept = state.processes.at(0);
  EXPECT_EQ(kept.global_rank, -1);
  EXPECT_EQ(kept.world_size, -1);
  EXPECT_EQ(kept.local_rank, -1);
  EXPECT_EQ(kept.cpu_seconds, 0);
  EXPECT_EQ(kept.memory_bytes, 0u);
  EXPECT_EQ(state.communicators.at(5).size, 0);
  EXPECT_EQ(Count(Dropped::kNumbers), 6u);
}

TEST_F(AgentTimesTest, LargeNumbersThatCanBeAreKept) {
  v1::Tick tick = Waits(2);
  v1::ProcessUpdate* process = tick.mutable_processes(0);
  process->mutable_identity()->set_global_rank(262'143);
  process->mutable_identity()->set_world_size(262'144);
  process->mutable_evidence()->set_cpu_seconds(1e9);
  process->mutable_evidence()->set_memory_bytes(uint64_t{4} << 40);
  Comm(&tick)->set_size(262'144);
  store_.Apply("node", tick, kCame);
  EXPECT_EQ(store_.Get(kJob).processes.at(0).world_size, 262'144);
  EXPECT_EQ(store_.Get(kJob).communicators.at(5).size, 262'144);
  EXPECT_EQ(Count(Dropped::kNumbers), 0u);
}

}  // namespace
}  // namespace rollcall
