// SPDX-License-Identifier: Apache-2.0
// The HTTP side of a real daemon, with a real client.
#include "daemon/web/http.h"

#include <gmock/gmock.h>
#include <google/protobuf/util/json_util.h>
#include <gtest/gtest.h>
#include <httplib.h>
#include <unistd.h>

#include <filesystem>
#include <future>
#include <thread>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "agent/link/agent.h"
#include "agent/processes/proc_stat.h"
#include "base/clean_text.h"
#include "daemon/daemon.h"
#include "daemon/web/http_api.h"
#include "eventually.h"
#include "segment_builder.h"

namespace rollcall {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::Not;

constexpr char kHostileJob[] = "<script>job</script>/a b";

// A daemon, an agent, and a job of three ranks with different third calls.
class HttpTest : public testing::Test {
 protected:
  void Start(const std::string& token = "") {
    char path[] = "/tmp/rollcall-http-XXXXXX";
    ASSERT_NE(mkdtemp(path), nullptr);
    scratch_ = path;
    WriteSegment();
    DaemonOptions options;
    options.limits = LimitsFor(60'000'000'000);
    options.report_dir = scratch_ / "reports";
    options.log_incidents = false;
    options.http = "127.0.0.1:0";
    options.http_token = token;
    daemon_ = std::make_unique<Daemon>(options);
    ASSERT_TRUE(daemon_->Start().ok());
    AgentOptions agent;
    agent.collector.directory = agent.collector.discover_directory = scratch_ / "segments";
    agent.host = "node";
    agent.tick_ns = 20'000'000;
    agent_ = std::make_unique<Agent>(agent, daemon_->InProcessChannel());
    agent_->Start();
    ASSERT_TRUE(Eventually([&] { return !daemon_->GetIncidents("").empty(); }));
    client_ = std::make_unique<httplib::Client>("http://" + daemon_->http_address());
  }

  void TearDown() override {
    if (agent_ != nullptr) agent_->Stop();
    agent_.reset();
    daemon_.reset();
    fs::remove_all(scratch_);
  }

  void WriteSegment() const {
    fs::create_directories(scratch_ / "segments");
    SegmentBuilder segment;
    segment.BelongTo(getpid(), ReadProcStat("/proc", getpid())->start_time);
    strcpy(segment.header()->job, kHostileJob);
    for (int rank : {0, 1, 2}) {
      const uint32_t comm = segment.AddComm(5, rank, 3);
      segment.AddAllReduce(comm, 5000);
      segment.AddAllReduce(comm, 6000);
      segment.AddAllReduce(comm, 7000, rank == 2 ? 4 : 8);
    }
    segment.Write(absl::StrCat(std::string(scratch_ / "segments"), "/", getpid(), "-",
                               segment.header()->start_time, ".seg"));
  }

  httplib::Result Get(const std::string& path, const httplib::Params& parameters = {},
                      const httplib::Headers& headers = {}) {
    return client_->Get(path, parameters, headers);
  }
  template <typename Message>
  Message Ask(const std::string& path, const httplib::Params& parameters = {}) {
    Message message;
    const auto answer = Get(path, parameters);
    EXPECT_TRUE(answer) << path;
    if (!answer) return message;
    EXPECT_EQ(answer->status, 200) << answer->body;
    EXPECT_TRUE(google::protobuf::util::JsonStringToMessage(answer->body, &message).ok())
        << answer->body;
    return message;
  }

  fs::path scratch_;
  std::unique_ptr<Daemon> daemon_;
  std::unique_ptr<Agent> agent_;
  std::unique_ptr<httplib::Client> client_;
};

TEST_F(HttpTest, AnswersForScriptsAreTheMessagesOfTheQueryService) {
  Start();
  EXPECT_EQ(Ask<v1::StatusResponse>("/api/v1/status").jobs(0).name(), kHostileJob);
  const auto jobs = Ask<v1::StatusResponse>("/api/v1/jobs");
  EXPECT_EQ(jobs.jobs(0).communicators_size(), 0);
  EXPECT_EQ(jobs.jobs(0).communicators_total(), 1);
  const auto job = Ask<v1::JobView>("/api/v1/job", {{"job", kHostileJob}});
  EXPECT_EQ(job.maps_size(), 1);
  EXPECT_EQ(job.incident(), absl::StrCat(kHostileJob, "-1"));
  const auto calls =
      Ask<v1::CallsResponse>("/api/v1/calls", {{"job", kHostileJob}, {"ranks", "0"}});
  EXPECT_EQ(calls.ranks(0).communicators(0).calls_size(), 3);
  EXPECT_EQ(Ask<v1::ProcessesResponse>("/api/v1/processes", {{"job", kHostileJob}}).total(), 1);
  // The history has the incident once its report is written.
  auto incidents = Ask<v1::ListIncidentsResponse>("/api/v1/incidents");
  for (int i = 0; i < 200 && incidents.incidents_size() == 0; ++i) {
    absl::SleepFor(absl::Milliseconds(50));
    incidents = Ask<v1::ListIncidentsResponse>("/api/v1/incidents");
  }
  ASSERT_EQ(incidents.incidents_size(), 1);
  EXPECT_EQ(incidents.incidents(0).verdicts(0).cause(), "argument_mismatch");
  const auto incident =
      Ask<v1::Incident>("/api/v1/incident", {{"id", incidents.incidents(0).id()}});
  EXPECT_EQ(incident.job(), kHostileJob);
}

TEST_F(HttpTest, ATraceHasTheCallsOfItsTimeAndTheOpenIncident) {
  Start();
  const auto trace = Get("/api/v1/trace", {{"job", kHostileJob}, {"ranks", "0"}});
  ASSERT_EQ(trace->status, 200) << trace->body;
  EXPECT_THAT(trace->body, HasSubstr("\"calls\":9"));
  EXPECT_THAT(trace->body, HasSubstr(absl::StrCat("\"incident\":\"", kHostileJob, "-1\"")));
  const auto none = Get("/api/v1/trace",
                        {{"job", kHostileJob}, {"ranks", "0"}, {"until", "2001-01-01T00:00:00Z"}});
  EXPECT_EQ(none->status, 404);
  EXPECT_THAT(none->body, HasSubstr("no calls of these ranks"));
  EXPECT_EQ(Get("/api/v1/trace", {{"job", kHostileJob}, {"from", "noon"}})->status, 400);
}

TEST_F(HttpTest, ErrorsOfWrongRequestsListWhatThereIs) {
  Start();
  const auto job = Get("/api/v1/job", {{"job", "nosuch"}});
  EXPECT_EQ(job->status, 404);
  EXPECT_THAT(job->body, HasSubstr("no job \"nosuch\"; jobs here: "));
  EXPECT_EQ(Get("/api/v1/incident", {{"id", "x"}})->status, 404);
  const auto ranks = Get("/api/v1/calls", {{"job", kHostileJob}, {"ranks", "0,x"}});
  EXPECT_EQ(ranks->status, 400);
  EXPECT_THAT(ranks->body, HasSubstr("as in 0,3-5"));
  const auto last =
      Get("/api/v1/calls", {{"job", kHostileJob}, {"ranks", "2147483646-2147483647"}});
  EXPECT_EQ(last->status, 200);
  EXPECT_EQ(Get("/api/v1/incidents", {{"limit", "many"}})->status, 400);
  EXPECT_EQ(Get("/api/v1/incidents", {{"from", "yesterday"}})->status, 400);
  EXPECT_EQ(Get("/no/such/page")->status, 404);
}

TEST_F(HttpTest, NoAnswerRepeatsAControlCharacterOfTheRequest) {
  Start();
  for (const std::string& hostile :
       {std::string("\x1b[31mx\nall is well\xe2\x80\xae\xc2\x9b\x07"), std::string("x\xff\xfe")}) {
    for (const ApiRoute& route : kApiRoutes) {
      for (const std::string& name : route.parameters) {
        httplib::Params parameters = {{name, hostile}};
        if (name != "job") parameters.emplace("job", kHostileJob);
        const auto answer = route.acts()
                                ? client_->Post(route.path, {{"X-Rollcall", "1"}}, parameters)
                                : Get(route.path, parameters);
        ASSERT_TRUE(answer) << route.path;
        std::string lines = answer->body;
        if (answer->status != 200 && !lines.empty() && lines.back() == '\n') lines.pop_back();
        if (answer->status != 200) {
          EXPECT_EQ(lines, CleanLines(lines)) << route.path << " " << name;
          EXPECT_FALSE(absl::StrContains(lines, "\nall is well")) << route.path << " " << name;
        }
      }
    }
  }
}

TEST_F(HttpTest, ListsAPartOfTheJobs) {
  Start();
  EXPECT_THAT(client_->Get("/api/v1/jobs?limit=1")->body, HasSubstr("\"jobs_total\":1"));
  const std::string after = client_->Get("/api/v1/jobs?offset=1")->body;
  EXPECT_THAT(after, HasSubstr("\"jobs\":[]"));
  EXPECT_THAT(after, HasSubstr("\"jobs_total\":1"));
  EXPECT_EQ(client_->Get("/api/v1/jobs?offset=x")->status, 400);
  std::string many = "/api/v1/calls?job=x&ranks=0-200000";
  for (int i = 0; i < 100; ++i) many += ",0-200000";
  EXPECT_EQ(client_->Get(many)->status, 400);
}

TEST_F(HttpTest, UnchangedAnswersAreNotSentAgain) {
  Start();
  const auto first = Get("/api/v1/incident", {{"id", absl::StrCat(kHostileJob, "-1")}});
  const std::string tag = first->get_header_value("ETag");
  ASSERT_NE(tag, "");
  EXPECT_EQ(Get("/api/v1/incident", {{"id", absl::StrCat(kHostileJob, "-1")}},
                {{"If-None-Match", "\"other\""}})
                ->status,
            200);
  EXPECT_TRUE(Eventually([&] {
    const auto answer = Get("/api/v1/incidents", {});
    const auto again =
        Get("/api/v1/incidents", {}, {{"If-None-Match", answer->get_header_value("ETag")}});
    return again->status == 304 && again->body.empty();
  }));
}

TEST_F(HttpTest, CompressesForClientsThatAcceptGzip) {
  Start();
  client_->set_decompress(false);
  const auto answer = Get("/api/v1/status", {}, {{"Accept-Encoding", "br, gzip"}});
  EXPECT_EQ(answer->get_header_value("Content-Encoding"), "gzip");
  EXPECT_EQ(answer->body.substr(0, 2), "\x1f\x8b");
  EXPECT_EQ(Get("/api/v1/status", {}, {{"Accept-Encoding", "identity"}})->body[0], '{');
}

TEST_F(HttpTest, ThePageRunsNoScriptButItsOwn) {
  Start();
  const auto page = Get("/");
  ASSERT_TRUE(page);
  EXPECT_EQ(page->status, 200);
  EXPECT_THAT(page->body, Not(HasSubstr("<script>")));
  const std::string policy = page->get_header_value("Content-Security-Policy");
  EXPECT_THAT(policy, HasSubstr("script-src 'self'"));
  EXPECT_THAT(policy, Not(HasSubstr("unsafe")));
}

TEST_F(HttpTest, ServesTheReportWithTextOfTheJobEscaped) {
  Start();
  const auto report = Get("/report", {{"id", absl::StrCat(kHostileJob, "-1")}, {"download", "1"}});
  EXPECT_EQ(report->status, 200);
  EXPECT_THAT(report->body, HasSubstr("&lt;script&gt;job"));
  EXPECT_THAT(report->body, Not(HasSubstr("<script>job")));
  EXPECT_THAT(report->get_header_value("Content-Disposition"), Not(HasSubstr("<")));
  EXPECT_EQ(Get("/incidents/a-1")->status, 302);
}

TEST_F(HttpTest, SendsAnEventForEachChange) {
  Start();
  std::string seen;
  client_->Get("/api/v1/events", [&](const char* data, size_t size) {
    seen.append(data, size);
    return seen.find("event: change\ndata: ") == std::string::npos;
  });
  EXPECT_THAT(seen, HasSubstr("event: change\ndata: "));
}

TEST_F(HttpTest, AViewerDoesNotKeepTheDaemonFromStopping) {
  Start();
  std::promise<void> watching;
  std::thread viewer([&watching, address = daemon_->http_address()] {
    httplib::Client client("http://" + address);
    bool told = false;
    client.Get("/api/v1/events", [&](const char*, size_t) {
      if (!told) watching.set_value();
      told = true;
      return true;
    });
  });
  watching.get_future().wait();
  agent_->Stop();
  daemon_->Stop();
  viewer.join();
}

TEST_F(HttpTest, RefusesPostsOfOtherSites) {
  Start();
  EXPECT_EQ(client_->Post("/api/v1/stacks?job=x&ranks=0", "", "text/plain")->status, 403);
  const auto ours =
      client_->Post("/api/v1/stacks?job=x&ranks=0", {{"X-Rollcall", "1"}}, "", "text/plain");
  EXPECT_EQ(ours->status, 404);  // there is no job x
  EXPECT_EQ(client_->Post("/api/v1/stacks", {{"X-Rollcall", "1"}}, "", "text/plain")->status, 400);
}

TEST_F(HttpTest, WithATokenEveryRequestNeedsIt) {
  const std::string token = "0123456789abcdef0123";
  Start(token);
  for (const char* path :
       {"/", "/api/v1/status", "/metrics", "/api/v1/events", "/app.js", "/healthz/job"}) {
    EXPECT_EQ(Get(path)->status, 401) << path;
  }
  EXPECT_THAT(Get("/")->body, HasSubstr("--http-token-file"));
  EXPECT_EQ(Get("/healthz")->status, 200);
  EXPECT_EQ(Get("/metrics", {}, {{"Authorization", "Bearer " + token}})->status, 200);
  EXPECT_EQ(Get("/metrics", {}, {{"Authorization", "Bearer x"}})->status, 401);
  const auto login = Get("/", {{"token", token}});
  EXPECT_EQ(login->status, 302);
  const std::string cookie = login->get_header_value("Set-Cookie");
  EXPECT_THAT(cookie, HasSubstr("HttpOnly; SameSite=Strict"));
  EXPECT_EQ(
      Get("/api/v1/status", {}, {{"Cookie", "a=b; " + cookie.substr(0, cookie.find(';'))}})->status,
      200);
  EXPECT_EQ(Get("/", {{"token", "wrong"}})->status, 401);
}

TEST_F(HttpTest, AHungJobFailsItsReadinessProbe) {
  Start();
  const auto hung = Get("/healthz/%3Cscript%3Ejob%3C%2Fscript%3E%2Fa%20b");
  EXPECT_EQ(hung->status, 503);
  EXPECT_THAT(hung->body, testing::StartsWith("hung: rank 2 "));
  EXPECT_EQ(Get("/healthz/nobody")->status, 404);
  EXPECT_EQ(Get("/healthz/%ff")->status, 400);
}

TEST_F(HttpTest, MetricsHaveTheRequestedFormat) {
  Start();
  const auto plain = Get("/metrics");
  EXPECT_THAT(plain->get_header_value("Content-Type"), HasSubstr("version=0.0.4"));
  EXPECT_THAT(plain->body, HasSubstr("rollcall_agents_connected 1"));
  const auto open = Get("/metrics", {}, {{"Accept", "application/openmetrics-text;version=1.0.0"}});
  EXPECT_THAT(open->get_header_value("Content-Type"), HasSubstr("openmetrics"));
  EXPECT_THAT(open->body, HasSubstr("# EOF\n"));
}

}  // namespace
}  // namespace rollcall
