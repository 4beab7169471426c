// SPDX-License-Identifier: Apache-2.0
// The text for Prometheus.
#include "daemon/queries/metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <sstream>

#include "job_builder.h"

namespace rollcall {
namespace {

using testing::HasSubstr;
using testing::Not;

MetricsSnapshot Snapshot(int jobs = 1, int communicators = 1) {
  MetricsSnapshot snapshot;
  snapshot.version = "1.2.3";
  snapshot.agents = 4;
  for (int i = 0; i < jobs; ++i) {
    JobMetrics& job = snapshot.jobs.emplace_back();
    job.status.set_name("train-" + std::to_string(i));
    job.status.set_tenant("ml");
    job.status.set_attempt(2);
    job.status.set_state("hung");
    job.status.set_ranks(64);
    job.incidents.by_cause["missing_rank"] = 2;
    job.incidents.hung_seconds["missing_rank"] = 31.5;
    job.records_lost = 7;
    job.incidents.open_cause = "missing_rank";
    for (int c = 0; c < communicators; ++c) {
      v1::CommunicatorStatus* comm = job.status.add_communicators();
      comm->set_name("tp");
      comm->set_id(std::to_string(c));
      comm->set_position_min(10);
      comm->set_position_max(11);
      comm->set_waiting(c);
    }
  }
  return snapshot;
}

TEST(MetricsTest, CoverJobsIncidentsAndTheDaemon) {
  const std::string text = MetricsText(Snapshot(), false);
  const std::string job = "{tenant=\"ml\",job=\"train-0\",attempt=\"2\"";
  EXPECT_THAT(text, HasSubstr("rollcall_job_state" + job + ",state=\"hung\"} 1"));
  EXPECT_THAT(text, HasSubstr("rollcall_job_state" + job + ",state=\"running\"} 0"));
  EXPECT_THAT(text, HasSubstr("rollcall_communicator_position_min" + job +
                              ",communicator=\"tp\",id=\"0\"} 10"));
  EXPECT_THAT(text, HasSubstr("rollcall_incidents_total" + job + ",cause=\"missing_rank\"} 2"));
  EXPECT_THAT(text,
              HasSubstr("rollcall_job_hung_seconds_total" + job + ",cause=\"missing_rank\"} 31.5"));
  EXPECT_THAT(text, HasSubstr("rollcall_job_records_lost_total" + job + "} 7"));
  EXPECT_THAT(text, HasSubstr("rollcall_agents_connected 4"));
  EXPECT_THAT(text, HasSubstr("rollcall_build_info{version=\"1.2.3\"} 1"));
}

TEST(MetricsTest, CountWaitingAndLostDeliveries) {
  MetricsSnapshot snapshot = Snapshot();
  snapshot.deliveries.reports = {5, 4, 1, 2};
  snapshot.deliveries.history = {3, 1, 6};
  snapshot.deliveries.alerts_waiting = 7;
  snapshot.http = {200, 12};
  snapshot.daemon.broken_agent_streams = 9;
  const std::string text = MetricsText(snapshot, false);
  for (const char* line :
       {"rollcall_reports_written_total 5", "rollcall_report_errors_total 4",
        "rollcall_reports_lost_total 1", "rollcall_reports_waiting 2",
        "rollcall_history_errors_total 3", "rollcall_history_lost_total 1",
        "rollcall_history_waiting 6", "rollcall_alerts_waiting 7", "rollcall_http_connections 200",
        "rollcall_http_dropped_total 12", "rollcall_agent_broken_streams_total 9",
        "rollcall_agent_dropped_ticks_total 9"}) {
    EXPECT_THAT(text, HasSubstr(line));
  }
}

TEST(MetricsTest, SeriesAreUniqueAndBounded) {
  const std::string text = MetricsText(Snapshot(500, 100), false);
  std::set<std::string> series;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line[0] == '#') continue;
    EXPECT_TRUE(series.insert(line.substr(0, line.rfind(' '))).second) << line;
  }
  EXPECT_LT(series.size(), kMaxJobsMeasured * (kMaxCommunicatorsMeasured * 5 + 20) + 20);
  // Keeps the communicators that wait most.
  EXPECT_NE(
      text.find("{tenant=\"ml\",job=\"train-0\",attempt=\"2\",communicator=\"tp\",id=\"99\"} 99"),
      std::string::npos);
}

TEST(MetricsTest, NamesFromJobsCannotAddLines) {
  MetricsSnapshot snapshot = Snapshot();
  snapshot.jobs[0].status.set_name("a\"} 1\nevil 1");
  EXPECT_THAT(MetricsText(snapshot, false), Not(HasSubstr("\nevil 1")));
}

TEST(MetricsTest, AsOpenMetricsNameFamiliesWithoutTotalAndHaveAnEnd) {
  const std::string text = MetricsText(Snapshot(), true);
  EXPECT_THAT(text, HasSubstr("# TYPE rollcall_incidents counter\n"));
  EXPECT_THAT(text, HasSubstr("# HELP rollcall_incidents Confirmed"));
  EXPECT_THAT(text, HasSubstr("rollcall_incidents_total{"));
  EXPECT_THAT(text, HasSubstr("# TYPE rollcall_job_ranks gauge\n"));
  EXPECT_EQ(text.substr(text.size() - 6), "# EOF\n");
}

TEST(MetricsTest, CountLostRecordsOfAllMembers) {
  JobBuilder job(3);
  job.member(0).records_lost = 5;
  job.member(2).records_lost = 6;
  EXPECT_EQ(RecordsLost(job.state), 11u);
}

TEST(MetricsTest, CountWhatExceedsALimit) {
  MetricsSnapshot snapshot = Snapshot();
  snapshot.jobs_total = 5000;
  snapshot.daemon.dropped[static_cast<size_t>(Dropped::kJobs)] = 7;
  const std::string text = MetricsText(snapshot, false);
  EXPECT_THAT(text, HasSubstr("rollcall_daemon_dropped_total{what=\"jobs\"} 7"));
  EXPECT_THAT(text, HasSubstr("rollcall_daemon_dropped_total{what=\"texts\"} 0"));
  EXPECT_THAT(text, HasSubstr("rollcall_jobs 5000"));
}

}  // namespace
}  // namespace rollcall
