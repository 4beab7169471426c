// SPDX-License-Identifier: Apache-2.0
// When a job is diagnosed. The counters count the diagnoses.
#include "daemon/loop/job_runner.h"

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>

#include "base/durations.h"
#include "base/steady_clock.h"
#include "daemon/incidents/incident_book.h"
#include "daemon/loop/job_runners.h"
#include "daemon/loop/stack_desk.h"
#include "interpose/segment.h"
#include "rollcall/v1/agent.pb.h"
#include "temporary_tree.h"

namespace rollcall {
namespace {

const JobKey kJob("job");
const AgentName kAgent{"node", "node/1", 100'000'000, true};

v1::ProcessUpdate* AddRank(int rank, v1::Tick* tick) {
  v1::ProcessUpdate* process = tick->add_processes();
  process->set_pid(4000 + rank);
  process->set_start_time(1);
  process->mutable_identity()->set_job(kJob.job);
  process->mutable_identity()->set_global_rank(rank);
  process->mutable_identity()->set_has_segment(true);
  process->mutable_identity()->set_started_ns(1);  // all belong to one start
  process->mutable_evidence()->set_liveness(v1::Evidence::ALIVE);
  return process;
}

// Two ranks of one communicator, each with this number of finished calls.
v1::Tick TickOfHealthyRanks(uint64_t calls) {
  v1::Tick tick;
  tick.set_now_ns(SteadyNs());
  for (const int rank : {0, 1}) {
    v1::CommUpdate* comm = AddRank(rank, &tick)->add_communicators();
    comm->set_id(5);
    comm->set_rank(rank);
    comm->set_size(2);
    comm->set_state(static_cast<uint32_t>(segment::CommState::kReady));
    comm->set_has_markers(true);
    comm->set_entered(calls);
    comm->set_started(calls);
    comm->set_finished(calls);
    comm->set_signature(segment::kSignatureSeed);
  }
  return tick;
}

class JobRunnerTest : public testing::Test {
 protected:
  void SetUp() override {
    IncidentBookOptions options;
    options.limits = limits_;
    options.report_dir = tree_.root();
    options.log_incidents = false;
    incidents_ = std::make_unique<IncidentBook>(options, &timeline_);
    ASSERT_TRUE(incidents_->Start().ok());
    desk_ = std::make_unique<StackDesk>(
        [](const std::string&, const v1::DaemonMessage&) { return false; }, &store_,
        incidents_.get(), &timeline_);
    runner_ = std::make_unique<JobRunner>(
        kJob,
        JobRunner::Parts{&store_, incidents_.get(), desk_.get(), &rates_, &counters_, &timeline_},
        JobRunner::Options{limits_, 0, 3600'000'000'000});
    store_.agents()->Connected(kAgent);
  }

  void Apply(const v1::Tick& tick) { store_.Apply(kAgent, tick, timeline_.Now()); }

  // The number of diagnoses in so many runs, each of which is due.
  uint64_t DiagnosesIn(int runs) {
    const uint64_t before = counters_.Get().ticks;
    for (int i = 0; i < runs; ++i) {
      runner_->DiagnoseNext();
      runner_->Run();
    }
    return counters_.Get().ticks - before;
  }

  const Limits limits_;
  TemporaryTree tree_;
  Timeline timeline_;
  JobStore store_{"default"};
  CallRates rates_;
  DaemonCounters counters_;
  std::unique_ptr<IncidentBook> incidents_;
  std::unique_ptr<StackDesk> desk_;
  std::unique_ptr<JobRunner> runner_;
};

TEST_F(JobRunnerTest, AHealthyJobIsDiagnosedOnceForEachChange) {
  Apply(TickOfHealthyRanks(7));
  EXPECT_EQ(DiagnosesIn(20), 1u);
  Apply(TickOfHealthyRanks(8));
  EXPECT_EQ(DiagnosesIn(20), 1u);
}

TEST_F(JobRunnerTest, AJobWithAnIncidentIsDiagnosedEachTime) {
  v1::Tick tick = TickOfHealthyRanks(7);
  v1::Evidence* failed = tick.mutable_processes(1)->mutable_evidence();
  failed->set_error("ValueError: no at train.py:5");
  failed->set_error_ns(tick.now_ns());
  tick.mutable_processes(0)->mutable_communicators(0)->set_entered(8);
  tick.mutable_processes(0)->mutable_communicators(0)->set_waiting_since_ns(tick.now_ns());
  Apply(tick);
  EXPECT_EQ(DiagnosesIn(5), 5u);
}

TEST_F(JobRunnerTest, AnIncidentKeepsWhatItsGpusDid) {
  Apply(TickOfHealthyRanks(7));
  Verdict hang;
  hang.waiting_processes = {0};
  incidents_->Apply(store_.Get(kJob), {hang}, timeline_.Now());
  ASSERT_EQ(incidents_->reader().All("").size(), 1u);
  v1::GpuDump dump;
  dump.set_rank(1);
  incidents_->AddGpuDump(kJob, incidents_->reader().All("")[0].id(), dump);
  incidents_->AddGpuDump(kJob, "another incident", dump);
  hang.waited_ns = 3600 * kSecond;
  incidents_->Apply(store_.Get(kJob), {hang}, timeline_.Now());
  const v1::Incident confirmed = incidents_->reader().All("")[0];
  EXPECT_TRUE(confirmed.has_confirmed_at());
  ASSERT_EQ(confirmed.gpu_dumps_size(), 1);
  EXPECT_EQ(confirmed.gpu_dumps(0).rank(), 1);
}

// The report on another host comes later, or a later start counts as the same attempt.
TEST_F(JobRunnerTest, AJobWhoseKnownProcessesHaveEndedIsDiagnosedWhenOthersAreReported) {
  v1::Tick ended;
  ended.set_now_ns(SteadyNs());
  AddRank(2, &ended)->mutable_evidence()->set_liveness(v1::Evidence::EXITED);
  Apply(ended);
  EXPECT_EQ(DiagnosesIn(3), 1u);
  const auto tick = std::make_shared<v1::Tick>(TickOfHealthyRanks(7));
  RoutedTick routed = store_.places()->Route(kAgent, *tick, timeline_.Now());
  ASSERT_TRUE(runner_->Post(std::make_shared<TickInTransit>(tick, std::move(routed), [] {}), 0));
  const uint64_t before = counters_.Get().ticks;
  runner_->Run();
  EXPECT_EQ(counters_.Get().ticks - before, 1u);
}

TEST_F(JobRunnerTest, RestsAnEndedJobUntilItIsForgotten) {
  v1::Tick ended;
  ended.set_now_ns(SteadyNs());
  AddRank(0, &ended)->mutable_evidence()->set_liveness(v1::Evidence::EXITED);
  Apply(ended);
  DiagnosesIn(2);
  EXPECT_GT(runner_->Run() - SteadyNs(), 3500 * kSecond);
}

// A job that is forgotten as soon as all its processes have ended or are silent.
class SilentJobTest : public JobRunnerTest {
 protected:
  void SetUp() override {
    JobRunnerTest::SetUp();
    lost_ = std::make_unique<JobRunner>(
        kJob,
        JobRunner::Parts{&store_, incidents_.get(), desk_.get(), &rates_, &counters_, &timeline_},
        JobRunner::Options{limits_, 0, 0});
  }
  void SetSilent() { store_.agents()->MarkSilent(timeline_.Now() + 3600 * kSecond, kSecond); }
  void DiagnoseTwice() {
    for (int i = 0; i < 2; ++i) {
      lost_->DiagnoseNext();
      lost_->Run();
    }
  }

  std::unique_ptr<JobRunner> lost_;
};

TEST_F(SilentJobTest, AJobWhoseHostsAreLostIsForgotten) {
  v1::Tick tick = TickOfHealthyRanks(7);
  tick.mutable_processes(1)->mutable_evidence()->set_liveness(v1::Evidence::EXITED);
  Apply(tick);
  DiagnoseTwice();
  EXPECT_FALSE(lost_->is_over());
  SetSilent();
  DiagnoseTwice();
  EXPECT_TRUE(lost_->is_over());
  EXPECT_TRUE(store_.jobs().Keys().empty());
}

TEST_F(SilentJobTest, AJobWhoseHostsReturnIsKept) {
  Apply(TickOfHealthyRanks(7));
  SetSilent();
  lost_->DiagnoseNext();
  lost_->Run();
  Apply(TickOfHealthyRanks(8));
  DiagnoseTwice();
  EXPECT_FALSE(lost_->is_over());
  EXPECT_EQ(store_.Get(kJob).processes.size(), 2u);
}

TEST_F(SilentJobTest, AJobWhoseHostsAreLostWhileItHangsIsForgotten) {
  Apply(TickOfHealthyRanks(7));
  SetSilent();
  lost_->DiagnoseNext();
  lost_->Run();
  Verdict hang;
  hang.waiting_processes = {0};
  incidents_->Apply(store_.Get(kJob), {hang}, timeline_.Now());
  ASSERT_TRUE(incidents_->NeedsDiagnosis(kJob));
  lost_->DiagnoseNext();
  lost_->Run();
  EXPECT_TRUE(lost_->is_over());
}

TEST_F(JobRunnerTest, AJobThatLosesItsPlaceToNewerAttemptsEndsWithItsIncident) {
  Apply(TickOfHealthyRanks(7));
  DiagnosesIn(1);
  Verdict hang;
  hang.waiting_processes = {0};
  incidents_->Apply(store_.Get(kJob), {hang}, timeline_.Now());
  ASSERT_TRUE(incidents_->NeedsDiagnosis(kJob));
  for (int attempt = 1; attempt <= static_cast<int>(limits::kAttemptsOfJob); ++attempt) {
    v1::Tick newer;
    newer.set_now_ns(SteadyNs());
    v1::ProcessUpdate* process = AddRank(0, &newer);
    process->set_pid(5000 + attempt);
    process->mutable_identity()->set_attempt(attempt);
    Apply(newer);
  }
  ASSERT_FALSE(store_.jobs().Has(kJob));
  DiagnosesIn(1);
  EXPECT_TRUE(runner_->is_over());
  EXPECT_FALSE(incidents_->NeedsDiagnosis(kJob));
}

// The end of a tick makes room for a message that waits, whose stream then posts the next tick.
TEST_F(JobRunnerTest, StopDropsTheTicksThatWaitAndThoseThatTheirEndsBring) {
  // No thread: nothing is applied.
  JobRunners runners(
      JobRunner::Parts{&store_, incidents_.get(), desk_.get(), &rates_, &counters_, &timeline_},
      JobRunner::Options{limits_, 0, 0}, 0);
  int ends = 0;
  const auto post = [&](const std::function<void()>& at_end) {
    const auto tick = std::make_shared<v1::Tick>(TickOfHealthyRanks(7));
    RoutedTick routed = store_.places()->Route(kAgent, *tick, timeline_.Now());
    runners.Post(std::make_shared<TickInTransit>(tick, std::move(routed), [&ends, at_end] {
      ++ends;
      at_end();
    }));
  };
  post([&] { post([] {}); });
  EXPECT_EQ(ends, 0);
  runners.Stop();
  EXPECT_EQ(ends, 2);
}

// The last rank ends, and after that another process of the job begins.
TEST_F(JobRunnerTest, KeepsAProcessWhoseTickArrivesWhileTheJobIsForgotten) {
  v1::Tick ended;
  ended.set_now_ns(SteadyNs());
  AddRank(0, &ended)->mutable_evidence()->set_liveness(v1::Evidence::EXITED);
  Apply(ended);
  JobRunner runner(
      kJob,
      JobRunner::Parts{&store_, incidents_.get(), desk_.get(), &rates_, &counters_, &timeline_},
      JobRunner::Options{limits_, 0, 0});
  runner.Run();  // from now on the job has ended

  const auto tick = std::make_shared<v1::Tick>();
  tick->set_now_ns(SteadyNs());
  AddRank(1, tick.get());
  RoutedTick routed = store_.places()->Route(kAgent, *tick, timeline_.Now());
  runner.DiagnoseNext();
  runner.Run();
  ASSERT_FALSE(runner.is_over()) << "a tick is on its way";
  ASSERT_TRUE(runner.Post(std::make_shared<TickInTransit>(tick, std::move(routed), [] {}), 0));
  runner.Run();
  EXPECT_EQ(store_.Get(kJob).processes.size(), 2u);
}

TEST_F(JobRunnerTest, AForgottenJobTakesNoMoreTicks) {
  v1::Tick ended;
  ended.set_now_ns(SteadyNs());
  AddRank(0, &ended)->mutable_evidence()->set_liveness(v1::Evidence::EXITED);
  Apply(ended);
  JobRunner runner(
      kJob,
      JobRunner::Parts{&store_, incidents_.get(), desk_.get(), &rates_, &counters_, &timeline_},
      JobRunner::Options{limits_, 0, 0});
  for (int i = 0; i < 3; ++i) {
    runner.DiagnoseNext();
    runner.Run();
  }
  ASSERT_TRUE(runner.is_over());
  EXPECT_TRUE(store_.jobs().Keys().empty());
  const auto tick = std::make_shared<v1::Tick>(TickOfHealthyRanks(7));
  RoutedTick routed = store_.places()->Route(kAgent, *tick, timeline_.Now());
  EXPECT_FALSE(runner.Post(std::make_shared<TickInTransit>(tick, std::move(routed), [] {}), 0));
}

}  // namespace
}  // namespace rollcall
