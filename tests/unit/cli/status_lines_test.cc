// SPDX-License-Identifier: Apache-2.0
#include "cli/status_lines.h"

#include <gtest/gtest.h>

namespace rollcall {
namespace {

v1::JobStatus JobWithCommunicators(int count) {
  v1::JobStatus job;
  job.set_name("a-job");
  job.set_state("running");
  for (int i = 0; i < count; ++i) job.add_communicators()->set_name("comm-" + std::to_string(i));
  return job;
}

TEST(StatusLinesTest, ListsTheLongestWaitsAndCountsTheOtherCommunicators) {
  v1::JobStatus job = JobWithCommunicators(3000);
  job.mutable_communicators(2999)->set_waiting(1);
  job.mutable_communicators(2999)->set_waited_seconds(5);
  const std::vector<StatusLine> lines = JobLines(job, 10);
  ASSERT_EQ(lines.size(), 12u);
  EXPECT_NE(lines[1].text.find("comm-2999"), std::string::npos);
  EXPECT_EQ(lines.back().text, "  2990 communicators more:  rollcall status --all a-job");
  EXPECT_EQ(JobLines(job, 0).size(), 3001u);
}

TEST(StatusLinesTest, OneHostIsNotHosts) {
  v1::JobStatus job = JobWithCommunicators(0);
  job.add_hosts("node-1");
  EXPECT_NE(JobLines(job, 0).front().text.find(" on 1 host,"), std::string::npos);
}

TEST(StatusLinesTest, AJobThatWaitsForAnotherOneSaysSo) {
  v1::JobStatus job = JobWithCommunicators(0);
  EXPECT_EQ(JobLines(job, 0).size(), 1u);
  job.mutable_waits_for()->set_job("engine");
  job.mutable_waits_for()->set_summary("rank 1 is late");
  EXPECT_EQ(JobLines(job, 0).back().text, "  waits for job engine: rank 1 is late");
  job.mutable_waits_for()->set_attempt(2);
  job.mutable_waits_for()->set_incident("engine-1");
  EXPECT_EQ(ReferralOf(job), "waits for job engine attempt 2 (incident engine-1): rank 1 is late");
  EXPECT_GT(JobScreen(job, 24).size(), 3u) << "it is wrapped";
}

TEST(StatusLinesTest, NumbersLastCallsAsVerdictsDo) {
  v1::JobStatus job = JobWithCommunicators(1);
  v1::CommunicatorStatus* comm = job.mutable_communicators(0);
  comm->set_members(4);
  comm->set_size(4);
  const auto line = [&] { return JobLines(job, 10)[1].text; };
  EXPECT_NE(line().find("4 of   4 ranks   no call yet"), std::string::npos) << line();
  comm->set_position_max(7);
  comm->set_laggards_total(1);
  comm->add_laggards(3);
  EXPECT_NE(line().find("   last call none to #6   rank 3 is behind"), std::string::npos) << line();
  comm->set_position_min(6);
  comm->set_laggards_total(2);
  EXPECT_NE(line().find("   last call #5 to #6   rank 3 and 1 more are behind"), std::string::npos)
      << line();
  comm->set_position_min(7);
  comm->set_laggards_total(0);
  EXPECT_NE(line().find("   last call #6"), std::string::npos) << line();
}

TEST(CutToWidthTest, EndsWithDotsWhereTextIsMissing) {
  EXPECT_EQ(CutToWidth("a sentence", 10), "a sentence");
  EXPECT_EQ(CutToWidth("a sentence", 9), "a sent...");
  EXPECT_EQ(CutToWidth("\u00e4\u00e4\u00e4\u00e4\u00e4", 4), "\u00e4...");
  EXPECT_EQ(CutToWidth("a sentence", 2), "..");
  EXPECT_EQ(CutToWidth("a sentence", 0), "");
}

}  // namespace
}  // namespace rollcall
