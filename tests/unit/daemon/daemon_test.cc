// SPDX-License-Identifier: Apache-2.0
// The daemon with real agents, in one process: over the in-process channel and over TCP. The test
// writes the segments; their process is the test itself.
#include "daemon/daemon.h"

#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <spdlog/sinks/ostream_sink.h>
#include <spdlog/spdlog.h>
#include <sys/socket.h>
#include <unistd.h>

#include <filesystem>
#include <functional>
#include <sstream>
#include <thread>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "agent/collector/collector.h"
#include "agent/link/agent.h"
#include "agent/processes/proc_stat.h"
#include "base/log/limited_log.h"
#include "base/monotonic_clock.h"
#include "eventually.h"
#include "query_requests.h"
#include "rollcall/v1/agent.grpc.pb.h"
#include "rollcall/v1/query.grpc.pb.h"
#include "segment_builder.h"
#include "temporary_tree.h"

namespace rollcall {
namespace {

namespace fs = std::filesystem;

class DaemonTest : public testing::Test {
 protected:
  DaemonOptions Options() const {
    DaemonOptions options;
    options.limits = LimitsFor(60'000'000'000);
    options.report_dir = scratch_ / "reports";
    options.log_incidents = false;
    return options;
  }

  // Two ranks of this process with different counts in their third all-reduce.
  void WriteContradiction(const std::string& folder) {
    fs::create_directories(folder);
    SegmentBuilder segment;
    segment.BelongTo(getpid(), ReadProcStat("/proc", getpid())->start_time);
    strcpy(segment.header()->job, "<script>job");
    for (int rank : {0, 1, 2}) {
      const uint32_t comm = segment.AddComm(5, rank, 3);
      segment.AddAllReduce(comm, 5000);
      segment.AddAllReduce(comm, 6000);
      segment.AddAllReduce(comm, 7000, rank == 2 ? 4 : 8);
    }
    segment.Write(absl::StrCat(folder, "/", getpid(), "-", segment.header()->start_time, ".seg"));
  }

  AgentOptions AgentFor(const std::string& folder, const std::string& host = "node") const {
    AgentOptions options;
    options.collector.directory = folder;
    options.collector.discover_directory = folder;
    options.host = host;
    options.tick_ns = 20'000'000;
    return options;
  }

  const TemporaryTree tree_;
  const fs::path scratch_ = tree_.root();
};

std::shared_ptr<grpc::Channel> Dial(int port) {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  return grpc::CreateCustomChannel(absl::StrCat("127.0.0.1:", port),
                                   grpc::InsecureChannelCredentials(), arguments);
}

TEST_F(DaemonTest, AnAgentInTheSameProcessConnects) {
  const std::string folder = scratch_ / "segments";
  WriteContradiction(folder);
  Daemon daemon(Options());
  ASSERT_TRUE(daemon.Start().ok());
  Agent agent(AgentFor(folder), daemon.InProcessChannel());
  agent.Start();
  // A job is there a moment before its communicators.
  EXPECT_TRUE(Eventually([&] {
    const v1::StatusResponse status = StatusOf(daemon.queries());
    return status.jobs_size() == 1 && status.jobs(0).communicators_size() == 1 &&
           status.jobs(0).communicators(0).members() == 3;
  }));
  agent.Stop();
  daemon.Stop();
}

TEST_F(DaemonTest, ListsJobsWithAnOpenIncidentFirst) {
  const std::string folder = scratch_ / "segments";
  WriteContradiction(folder);
  Daemon daemon(Options());
  ASSERT_TRUE(daemon.Start().ok());
  Agent agent(AgentFor(folder), daemon.InProcessChannel());
  agent.Start();
  auto tick = std::make_shared<v1::Tick>();
  tick->set_now_ns(1);
  tick->set_whole(true);
  v1::ProcessUpdate* process = tick->add_processes();
  process->set_pid(1);
  process->set_start_time(1);
  process->mutable_identity()->set_job("0-healthy");
  daemon.agent_sink()->OnTick({"other", "other/1", 100'000'000, true}, tick, [] {});
  ASSERT_TRUE(Eventually([&] {
    return !daemon.GetIncidents("").empty() &&
           StatusOf(daemon.queries(), {}, false).jobs_size() == 2;
  }));
  JobSelector first;
  first.most = 1;
  const v1::StatusResponse page = StatusOf(daemon.queries(), first, false);
  ASSERT_EQ(page.jobs_size(), 1);
  EXPECT_NE(page.jobs(0).name(), "0-healthy");
  agent.Stop();
  daemon.Stop();
}

TEST_F(DaemonTest, AFloodOfOtherLinesHidesNoActionOfAnOperator) {
  const std::shared_ptr<spdlog::logger> before = spdlog::default_logger();
  std::ostringstream log;
  const auto stopped_clock = [] { return int64_t{1}; };  // the flood never ends
  spdlog::set_default_logger(std::make_shared<spdlog::logger>(
      "test", std::make_shared<LimitedSink>(
                  "test", std::make_shared<spdlog::sinks::ostream_sink_mt>(log), stopped_clock)));
  DaemonOptions options = Options();
  options.listen = "127.0.0.1:0";
  Daemon daemon(options);
  ASSERT_TRUE(daemon.Start().ok());
  for (int i = 0; i < 1000; ++i) spdlog::info("agent {} says something", i);
  const auto stub = v1::Query::NewStub(Dial(daemon.grpc_port()));
  grpc::ClientContext context;
  v1::TakeStacksRequest request;
  request.set_job("no-such-job");
  const auto stream = stub->TakeStacks(&context, request);
  EXPECT_EQ(stream->Finish().error_code(), grpc::StatusCode::NOT_FOUND);
  daemon.Stop();
  spdlog::set_default_logger(before);
  EXPECT_TRUE(absl::StrContains(log.str(), ": take stacks, job no-such-job")) << log.str();
}

TEST_F(DaemonTest, AnswersForOnePageOfTheJobs) {
  const std::string folder = scratch_ / "segments";
  WriteContradiction(folder);
  DaemonOptions options = Options();
  options.listen = "127.0.0.1:0";
  Daemon daemon(options);
  ASSERT_TRUE(daemon.Start().ok());
  Agent agent(AgentFor(folder), daemon.InProcessChannel());
  agent.Start();
  ASSERT_TRUE(Eventually([&] { return StatusOf(daemon.queries()).jobs_size() == 1; }));
  const auto stub = v1::Query::NewStub(Dial(daemon.grpc_port()));
  for (const int offset : {0, 1}) {
    grpc::ClientContext context;
    v1::StatusRequest request;
    request.set_offset(offset);
    request.set_limit(200);
    v1::StatusResponse response;
    ASSERT_TRUE(stub->GetStatus(&context, request, &response).ok());
    EXPECT_EQ(response.jobs_size(), 1 - offset);
    EXPECT_EQ(response.jobs_total(), 1);
  }
  agent.Stop();
  daemon.Stop();
}

TEST_F(DaemonTest, AContradictionBecomesAReport) {
  const std::string folder = scratch_ / "segments";
  WriteContradiction(folder);
  Daemon daemon(Options());
  ASSERT_TRUE(daemon.Start().ok());
  Agent agent(AgentFor(folder), daemon.InProcessChannel());
  agent.Start();
  ASSERT_TRUE(Eventually([&] {
    const auto incidents = daemon.GetIncidents("");
    return incidents.size() == 1 && !incidents[0].report_path().empty();
  }));
  const v1::Incident incident = daemon.GetIncidents("")[0];
  EXPECT_EQ(incident.verdicts(0).cause(), "argument_mismatch");
  EXPECT_EQ(incident.verdicts(0).culprits(0).rank(), 2);
  EXPECT_EQ(incident.verdicts(0).call().position(), 2);
  EXPECT_TRUE(fs::exists(incident.report_path() + "/incident.json"));
}

TEST_F(DaemonTest, ARestartedDaemonHasTheWholeStateAgain) {
  const std::string folder = scratch_ / "segments";
  WriteContradiction(folder);
  DaemonOptions options = Options();
  options.listen = "127.0.0.1:0";
  auto daemon = std::make_unique<Daemon>(options);
  ASSERT_TRUE(daemon->Start().ok());
  const int port = daemon->grpc_port();
  Agent agent(AgentFor(folder), Dial(port));
  agent.Start();
  ASSERT_TRUE(Eventually([&] { return StatusOf(daemon->queries()).jobs_size() == 1; }));
  daemon->Stop();
  options.listen = absl::StrCat("127.0.0.1:", port);
  daemon = std::make_unique<Daemon>(options);
  ASSERT_TRUE(daemon->Start().ok());
  // A job is there a moment before its communicators.
  EXPECT_TRUE(Eventually([&] {
    const v1::StatusResponse status = StatusOf(daemon->queries());
    return status.jobs_size() == 1 && status.jobs(0).communicators_size() == 1 &&
           status.jobs(0).communicators(0).position_max() == 3;
  }));
  agent.Stop();
}

TEST_F(DaemonTest, TwoAgentsMakeOneJob) {
  Daemon daemon(Options());
  ASSERT_TRUE(daemon.Start().ok());
  std::vector<std::unique_ptr<Agent>> agents;
  for (const char* host : {"one", "two"}) {
    const std::string folder = scratch_ / host;
    WriteContradiction(folder);
    agents.push_back(std::make_unique<Agent>(AgentFor(folder, host), daemon.InProcessChannel()));
    agents.back()->Start();
  }
  EXPECT_TRUE(Eventually([&] {
    const v1::StatusResponse status = StatusOf(daemon.queries());
    return status.jobs_size() == 1 && status.jobs(0).hosts_size() == 2;
  }));
  EXPECT_EQ(StatusOf(daemon.queries()).agents(), 2);
}

TEST_F(DaemonTest, ReportsAPortThatIsInUse) {
  DaemonOptions options = Options();
  options.listen = "127.0.0.1:0";
  Daemon first(options);
  ASSERT_TRUE(first.Start().ok());
  options.listen = absl::StrCat("127.0.0.1:", first.grpc_port());
  Daemon second(options);
  const absl::Status status = second.Start();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_TRUE(absl::StrContains(std::string(status.message()), options.listen));
}

v1::AgentMessage Hello(uint32_t protocol) {
  v1::AgentMessage message;
  message.mutable_hello()->set_protocol(protocol);
  message.mutable_hello()->set_host("node");
  return message;
}

TEST_F(DaemonTest, AnAgentOfAnotherProtocolIsRefused) {
  Daemon daemon(Options());
  ASSERT_TRUE(daemon.Start().ok());
  const auto stub = v1::AgentLink::NewStub(daemon.InProcessChannel());
  grpc::ClientContext context;
  const auto stream = stub->Connect(&context);
  stream->Write(Hello(99));
  v1::DaemonMessage answer;
  EXPECT_FALSE(stream->Read(&answer));
  EXPECT_EQ(stream->Finish().error_code(), grpc::StatusCode::FAILED_PRECONDITION);
}

TEST_F(DaemonTest, TheWelcomeAllowsShortColumns) {
  Daemon daemon(Options());
  ASSERT_TRUE(daemon.Start().ok());
  const auto stub = v1::AgentLink::NewStub(daemon.InProcessChannel());
  grpc::ClientContext context;
  const auto stream = stub->Connect(&context);
  stream->Write(Hello(1));
  v1::DaemonMessage answer;
  ASSERT_TRUE(stream->Read(&answer));
  EXPECT_TRUE(answer.welcome().reads_short_columns());
  context.TryCancel();
  stream->Finish();
}

bool MetricsHave(const Daemon& daemon, const std::string& line) {
  return absl::StrContains(daemon.queries().GetMetrics(false, {}), line + "\n");
}

TEST_F(DaemonTest, CountsTheSegmentsThatAnAgentLeavesOut) {
  Daemon daemon(Options());
  ASSERT_TRUE(daemon.Start().ok());
  const auto stub = v1::AgentLink::NewStub(daemon.InProcessChannel());
  grpc::ClientContext context;
  const auto stream = stub->Connect(&context);
  stream->Write(Hello(1));
  v1::AgentMessage message;
  message.mutable_tick()->set_left_out_segments(3);
  stream->Write(message);
  EXPECT_TRUE(Eventually(
      [&] { return MetricsHave(daemon, "rollcall_daemon_dropped_total{what=\"segments\"} 3"); }));
  context.TryCancel();
  stream->Finish();
}

// The daemon remembers 64 runs of agents of one host that have ended.
TEST_F(DaemonTest, CountsTheRunsOfAgentsThatItForgets) {
  Daemon daemon(Options());
  ASSERT_TRUE(daemon.Start().ok());
  const auto stub = v1::AgentLink::NewStub(daemon.InProcessChannel());
  for (int run = 0; run < 66; ++run) {
    grpc::ClientContext context;
    const auto stream = stub->Connect(&context);
    v1::AgentMessage hello = Hello(1);
    hello.mutable_hello()->set_agent_id(absl::StrCat("node/", run));
    stream->Write(hello);
    v1::DaemonMessage answer;
    ASSERT_TRUE(stream->Read(&answer));
    stream->WritesDone();
    stream->Finish();
  }
  EXPECT_TRUE(Eventually(
      [&] { return MetricsHave(daemon, "rollcall_daemon_dropped_total{what=\"hosts\"} 2"); }));
}

TEST_F(DaemonTest, AnAgentMayStartBeforeItsDaemon) {
  DaemonOptions options = Options();
  options.listen = "127.0.0.1:0";
  auto daemon = std::make_unique<Daemon>(options);
  ASSERT_TRUE(daemon->Start().ok());
  options.listen = absl::StrCat("127.0.0.1:", daemon->grpc_port());
  daemon.reset();  // the port is free, and no daemon listens there
  const std::string folder = scratch_ / "segments";
  WriteContradiction(folder);
  Agent agent(AgentFor(folder),
              grpc::CreateChannel(options.listen, grpc::InsecureChannelCredentials()));
  agent.Start();
  daemon = std::make_unique<Daemon>(options);
  ASSERT_TRUE(daemon->Start().ok());
  EXPECT_TRUE(Eventually([&] { return StatusOf(daemon->queries()).jobs_size() == 1; }));
  agent.Stop();
}

TEST_F(DaemonTest, ARestartedAgentAddsNothingTwice) {
  const std::string folder = scratch_ / "segments";
  WriteContradiction(folder);
  Daemon daemon(Options());
  ASSERT_TRUE(daemon.Start().ok());
  for (int i = 0; i < 2; ++i) {
    Agent agent(AgentFor(folder), daemon.InProcessChannel());
    agent.Start();
    ASSERT_TRUE(Eventually([&] {
      return StatusOf(daemon.queries()).agents() == 1 && !daemon.GetIncidents("").empty();
    }));
    agent.Stop();
    ASSERT_TRUE(Eventually([&] { return StatusOf(daemon.queries()).agents() == 0; }));
  }
  EXPECT_EQ(StatusOf(daemon.queries()).jobs(0).processes(), 1);
  EXPECT_EQ(daemon.GetIncidents("").size(), 1u);
}

TEST_F(DaemonTest, AStoppingAgentSendsItsWholeState) {
  const std::string folder = scratch_ / "segments";
  WriteContradiction(folder);
  Daemon daemon(Options());
  ASSERT_TRUE(daemon.Start().ok());
  Agent agent(AgentFor(folder), daemon.InProcessChannel());
  agent.Start();
  agent.Stop();
  daemon.Stop();
  EXPECT_EQ(StatusOf(daemon.queries()).jobs_size(), 1);
  EXPECT_EQ(daemon.GetIncidents("").size(), 1u);
}

// The first report waits for stacks, which do not come any more.
TEST_F(DaemonTest, AHangFoundAtTheLastMomentHasItsReport) {
  const std::string folder = scratch_ / "segments";
  WriteContradiction(folder);
  Daemon daemon(Options());
  ASSERT_TRUE(daemon.Start().ok());
  Collector collector(AgentFor(folder).collector);
  const auto stub = v1::AgentLink::NewStub(daemon.InProcessChannel());
  grpc::ClientContext context;
  const auto stream = stub->Connect(&context);
  v1::AgentMessage message;
  message.mutable_hello()->set_protocol(1);
  message.mutable_hello()->set_host("node");
  stream->Write(message);
  *message.mutable_tick() = collector.Collect(UnixNs(), true);
  stream->Write(message);
  ASSERT_TRUE(Eventually([&] { return daemon.GetIncidents("").size() == 1; }));
  daemon.Stop();
  ASSERT_EQ(daemon.GetIncidents("").size(), 1u);
  EXPECT_TRUE(fs::exists(daemon.GetIncidents("")[0].report_path() + "/incident.json"));
}

TEST_F(DaemonTest, ReportsAPagePortThatIsInUse) {
  DaemonOptions options = Options();
  options.http = "127.0.0.1:0";
  Daemon first(options);
  ASSERT_TRUE(first.Start().ok());
  options.http = first.http_address();
  Daemon second(options);
  const absl::Status status = second.Start();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_TRUE(absl::StrContains(std::string(status.message()), options.http));
}

}  // namespace
}  // namespace rollcall
