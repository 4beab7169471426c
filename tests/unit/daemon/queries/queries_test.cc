// SPDX-License-Identifier: Apache-2.0
// What an agent may list: the jobs of its hosts and tenants, their incidents and attempts. Which
// jobs a viewer finds by a host.
#include "daemon/queries/queries.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "daemon/agents/agent_service.h"
#include "daemon/jobs/call_rate.h"
#include "eventually.h"
#include "query_requests.h"
#include "rollcall/v1/agent.pb.h"
#include "security/identity.h"

namespace rollcall {
namespace {

// An agent reports one process of a job.
struct Report {
  std::string host, job;
  int32_t attempt = 0;
};

class QueriesTest : public testing::Test {
 protected:
  void SetUp() override {
    IncidentBookOptions options;
    options.log_incidents = false;
    incidents_ = std::make_unique<IncidentBook>(options, &timeline_);
    ASSERT_TRUE(incidents_->Start().ok());
    Queries::Parts parts = {};
    parts.store = &store_;
    parts.incidents = incidents_.get();
    parts.agents = &agents_;
    parts.rates = &rates_;
    parts.past = &past_;
    parts.timeline = &timeline_;
    parts.pairs = &pairs_;
    queries_ = std::make_unique<Queries>(parts);
    Identity agent;
    agent.name = "token agent";
    agent.roles = {Role::kAgent};
    agent.hosts = {"node"};
    agent.tenants = {kDefaultTenant};
    by_agent_ = queries_->SeenByAgent(agent);
  }

  void Take(const Report& report) {
    v1::Tick tick;
    v1::ProcessUpdate* process = tick.add_processes();
    process->set_pid(++last_pid_);
    process->set_start_time(1);
    process->mutable_identity()->set_job(report.job);
    process->mutable_identity()->set_global_rank(last_pid_);  // no two take one rank
    process->mutable_identity()->set_has_segment(true);
    process->mutable_identity()->set_attempt(report.attempt);
    process->mutable_identity()->set_restarts("TORCHELASTIC_RESTART_COUNT=" +
                                              std::to_string(report.attempt));
    store_.Apply(AgentName{report.host, report.host + "/1", 0, true}, tick, timeline_.Now());
  }

  void Hang(const std::string& job) {
    Verdict verdict;
    verdict.cause = Cause::kMissingRank;
    verdict.at_once = true;
    verdict.summary = "rank 1 is late";
    verdict.waiting_processes = {0};
    incidents_->Apply(store_.Get(JobKey(job)), {verdict}, timeline_.Now());
  }

  static std::vector<std::string> JobsOf(const QuerySource& queries, const std::string& job) {
    v1::ListIncidentsRequest request;
    request.set_job(job);
    const auto list = queries.ListIncidents(request);
    std::vector<std::string> jobs;
    if (!list.ok()) return {std::string(list.status().message())};
    for (const v1::Incident& incident : list->incidents()) jobs.push_back(incident.job());
    EXPECT_EQ(list->total(), list->incidents_size());
    return jobs;
  }

  static std::vector<std::string> JobsOn(const QuerySource& queries, const std::string& host) {
    JobSelector selector;
    selector.host = host;
    const v1::StatusResponse status = StatusOf(queries, selector, false);
    std::vector<std::string> jobs;
    for (const v1::JobStatus& job : status.jobs()) {
      jobs.push_back(absl::StrCat(job.name(), " ", job.attempt()));
    }
    EXPECT_EQ(status.jobs_total(), status.jobs_size());
    return jobs;
  }

  static int CountAttempts(const QuerySource& queries, const std::string& job) {
    JobSelector selector;
    selector.job = job;
    const v1::StatusResponse status = StatusOf(queries, selector, false);
    return status.jobs_size() == 1 ? status.jobs(0).attempts_size() : -1;
  }

  const AllThreadsEnd threads_;
  Timeline timeline_;
  JobStore store_{"default"};
  JobPairs pairs_{&store_};
  CallRates rates_;
  PastViews past_;
  AgentService agents_{nullptr};  // no client connects
  std::unique_ptr<IncidentBook> incidents_;
  std::unique_ptr<Queries> queries_;
  std::unique_ptr<QuerySource> by_agent_;
  int32_t last_pid_ = 0;
};

using Jobs = std::vector<std::string>;

TEST_F(QueriesTest, AnAgentListsIncidentsOfTheJobsOnItsHostsOnly) {
  Take({"node", "ours"});
  Take({"other", "elsewhere"});
  for (const char* job : {"ours", "elsewhere"}) Hang(job);
  ASSERT_EQ(JobsOf(*queries_, "").size(), 2u);
  EXPECT_EQ(JobsOf(*by_agent_, ""), Jobs{"ours"});
  EXPECT_EQ(JobsOf(*by_agent_, "ours"), Jobs{"ours"});
  EXPECT_EQ(JobsOf(*by_agent_, "elsewhere"), Jobs{});
}

TEST_F(QueriesTest, AnAgentSeesNoAttemptThatRanOnOtherHosts) {
  Take({"other", "train", 0});
  Take({"node", "train", 1});
  EXPECT_EQ(CountAttempts(*queries_, "train"), 1);
  EXPECT_EQ(CountAttempts(*by_agent_, "train"), 0);
}

TEST_F(QueriesTest, AHostHasTheJobsWithAProcessOnIt) {
  Take({"node-17", "train"});
  Take({"node-18", "train"});
  Take({"node-18", "other"});
  EXPECT_EQ(JobsOn(*queries_, "node-17"), Jobs{"train 0"});
  EXPECT_EQ(JobsOn(*queries_, "node-18"), (Jobs{"other 0", "train 0"}));
  EXPECT_EQ(JobsOn(*queries_, "node-1"), Jobs{});
}

TEST_F(QueriesTest, AHostHasTheNewestAttemptThatRanOnIt) {
  Take({"node-17", "train", 0});
  Take({"node-17", "train", 1});
  Take({"node-18", "train", 2});
  EXPECT_EQ(JobsOn(*queries_, "node-17"), Jobs{"train 1"});
}

TEST_F(QueriesTest, AViewerFindsOnlyTheJobsOfItsTenantsByAHost) {
  Take({"node-17", "train"});
  EXPECT_EQ(JobsOn(*queries_->SeenBy(Tenants::Only({kDefaultTenant})), "node-17"), Jobs{"train 0"});
  EXPECT_EQ(JobsOn(*queries_->SeenBy(Tenants::Only({"team-a"})), "node-17"), Jobs{});
}

TEST_F(QueriesTest, AJobWithoutTheCommunicatorSaysWhichIsMissing) {
  Take({"node-17", "train"});
  v1::CommunicatorRequest request;
  request.set_job("train");
  request.set_id("a91f");
  const auto view = queries_->GetCommunicator(request);
  EXPECT_TRUE(absl::IsNotFound(view.status()));
  EXPECT_NE(view.status().message().find("\"a91f\""), std::string::npos);
  EXPECT_TRUE(absl::IsNotFound(
      queries_->SeenBy(Tenants::Only({"team-a"}))->GetCommunicator(request).status()));
}

TEST_F(QueriesTest, AJobThatWaitsForAnotherOneRefersToItsIncident) {
  Take({"node", "trainer"});
  Take({"node", "engine"});
  const uint64_t version = queries_->Version("trainer");
  pairs_.SetReferral(JobKey("trainer"), Referral{JobKey("engine"), "it waits"});
  EXPECT_NE(queries_->Version("trainer"), version);
  JobSelector trainer;
  trainer.job = "trainer";
  v1::WaitedJob engine = StatusOf(*queries_, trainer, false).jobs(0).waits_for();
  EXPECT_EQ(engine.job(), "engine");
  EXPECT_EQ(engine.incident(), "");
  EXPECT_EQ(engine.summary(), "it waits");
  Hang("engine");
  engine = StatusOf(*queries_, trainer, false).jobs(0).waits_for();
  EXPECT_EQ(engine.incident(), "engine-1");
  EXPECT_NE(engine.summary(), "it waits");
  pairs_.SetReferral(JobKey("trainer"), std::nullopt);
  EXPECT_FALSE(StatusOf(*queries_, trainer, false).jobs(0).has_waits_for());
}

TEST_F(QueriesTest, AKeptStateLeadsToTheAttemptsThatCameLater) {
  Take({"node", "train", 0});
  JobSelector first;
  first.job = "train";
  first.attempt = 0;
  const int64_t wall_ns = timeline_.ToWallTime(timeline_.Now());
  const auto before = JobOf(*queries_, first);
  ASSERT_TRUE(before.ok());
  past_.Add(JobKey("train", 0), wall_ns, *before);
  Take({"node", "train", 1});
  first.at_ns = wall_ns;
  const auto kept = JobOf(*queries_, first);
  ASSERT_TRUE(kept.ok());
  EXPECT_TRUE(kept->is_kept());
  EXPECT_EQ(kept->status().attempts_size(), 1);
}

TEST_F(QueriesTest, AMomentOfTheFutureIsAnError) {
  Take({"node", "train"});
  JobSelector selector;
  selector.job = "train";
  selector.at_ns = timeline_.ToWallTime(timeline_.Now()) + int64_t{3600} * 1'000'000'000;
  const auto view = JobOf(*queries_, selector);
  EXPECT_TRUE(absl::IsInvalidArgument(view.status())) << view.status();
}

}  // namespace
}  // namespace rollcall
