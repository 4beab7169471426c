// SPDX-License-Identifier: Apache-2.0
// The daemon while somebody sets the wall clock. The test replaces the clock functions, so it sets
// the clock of this process only.
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <functional>
#include <thread>

#include "absl/base/config.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "base/steady_clock.h"
#include "daemon/daemon.h"
#include "eventually.h"
#include "interpose/segment.h"
#include "query_requests.h"
#include "rollcall/v1/agent.pb.h"

namespace {
std::atomic<int64_t> wall_set_by_s{0};
}

extern "C" int clock_gettime(clockid_t clock, timespec* time) noexcept {
  const long result = syscall(SYS_clock_gettime, clock, time);
  if (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE) time->tv_sec += wall_set_by_s;
  return static_cast<int>(result);
}

// absl::Mutex computes its deadlines from this function.
extern "C" int gettimeofday(timeval* time, void*) noexcept {
  timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  *time = {now.tv_sec, now.tv_nsec / 1000};
  return 0;
}

namespace rollcall {
namespace {

namespace fs = std::filesystem;

int64_t WallSeconds() {
  timespec time;
  clock_gettime(CLOCK_REALTIME, &time);
  return time.tv_sec;
}

class DaemonClockTest : public testing::Test {
 protected:
  void SetUp() override {
    wall_set_by_s = 0;
    char path[] = "/tmp/rollcall-clock-XXXXXX";
    ASSERT_NE(mkdtemp(path), nullptr);
    scratch_ = path;
    DaemonOptions options;
    options.limits = LimitsFor(60'000'000'000);
    options.report_dir = scratch_ / "reports";
    options.log_incidents = false;
    daemon_ = std::make_unique<Daemon>(options);
    ASSERT_TRUE(daemon_->Start().ok());
    daemon_->agent_sink()->OnConnected(agent_);
  }
  void TearDown() override {
    daemon_->Stop();
    fs::remove_all(scratch_);
  }

  static void AddRank(int rank, uint64_t id, uint64_t signature, v1::Tick* tick) {
    v1::ProcessUpdate* process = tick->add_processes();
    process->set_pid(4000 + rank);
    process->set_start_time(1);
    process->mutable_identity()->set_job("job");
    process->mutable_identity()->set_global_rank(rank);
    process->mutable_identity()->set_has_segment(true);
    process->mutable_evidence()->set_liveness(v1::Evidence::ALIVE);
    v1::CommUpdate* comm = process->add_communicators();
    comm->set_id(id);
    comm->set_rank(rank);
    comm->set_size(2);
    comm->set_state(static_cast<uint32_t>(segment::CommState::kReady));
    comm->set_entered(rank == 0 ? 1 : 0);
    comm->set_signature(signature);
    v1::RecordBatch* batch = comm->mutable_records();
    if (rank != 0) return;
    comm->set_has_markers(true);
    comm->set_started(1);
    comm->set_waiting_since_ns(tick->now_ns());
    batch->add_position(0);
    batch->add_op(1);
    batch->add_dtype(7);
    batch->add_reduction(0);
    batch->add_peer(-1);
    batch->add_count(8);
    batch->add_entered_delta_ns(tick->now_ns());
    batch->add_duration_ns(5);
    batch->add_stream(0);
    batch->add_caller(0);
    batch->add_thread(1);
    batch->add_group(0);
    batch->add_result(0);
    batch->add_flags(0);
  }

  // Rank 0 waits for rank 1 from now on.
  void Tell(const std::string& job_of_rank = "") {
    v1::Tick tick;
    tick.set_now_ns(SteadyNs());
    for (int rank : {0, 1}) AddRank(rank, 5, segment::kSignatureSeed, &tick);
    for (v1::ProcessUpdate& process : *tick.mutable_processes()) {
      if (!job_of_rank.empty()) process.mutable_identity()->set_job(job_of_rank);
    }
    daemon_->agent_sink()->OnTick(agent_, std::make_shared<v1::Tick>(tick), [] {});
  }
  void FailRank1() {
    v1::Tick tick;
    tick.set_now_ns(SteadyNs());
    v1::ProcessUpdate* process = tick.add_processes();
    process->set_pid(4001);
    process->set_start_time(1);
    process->mutable_evidence()->set_liveness(v1::Evidence::ALIVE);
    process->mutable_evidence()->set_error("ValueError: no at train.py:5");
    process->mutable_evidence()->set_error_ns(tick.now_ns());
    daemon_->agent_sink()->OnTick(agent_, std::make_shared<v1::Tick>(tick), [] {});
  }
  void BeHeard() {
    v1::Tick tick;
    tick.set_now_ns(SteadyNs());
    daemon_->agent_sink()->OnTick(agent_, std::make_shared<v1::Tick>(tick), [] {});
  }
  bool Confirms() {
    return Eventually([&] {
      BeHeard();
      const auto incidents = daemon_->GetIncidents("");
      return !incidents.empty() && incidents.back().has_confirmed_at();
    });
  }

  fs::path scratch_;
  std::unique_ptr<Daemon> daemon_;
  const AgentName agent_ = {"node", "node/1", 100'000'000, true};
};

// Without this the tests below would test nothing.
TEST_F(DaemonClockTest, AbseilWaitsByTheReplacedClock) {
#if ABSL_LTS_RELEASE_VERSION >= 20230802
  GTEST_SKIP() << "this Abseil waits by a clock that nobody sets";
#endif
  absl::Mutex mutex;
  const bool never = false;
  wall_set_by_s = -120;
  const int64_t begun = SteadyNs();
  const absl::MutexLock lock(&mutex);
  mutex.AwaitWithTimeout(absl::Condition(&never), absl::Seconds(100));
  // The deadline has passed by the kernel's clock.
  EXPECT_LT(SteadyNs() - begun, 50'000'000'000);
}

TEST_F(DaemonClockTest, AClockThatWasSetBackStopsNothing) {
  Tell();
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  wall_set_by_s = 120;  // this process's clock is 120 s ahead of the kernel's
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  FailRank1();
  EXPECT_TRUE(Confirms());
}

TEST_F(DaemonClockTest, AClockThatWasSetForwardMakesNoWaitLonger) {
  Tell();
  wall_set_by_s = 3600;
  for (int i = 0; i < 50; ++i) {
    BeHeard();
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  EXPECT_TRUE(daemon_->GetIncidents("").empty());
  const v1::StatusResponse status = StatusOf(daemon_->queries());
  EXPECT_LT(status.jobs(0).communicators(0).waited_seconds(), 300);  // not the hour
  EXPECT_NEAR(static_cast<double>(status.now().seconds()), static_cast<double>(WallSeconds()), 300);
}

TEST_F(DaemonClockTest, AnIncidentKeepsTheTimeOfItsStart) {
  Tell();
  const int64_t shown = WallSeconds();
  FailRank1();
  ASSERT_TRUE(Confirms());
  const v1::Incident before = daemon_->GetIncidents("")[0];
  EXPECT_NEAR(static_cast<double>(before.opened_at().seconds()), static_cast<double>(shown), 300);
  wall_set_by_s = 86'400;
  daemon_->Stop();
  const v1::Incident after = daemon_->GetIncidents("")[0];
  EXPECT_EQ(after.opened_at().seconds(), before.opened_at().seconds());
  EXPECT_EQ(after.confirmed_at().seconds(), before.confirmed_at().seconds());
}

// Library and agent shorten longer names (CopyJobName()).
TEST_F(DaemonClockTest, FindsAJobByTheLongestName) {
  const std::string name(255, 'j');
  Tell(name);
  FailRank1();
  ASSERT_TRUE(Confirms());
  ASSERT_EQ(daemon_->GetIncidents(name).size(), 1u);
  EXPECT_EQ(daemon_->GetIncidents(name)[0].job(), name);
  EXPECT_EQ(StatusOf(daemon_->queries(), {name, "", std::nullopt}, true).jobs_size(), 1);
  EXPECT_TRUE(Eventually([&] {
    const std::string folder = daemon_->GetIncidents(name)[0].report_path();
    return !folder.empty() && fs::exists(folder + "/incident.json");
  }));
}

}  // namespace
}  // namespace rollcall
