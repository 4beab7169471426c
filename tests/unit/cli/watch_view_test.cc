// SPDX-License-Identifier: Apache-2.0
#include "cli/watch_view.h"

#include <gtest/gtest.h>

namespace rollcall {
namespace {

void AddJob(v1::StatusResponse* status, const std::string& name, const std::string& state) {
  v1::JobStatus* job = status->add_jobs();
  job->set_name(name);
  job->set_state(state);
  if (state == "hung") job->set_summary("verdict of " + name);
}

v1::StatusResponse Jobs(int count) {
  v1::StatusResponse status;
  for (int i = 0; i < count; ++i) AddJob(&status, "job-" + std::to_string(i), "running");
  return status;
}

// The line of the selected job, or empty.
std::string Marked(WatchView& view) {
  for (const StatusLine& line : view.Lines(80, 24)) {
    if (line.text.find("> ") == 0) return line.text;
  }
  return "";
}

bool Shows(const std::vector<StatusLine>& lines, const std::string& text) {
  for (const StatusLine& line : lines) {
    if (line.text.find(text) != std::string::npos) return true;
  }
  return false;
}

TEST(WatchViewTest, CountsTheJobsThatAreLeftOut) {
  WatchView view;
  v1::StatusResponse status = Jobs(1);
  status.set_jobs_total(5000);
  view.Update(status);
  EXPECT_EQ(view.Lines(200, 40).front().text.find("rollcall: 1 of 5000 jobs: "), 0u);
}

TEST(WatchViewTest, SelectsTheHangThatComesUntilTheUserHasSelectedAJob) {
  WatchView view;
  v1::StatusResponse status = Jobs(3);
  view.Update(status);
  EXPECT_NE(Marked(view).find("job-0"), std::string::npos);
  AddJob(&status, "stuck", "hung");
  view.Update(status);
  EXPECT_NE(Marked(view).find("stuck"), std::string::npos);
  view.Press(Screen::Key::kDown);
  EXPECT_NE(Marked(view).find("job-0"), std::string::npos);
  AddJob(&status, "another", "hung");
  view.Update(status);
  EXPECT_NE(Marked(view).find("job-0"), std::string::npos);
}

TEST(WatchViewTest, TheVerdictIsWholeAt80Columns) {
  WatchView view;
  v1::StatusResponse status = Jobs(1);
  status.mutable_jobs(0)->set_state("hung");
  const std::string verdict =
      "rank 3 (node-17, pid 4121, GPU 3) is in `validate` (train.py:212) and has not called "
      "AllReduce #8812 on \"dp\"; 63 ranks have waited 48 s";
  status.mutable_jobs(0)->set_summary(verdict);
  view.Update(status);
  std::string text;
  for (const StatusLine& line : view.Lines(80, 24)) {
    EXPECT_LE(line.text.size(), 80u);
    text += line.text + " ";
  }
  EXPECT_NE(text.find(verdict), std::string::npos) << text;
}

TEST(WatchViewTest, TheVerdictStandsBeforeTheTableAndOnce) {
  WatchView view;
  v1::StatusResponse status = Jobs(1);
  AddJob(&status, "stuck", "hung");
  view.Update(status);
  size_t verdict = 0, table = 0, count = 0;
  const std::vector<StatusLine> lines = view.Lines(80, 24);
  for (size_t i = 0; i < lines.size(); ++i) {
    if (lines[i].text.find("STATE") != std::string::npos) table = i;
    if (lines[i].text == "stuck: verdict of stuck") verdict = i;
    if (lines[i].text == "verdict of stuck") ++count;
  }
  EXPECT_GT(verdict, 0u);
  EXPECT_LT(verdict, table);
  EXPECT_EQ(count, 0u) << "the headline takes its place below the table";
}

void AddUnrecordedJob(v1::StatusResponse* status, const std::string& name) {
  v1::UnrecordedJob* job = status->add_unrecorded();
  job->set_name(name);
  job->set_ranks(4);
  job->add_hosts("node-1");
}

TEST(WatchViewTest, ShowsJobsThatAreNotRecorded) {
  WatchView view;
  v1::StatusResponse status;
  AddUnrecordedJob(&status, "train.py");
  view.Update(status);
  EXPECT_TRUE(Shows(view.Lines(80, 24), "train.py  not recorded: 4 ranks"));
  AddJob(&status, "recorded", "running");
  view.Update(status);
  EXPECT_TRUE(Shows(view.Lines(80, 24), "train.py  not recorded: 4 ranks"));
  EXPECT_NE(Marked(view).find("recorded"), std::string::npos);
}

TEST(WatchViewTest, ManyJobsThatAreNotRecordedLeaveRoomForTheSelectedOne) {
  WatchView view;
  v1::StatusResponse status = Jobs(1);
  for (int i = 0; i < 100; ++i) AddUnrecordedJob(&status, "train-" + std::to_string(i) + ".py");
  view.Update(status);
  const std::vector<StatusLine> lines = view.Lines(80, 24);
  EXPECT_TRUE(Shows(lines, "100 distributed jobs are not recorded"));
  EXPECT_TRUE(Shows(lines, "all of them:  rollcall status"));
  EXPECT_TRUE(Shows(lines, "job-0: running, "));
}

TEST(WatchViewTest, FitsTheWindow) {
  WatchView view;
  view.Update(Jobs(1000));
  for (const int rows : {1, 2, 5, 24}) {
    EXPECT_LE(view.Lines(80, rows).size(), static_cast<size_t>(rows));
  }
  view.Press(Screen::Key::kOpen);
  EXPECT_LE(view.Lines(80, 3).size(), 3u);
}

TEST(WatchViewTest, OpensAJobScrollsItAndGoesBack) {
  WatchView view;
  v1::StatusResponse status = Jobs(2);
  for (int i = 0; i < 100; ++i) {
    status.mutable_jobs(1)->add_communicators()->set_name("comm-" + std::to_string(i));
  }
  view.Update(status);
  view.Press(Screen::Key::kDown);
  view.Press(Screen::Key::kOpen);
  EXPECT_EQ(view.Lines(80, 24).front().text, "rollcall: job-1, running");
  EXPECT_TRUE(Shows(view.Lines(80, 24), "comm-0 "));
  for (int i = 0; i < 50; ++i) view.Press(Screen::Key::kPageDown);
  EXPECT_TRUE(Shows(view.Lines(80, 24), "comm-99 "));
  view.Press(Screen::Key::kBack);
  EXPECT_NE(Marked(view).find("job-1"), std::string::npos);
}

TEST(WatchViewTest, ScrollingPastTheEndNeedsNoWayBack) {
  WatchView view;
  v1::StatusResponse status = Jobs(1);
  for (int i = 0; i < 40; ++i) {
    status.mutable_jobs(0)->add_communicators()->set_name("comm-" + std::to_string(i));
  }
  view.Update(status);
  view.Press(Screen::Key::kOpen);
  for (int i = 0; i < 50; ++i) view.Press(Screen::Key::kPageDown);
  view.Lines(80, 24);
  EXPECT_TRUE(Shows(view.Lines(80, 24), "comm-39 "));
  view.Press(Screen::Key::kPageUp);
  EXPECT_FALSE(Shows(view.Lines(80, 24), "comm-39 "));
}

TEST(WatchViewTest, ShowsTheListWhenTheOpenedJobIsGone) {
  WatchView view;
  view.Update(Jobs(2));
  view.Press(Screen::Key::kOpen);
  view.Update(v1::StatusResponse());
  EXPECT_EQ(view.Lines(80, 24).front().text.find("rollcall: no jobs"), 0u);
}

TEST(WatchViewTest, SKeySortsByAnotherColumn) {
  WatchView view;
  v1::StatusResponse status = Jobs(1);
  AddJob(&status, "stuck", "hung");
  view.Update(status);
  EXPECT_TRUE(Shows(view.Lines(80, 24), "by urgency"));
  EXPECT_NE(Marked(view).find("stuck"), std::string::npos);
  view.Press(Screen::Key::kSort);
  EXPECT_TRUE(Shows(view.Lines(80, 24), "by name"));
  EXPECT_NE(Marked(view).find("job-0"), std::string::npos);
}

}  // namespace
}  // namespace rollcall
