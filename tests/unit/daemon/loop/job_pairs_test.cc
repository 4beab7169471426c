// SPDX-License-Identifier: Apache-2.0
// Two jobs of one daemon that share a communicator: the trainer has its ranks 0 and 1, the engine 2
// and 3.
#include "daemon/loop/job_pairs.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/strings/match.h"
#include "base/durations.h"
#include "base/steady_clock.h"
#include "daemon/incidents/incident_book.h"
#include "daemon/loop/job_runner.h"
#include "interpose/segment.h"
#include "rollcall/v1/agent.pb.h"
#include "temporary_tree.h"

namespace rollcall {
namespace {

const JobKey kTrainer("trainer"), kEngine("engine");
const AgentName kAgent{"node", "node/1", 100'000'000, true};
constexpr uint64_t kShared = 5;

class JobPairsTest : public testing::Test {
 protected:
  void SetUp() override {
    IncidentBookOptions options;
    options.report_dir = tree_.root();
    options.log_incidents = false;
    incidents_ = std::make_unique<IncidentBook>(options, &timeline_);
    ASSERT_TRUE(incidents_->Start().ok());
    desk_ = std::make_unique<StackDesk>(
        [](const std::string&, const v1::DaemonMessage&) { return false; }, &store_,
        incidents_.get(), &timeline_);
    trainer_ = MakeRunner(kTrainer);
    engine_ = MakeRunner(kEngine);
    store_.agents()->Connected(kAgent);
    tick_.set_now_ns(SteadyNs());
    for (const int rank : {0, 1, 2, 3}) AddRank(rank);
  }

  std::unique_ptr<JobRunner> MakeRunner(const JobKey& job) {
    JobRunner::Parts parts{&store_, incidents_.get(), desk_.get(), &rates_, &counters_, &timeline_};
    parts.pairs = &pairs_;
    return std::make_unique<JobRunner>(job, parts, JobRunner::Options{Limits(), 0, 3600 * kSecond});
  }

  // The ranks of each job are 0 and 1. All but the last wait in the shared communicator's call.
  void AddRank(int rank) {
    v1::ProcessUpdate* process = tick_.add_processes();
    process->set_pid(4000 + rank);
    process->set_start_time(1);
    process->mutable_identity()->set_job(rank < 2 ? kTrainer.job : kEngine.job);
    process->mutable_identity()->set_global_rank(rank % 2);
    process->mutable_identity()->set_has_segment(true);
    process->mutable_identity()->set_started_ns(1);
    process->mutable_evidence()->set_liveness(v1::Evidence::ALIVE);
    v1::CommUpdate* comm = process->add_communicators();
    comm->set_id(kShared);
    comm->set_rank(rank);
    comm->set_size(4);
    comm->set_state(static_cast<uint32_t>(segment::CommState::kReady));
    comm->set_has_markers(true);
    comm->set_signature(segment::kSignatureSeed);
    comm->set_entered(rank == 3 ? 7 : 8);
    comm->set_started(rank == 3 ? 7 : 8);
    comm->set_finished(7);
    if (rank != 3) comm->set_waiting_since_ns(tick_.now_ns() - 30 * kSecond);
  }
  void FailLastRank() {
    v1::Evidence* failed = tick_.mutable_processes(3)->mutable_evidence();
    failed->set_error("ValueError: no weight at engine.py:5");
    failed->set_error_ns(tick_.now_ns());
  }
  void Apply() { store_.Apply(kAgent, tick_, timeline_.Now()); }

  static void Diagnose(JobRunner* runner) {
    runner->DiagnoseNext();
    runner->Run();
  }

  TemporaryTree tree_;
  Timeline timeline_;
  JobStore store_{"default"};
  JobPairs pairs_{&store_};
  CallRates rates_;
  DaemonCounters counters_;
  std::unique_ptr<IncidentBook> incidents_;
  std::unique_ptr<StackDesk> desk_;
  std::unique_ptr<JobRunner> trainer_, engine_;
  v1::Tick tick_;
};

TEST_F(JobPairsTest, TheJobThatFailedHasTheIncidentAndTheOtherRefersToIt) {
  FailLastRank();
  Apply();
  for (JobRunner* runner : {trainer_.get(), engine_.get(), trainer_.get()}) Diagnose(runner);
  EXPECT_FALSE(incidents_->reader().Brief(kTrainer).live.has_value());
  const JobBrief engine = incidents_->reader().Brief(kEngine);
  ASSERT_TRUE(engine.live.has_value());
  EXPECT_TRUE(absl::StrContains(engine.live->summary, "ValueError: no weight"));
  EXPECT_GT(engine.live->opened_ns, 0);
  EXPECT_TRUE(incidents_->reader().Brief(kTrainer).warnings.empty());
  const std::optional<Referral> referral = pairs_.ReferralOf(kTrainer);
  ASSERT_TRUE(referral.has_value());
  EXPECT_EQ(referral->teller, kEngine);
  EXPECT_TRUE(absl::StrContains(referral->summary, "ValueError: no weight"));
  EXPECT_FALSE(pairs_.ReferralOf(kEngine).has_value());
}

TEST_F(JobPairsTest, TheReferralEndsWithTheWait) {
  Apply();
  for (JobRunner* runner : {trainer_.get(), engine_.get(), trainer_.get()}) Diagnose(runner);
  ASSERT_TRUE(pairs_.ReferralOf(kTrainer).has_value());
  const uint64_t changes = pairs_.Changes(kTrainer);
  for (const int rank : {0, 1, 2, 3}) {
    v1::CommUpdate* comm = tick_.mutable_processes(rank)->mutable_communicators(0);
    comm->set_entered(8);
    comm->set_started(8);
    comm->set_finished(8);
    comm->clear_waiting_since_ns();
  }
  Apply();
  Diagnose(trainer_.get());
  EXPECT_FALSE(pairs_.ReferralOf(kTrainer).has_value());
  EXPECT_GT(pairs_.Changes(kTrainer), changes);
}

// No rank of it waits, so by itself it would never look.
TEST_F(JobPairsTest, AJobThatHoldsAnotherUpAndDoesNotWaitIsSummoned) {
  for (const int rank : {2, 3}) {
    v1::CommUpdate* comm = tick_.mutable_processes(rank)->mutable_communicators(0);
    comm->set_entered(7);
    comm->set_started(7);
    comm->clear_waiting_since_ns();
  }
  Apply();
  Diagnose(engine_.get());
  EXPECT_FALSE(incidents_->reader().Brief(kEngine).live.has_value());
  Diagnose(trainer_.get());
  EXPECT_TRUE(pairs_.IsSummoned(kEngine, timeline_.Now()));
  EXPECT_FALSE(pairs_.IsSummoned(kEngine, timeline_.Now() + 60 * kSecond));
  Diagnose(engine_.get());
  EXPECT_TRUE(incidents_->reader().Brief(kEngine).live.has_value());
  EXPECT_FALSE(incidents_->reader().Brief(kTrainer).live.has_value());
}

TEST_F(JobPairsTest, AJobOfAnotherTenantIsNotAPartner) {
  for (const int rank : {2, 3}) tick_.mutable_processes(rank)->mutable_identity()->set_tenant("b");
  Apply();
  EXPECT_FALSE(pairs_.Find(kTrainer, timeline_.Now()).has_value());
}

TEST_F(JobPairsTest, AJobWithoutASharedCommunicatorIsNotAPartner) {
  for (const int rank : {2, 3}) {
    tick_.mutable_processes(rank)->mutable_communicators(0)->set_id(kShared + 1);
  }
  Apply();
  EXPECT_FALSE(pairs_.Find(kTrainer, timeline_.Now()).has_value());
}

}  // namespace
}  // namespace rollcall
