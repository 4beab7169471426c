// SPDX-License-Identifier: Apache-2.0
#include "cli/job_table.h"

#include <gtest/gtest.h>

namespace rollcall {
namespace {

constexpr int64_t kNow = 1'800'000'000;

v1::JobStatus* AddJob(v1::StatusResponse* status, const std::string& name,
                      const std::string& state) {
  v1::JobStatus* job = status->add_jobs();
  job->set_name(name);
  job->set_state(state);
  job->set_ranks(8);
  job->set_processes(8);
  job->set_processes_alive(state == "ended" ? 0 : 8);
  job->set_since("2027-01-15T07:00:00Z");  // an hour before kNow
  return job;
}

void SetIncident(v1::JobStatus* job, const std::string& state, int64_t seconds_ago) {
  v1::IncidentSummary* incident = job->mutable_last_incident();
  incident->set_id("an-incident");
  incident->set_state(state);
  incident->set_summary("rank 3 has not called AllReduce #7");
  incident->mutable_opened_at()->set_seconds(kNow - seconds_ago);
}

v1::StatusResponse SomeJobs() {
  v1::StatusResponse status;
  status.mutable_now()->set_seconds(kNow);
  status.set_agents(2);
  AddJob(&status, "b-runs", "running")->set_calls_per_second(2000);
  v1::JobStatus* late = AddJob(&status, "c-hangs", "hung");
  late->set_summary("rank 3 has not called AllReduce #7");
  SetIncident(late, "confirmed", 30);
  v1::JobStatus* early = AddJob(&status, "d-hangs", "hung");
  early->set_summary("rank 1 has not called AllReduce #9");
  SetIncident(early, "confirmed", 252);
  AddJob(&status, "a-done", "ended")->mutable_ended_at()->set_seconds(kNow - 90000);
  return status;
}

std::vector<std::string> Texts(const std::vector<StatusLine>& lines) {
  std::vector<std::string> texts;
  for (const StatusLine& line : lines) texts.push_back(line.text);
  return texts;
}

TEST(JobTableTest, ListsTheLongestHangFirstAndEndedJobsLast) {
  v1::StatusResponse status = SomeJobs();
  SortJobs(JobOrder::kUrgency, &status);
  const std::vector<std::string> expected = {
      "STATE    JOB      RANKS  FOR    VERDICT",
      "hung     d-hangs  8      4m12s  rank 1 has not called AllReduce #9",
      "hung     c-hangs  8      30s    rank 3 has not called AllReduce #7",
      "running  b-runs   8      1h00m  2000.0 calls/s per rank",
      "ended    a-done   8      1d01h",
  };
  EXPECT_EQ(Texts(JobTable(status, 0)), expected);
  EXPECT_EQ(CountJobs(status), "4 jobs: 2 hung, 1 running, 1 ended; 2 agents connected");
  EXPECT_EQ(CountHung(status), 2);
}

TEST(JobTableTest, SaysAtTheEndWhichDaemonsDoNotAnswer) {
  v1::StatusResponse status = SomeJobs();
  EXPECT_EQ(SilentDaemons(status), "");
  for (v1::JobStatus& job : *status.mutable_jobs()) job.set_daemon("a");
  status.add_silent_daemons("b");
  EXPECT_EQ(StatusTable(status, 0).back().text,
            "of 2 daemons, b does not answer: jobs of it may be missing here");
  status.add_silent_daemons("c");
  status.clear_jobs();
  EXPECT_EQ(StatusTable(status, 0).back().text,
            "of 2 daemons, b, c do not answer: jobs of them may be missing here");
}

TEST(JobTableTest, SaysBelowTheJobsWhichRunWithoutTheLibrary) {
  v1::StatusResponse status = SomeJobs();
  EXPECT_TRUE(UnrecordedLines(status, 0).empty());
  v1::UnrecordedJob* job = status.add_unrecorded();
  job->set_tenant("team");
  job->set_name("train\x1b.py");
  job->set_uid(1000);
  job->set_ranks(3);
  job->set_world_size(4);
  job->add_hosts("node-1");
  job->add_hosts("node-2");
  *job->mutable_since() = status.now();
  const std::vector<StatusLine> lines = StatusTable(status, 0);
  ASSERT_GE(lines.size(), 4u);
  EXPECT_EQ(lines[lines.size() - 4].text,
            "1 distributed job is not recorded: started without Rollcall's library");
  EXPECT_EQ(lines[lines.size() - 3].text,
            "  team/train?.py  not recorded: 3 of 4 ranks on 2 hosts, user 1000, for 0s");
  EXPECT_EQ(lines[lines.size() - 2].text,
            "  does one hang?  rollcall diagnose JOB --daemon=HOST:PORT");
  for (int i = 0; i < 30; ++i) *status.add_unrecorded() = status.unrecorded(0);
  EXPECT_EQ(UnrecordedLines(status, 0).size(), 14u);
  for (const StatusLine& line : UnrecordedLines(status, 40)) EXPECT_LE(line.text.size(), 40u);
}

TEST(JobTableTest, BeginsWithTheVerdictOfTheWorstJobAlsoInAPipe) {
  const std::vector<StatusLine> lines = StatusTable(SomeJobs(), 0);
  ASSERT_GE(lines.size(), 3u);
  EXPECT_EQ(lines[1].text, "d-hangs: rank 1 has not called AllReduce #9");
  EXPECT_EQ(lines[2].text.find("STATE"), 0u);
}

TEST(JobTableTest, SortsByName) {
  v1::StatusResponse status = SomeJobs();
  SortJobs(JobOrder::kName, &status);
  EXPECT_EQ(status.jobs(0).name(), "a-done");
  EXPECT_EQ(status.jobs(3).name(), "d-hangs");
}

TEST(JobTableTest, SortsByTimeInTheState) {
  v1::StatusResponse status = SomeJobs();
  SortJobs(JobOrder::kTime, &status);
  EXPECT_EQ(status.jobs(0).name(), "a-done");
  EXPECT_EQ(status.jobs(3).name(), "c-hangs");
}

TEST(JobTableTest, SortsTheLargestJobFirst) {
  v1::StatusResponse status = SomeJobs();
  status.mutable_jobs(3)->set_ranks(64);
  SortJobs(JobOrder::kRanks, &status);
  EXPECT_EQ(status.jobs(0).name(), "a-done");
}

TEST(JobTableTest, NoLineIsLongerThanTheTerminal) {
  v1::StatusResponse status = SomeJobs();
  for (const StatusLine& line : StatusTable(status, 40)) EXPECT_LE(line.text.size(), 40u);
  EXPECT_EQ(JobTable(status, 40)[2].text.substr(37), "...");
}

TEST(JobTableTest, AJobThatEndedWhileItHungSaysSoWithItsVerdict) {
  v1::StatusResponse status;
  status.mutable_now()->set_seconds(kNow);
  SetIncident(AddJob(&status, "killed", "ended"), "ended", 60);
  SetIncident(AddJob(&status, "went-on", "ended"), "resolved", 60);
  const std::vector<StatusLine> lines = JobTable(status, 0);
  EXPECT_EQ(lines[1].text.find("ended hung  killed"), 0u);
  EXPECT_NE(lines[1].text.find("ended while hung: rank 3 has not called"), std::string::npos);
  EXPECT_EQ(lines[2].text.find("ended       went-on"), 0u);
  EXPECT_EQ(lines[2].text.find("rank 3"), std::string::npos);
}

TEST(JobTableTest, NamesTheRanksThatAreGone) {
  v1::StatusResponse status;
  AddJob(&status, "a-job", "hung")->set_processes_alive(5);
  EXPECT_NE(JobTable(status, 0)[1].text.find("5/8 alive"), std::string::npos);
}

TEST(JobTableTest, TheWholeVerdictStandsBeforeATableThatCutsIt) {
  const v1::StatusResponse status = SomeJobs();
  const std::vector<std::string> lines = Texts(StatusTable(status, 30));
  EXPECT_EQ(lines[1], "d-hangs: rank 1 has not called");
  EXPECT_EQ(lines[2], "AllReduce #9");
  EXPECT_EQ(lines[3].find("STATE"), 0u);
}

// A script gets it on one line.
TEST(JobTableTest, TheWholeVerdictStandsBeforeATableThatHasItToo) {
  const std::vector<std::string> lines = Texts(StatusTable(SomeJobs(), 0));
  EXPECT_EQ(lines[1], "d-hangs: rank 1 has not called AllReduce #9");
  EXPECT_EQ(lines[2].find("STATE"), 0u);
}

TEST(JobTableTest, WithoutJobsSaysSo) {
  v1::StatusResponse status;
  status.set_agents(1);
  EXPECT_EQ(Texts(StatusTable(status, 80)),
            std::vector<std::string>({"no jobs; 1 agent connected"}));
}

}  // namespace
}  // namespace rollcall
