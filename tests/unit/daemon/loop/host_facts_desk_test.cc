// SPDX-License-Identifier: Apache-2.0
// Which agents are asked for facts about their hosts, and what becomes of the answers.
#include "daemon/loop/host_facts_desk.h"

#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <memory>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/durations.h"
#include "base/steady_clock.h"
#include "daemon/loop/job_runner.h"
#include "daemon/loop/stack_desk.h"
#include "eventually.h"
#include "interpose/segment.h"
#include "rollcall/v1/agent.pb.h"
#include "temporary_tree.h"

namespace rollcall {
namespace {

const JobKey kJob("job");

AgentName AgentOf(int host) {
  return {absl::StrCat("node-", host), absl::StrCat("node-", host, "/1"), 100'000'000, true};
}

// The rank of this host. In a hang rank 1 has not entered the call that rank 0 waits in.
v1::Tick TickOf(int rank, bool hangs) {
  v1::Tick tick;
  tick.set_now_ns(SteadyNs());
  v1::ProcessUpdate* process = tick.add_processes();
  process->set_pid(4000 + rank);
  process->set_start_time(1);
  process->mutable_identity()->set_job(kJob.job);
  process->mutable_identity()->set_global_rank(rank);
  process->mutable_identity()->set_has_segment(true);
  process->mutable_identity()->set_started_ns(1);
  process->mutable_evidence()->set_liveness(v1::Evidence::ALIVE);
  v1::CommUpdate* comm = process->add_communicators();
  comm->set_id(5);
  comm->set_rank(rank);
  comm->set_size(2);
  comm->set_state(static_cast<uint32_t>(segment::CommState::kReady));
  comm->set_has_markers(true);
  comm->set_entered(hangs && rank == 0 ? 8 : 7);
  comm->set_started(comm->entered());
  comm->set_finished(7);
  comm->set_signature(segment::kSignatureSeed);
  if (hangs && rank == 0) comm->set_waiting_since_ns(tick.now_ns() - 20 * kSecond);
  return tick;
}

// The parts of a daemon that ask for facts. The test is the agents.
class HostFactsDeskTest : public testing::Test {
 protected:
  void SetUp() override {
    IncidentBookOptions options;
    options.report_dir = tree_.root();
    options.log_incidents = false;
    incidents_ = std::make_unique<IncidentBook>(options, &timeline_);
    ASSERT_TRUE(incidents_->Start().ok());
    stacks_ = std::make_unique<StackDesk>(
        [](const std::string&, const v1::DaemonMessage&) { return true; }, &store_,
        incidents_.get(), &timeline_);
    desk_ = std::make_unique<HostFactsDesk>(
        [this](const std::string& agent, const v1::DaemonMessage& message) {
          asked_.emplace_back(agent, message.gather_host_facts());
          return true;
        },
        &store_, incidents_.get(), &counters_, &timeline_);
    runner_ =
        std::make_unique<JobRunner>(kJob,
                                    JobRunner::Parts{&store_, incidents_.get(), stacks_.get(),
                                                     &rates_, &counters_, &timeline_, desk_.get()},
                                    JobRunner::Options{Limits(), 0, 3600 * kSecond});
    for (const int host : {0, 1}) store_.agents()->Connected(AgentOf(host));
  }
  void TearDown() override {
    runner_.reset();
    incidents_.reset();
    EXPECT_TRUE(Eventually([] { return live_loose_threads.load() == 0; }));
  }

  void Run(bool hangs, int times = 5) {
    for (int i = 0; i < times; ++i) {
      for (const int rank : {0, 1}) {
        store_.Apply(AgentOf(rank), TickOf(rank, hangs), timeline_.Now());
      }
      runner_->DiagnoseNext();
      runner_->Run();
    }
  }

  static v1::HostFactsReply Reply(uint64_t request) {
    v1::HostFactsReply reply;
    reply.set_request(request);
    v1::HostFact* fact = reply.mutable_facts()->add_facts();
    fact->set_kind("link_down");
    fact->set_subject("mlx5_2 port 1");
    fact->set_age_seconds(23);
    v1::HostProbe* probe = reply.mutable_facts()->add_probes();
    probe->set_name("kernel_log");
    probe->set_outcome("ok");
    return reply;
  }

  v1::Incident TheIncident() const {
    const auto all = incidents_->reader().All("");
    return all.empty() ? v1::Incident() : all.back();
  }

  uint64_t CountDropped() const {
    return counters_.Get().dropped[static_cast<size_t>(Dropped::kHostFacts)];
  }

  TemporaryTree tree_;
  Timeline timeline_;
  JobStore store_{"default"};
  CallRates rates_;
  DaemonCounters counters_;
  std::unique_ptr<IncidentBook> incidents_;
  std::unique_ptr<StackDesk> stacks_;
  std::unique_ptr<HostFactsDesk> desk_;
  std::unique_ptr<JobRunner> runner_;
  std::vector<std::pair<std::string, v1::GatherHostFacts>> asked_;
};

TEST_F(HostFactsDeskTest, AsksNoProcessAboutAHealthyJob) {
  Run(false, 20);
  EXPECT_TRUE(asked_.empty());
}

TEST_F(HostFactsDeskTest, EachHostOfASuspectedHangIsAskedOnce) {
  Run(true, 20);
  ASSERT_EQ(asked_.size(), 2u);
  EXPECT_EQ(asked_[0].first, "node-0/1");
  EXPECT_EQ(asked_[1].first, "node-1/1");
  ASSERT_EQ(asked_[1].second.processes_size(), 1);
  EXPECT_EQ(asked_[1].second.processes(0).pid(), 4001);
}

// A switch has failed, and hundreds of jobs ask at once.
TEST_F(HostFactsDeskTest, RequestsOfOtherJobsDoNotEndThoseOfThisOne) {
  Run(true);
  ASSERT_EQ(asked_.size(), 2u);
  const uint64_t mine = asked_[1].second.request();
  for (int i = 0; i < 500; ++i) {
    HostFactsRequest request;
    request.job = JobKey(absl::StrCat("job-", i));
    request.incident = absl::StrCat("job-", i, "-1");
    request.agents["node-7/1"] = {};
    desk_->Request(request);
  }
  desk_->OnReply(AgentOf(1), Reply(mine));
  EXPECT_EQ(TheIncident().host_facts_size(), 1);
  EXPECT_EQ(CountDropped(), 0u);
}

TEST_F(HostFactsDeskTest, BeyondTheLimitOfAnIncidentTheOldestRequestIsDroppedAndCounted) {
  HostFactsRequest request;
  request.job = kJob;
  request.incident = "job-1";
  request.agents["node-0/1"] = {};
  for (size_t i = 0; i < HostFactsDesk::kOfIncident; ++i) desk_->Request(request);
  EXPECT_EQ(CountDropped(), 0u);
  desk_->Request(request);
  desk_->Request(request);
  EXPECT_EQ(CountDropped(), 2u);
}

TEST_F(HostFactsDeskTest, BeyondTheLimitOfAllTheOldestRequestIsDroppedAndCounted) {
  for (size_t i = 0; i <= HostFactsDesk::kKept; ++i) {
    HostFactsRequest request;
    request.incident = absl::StrCat("job-", i);
    request.agents["node-0/1"] = {};
    desk_->Request(request);
  }
  EXPECT_EQ(CountDropped(), 1u);
}

TEST_F(HostFactsDeskTest, AnIncidentHasNoMessagesAboutTheProcessesOfOthers) {
  Run(true);
  ASSERT_EQ(asked_.size(), 2u);
  v1::HostFactsReply reply = Reply(asked_[1].second.request());
  for (const int32_t pid : {4001, 77}) {
    v1::HostFact* fact = reply.mutable_facts()->add_facts();
    fact->set_kind("oom_kill");
    fact->set_text(absl::StrCat("Memory cgroup out of memory: Killed process ", pid, " (secret)"));
    fact->set_pid(pid);
  }
  desk_->OnReply(AgentOf(1), reply);
  Run(true);
  const v1::Incident incident = TheIncident();
  ASSERT_EQ(incident.host_facts_size(), 1);
  ASSERT_EQ(incident.host_facts(0).facts_size(), 2);
  EXPECT_EQ(incident.host_facts(0).facts(1).pid(), 4001);
  EXPECT_EQ(store_.Get(kJob).host_facts.at("node-1").facts.size(), 2u);
}

TEST_F(HostFactsDeskTest, AnAnswerReachesTheIncidentAndItsVerdict) {
  Run(true);
  ASSERT_EQ(asked_.size(), 2u);
  desk_->OnReply(AgentOf(1), Reply(asked_[1].second.request()));
  Run(true);
  const v1::Incident incident = TheIncident();
  ASSERT_EQ(incident.host_facts_size(), 1);
  EXPECT_EQ(incident.host_facts_total(), 1);
  EXPECT_EQ(incident.host_facts(0).host(), "node-1") << "the agent's, whatever the answer says";
  EXPECT_TRUE(incident.host_facts(0).has_gathered_at());
  ASSERT_EQ(incident.host_facts(0).facts_size(), 1);
  EXPECT_NEAR(incident.host_facts(0).facts(0).age_seconds(), 23, 1);
  bool is_said = false;
  for (const std::string& line : incident.verdicts(0).evidence()) {
    is_said = is_said || line.rfind("node-1: mlx5_2 port 1 went DOWN", 0) == 0;
  }
  EXPECT_TRUE(is_said) << incident.verdicts(0).DebugString();
}

TEST_F(HostFactsDeskTest, UnrequestedAnswersAreIgnored) {
  Run(true);
  ASSERT_EQ(asked_.size(), 2u);
  const uint64_t request = asked_[0].second.request();
  desk_->OnReply({"node-1", "a stranger", 100'000'000, true}, Reply(request));
  desk_->OnReply(AgentOf(1), Reply(request + 1));
  EXPECT_EQ(TheIncident().host_facts_size(), 0);
  desk_->OnReply(AgentOf(1), Reply(request));
  v1::HostFactsReply second = Reply(request);
  second.mutable_facts()->mutable_facts(0)->set_subject("another");
  desk_->OnReply(AgentOf(1), second);
  ASSERT_EQ(TheIncident().host_facts_size(), 1);
  EXPECT_EQ(TheIncident().host_facts(0).facts(0).subject(), "mlx5_2 port 1");
}

// An agent of an earlier release never answers. The daemon's memory does not wait for it for ever.
TEST_F(HostFactsDeskTest, ARequestIsClosedAfterTenMinutes) {
  Run(true);
  ASSERT_EQ(asked_.size(), 2u);
  const int64_t steady_ns = SteadyNs();
  for (int second = 0; second < 500; ++second) timeline_.At(steady_ns + second * kSecond);
  desk_->OnReply(AgentOf(0), Reply(asked_[0].second.request()));
  EXPECT_EQ(TheIncident().host_facts_size(), 1);
  for (int second = 500; second < 700; ++second) timeline_.At(steady_ns + second * kSecond);
  desk_->OnReply(AgentOf(1), Reply(asked_[1].second.request()));
  EXPECT_EQ(TheIncident().host_facts_size(), 1);
}

TEST_F(HostFactsDeskTest, AHostileAnswerIsCut) {
  Run(true);
  ASSERT_EQ(asked_.size(), 2u);
  v1::HostFactsReply reply;
  reply.set_request(asked_[0].second.request());
  for (int i = 0; i < 5000; ++i) {
    v1::HostFact* fact = reply.mutable_facts()->add_facts();
    fact->set_kind(i % 2 == 0 ? "xid" : "a kind of the future");
    fact->set_subject(std::string(10'000, 'x'));
    fact->set_value(std::numeric_limits<double>::quiet_NaN());
    fact->set_age_seconds(-1e300);
    fact->set_pid(-1);
    reply.mutable_facts()->add_probes()->set_name(std::string(10'000, 'y'));
  }
  desk_->OnReply(AgentOf(0), reply);
  Run(true);
  const JobState state = store_.Get(kJob);
  const HostFacts& kept = state.host_facts.at("node-0");
  EXPECT_EQ(kept.facts.size(), kMostHostFacts);
  EXPECT_EQ(kept.probes.size(), kMostHostProbes);
  EXPECT_LE(kept.facts[0].subject.size(), kMostFactText);
  EXPECT_EQ(kept.facts[0].at_ns, 0);
  EXPECT_EQ(kept.facts[0].pid, 0);
  EXPECT_LE(TheIncident().host_facts(0).facts_size(), 32);
}

TEST(HostFactsWatchTest, AnIncidentAsksForAtMostAThousandHosts) {
  JobState state;
  state.key = kJob;
  std::vector<int32_t> all;
  for (int i = 0; i < 5000; ++i) {
    AgentState agent;
    agent.id = absl::StrCat("agent-", i);
    state.agents.push_back(agent);
    Process process;
    process.host = absl::StrCat("node-", i);
    process.pid = 1;
    process.agent = i;
    state.processes.push_back(process);
    all.push_back(i);
  }
  HostFactsWatch watch;
  EXPECT_TRUE(watch.Next(state, "", all).agents.empty());
  EXPECT_EQ(watch.Next(state, "job-1", all).agents.size(), limits::kHostsWithFacts);
  EXPECT_TRUE(watch.Next(state, "job-1", all).agents.empty());
  EXPECT_EQ(watch.Next(state, "job-2", all).agents.size(), limits::kHostsWithFacts);
}

TEST(HostFactsWatchTest, ASilentAgentIsNotAsked) {
  JobState state;
  state.agents.resize(1);
  state.agents[0].id = "agent";
  state.agents[0].silent = true;
  state.processes.resize(1);
  state.processes[0].agent = 0;
  EXPECT_TRUE(HostFactsWatch().Next(state, "job-1", {0}).agents.empty());
}

}  // namespace
}  // namespace rollcall
