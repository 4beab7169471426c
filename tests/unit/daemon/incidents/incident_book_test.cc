// SPDX-License-Identifier: Apache-2.0
// The incidents of a daemon, and what a restarted daemon makes of those of an earlier one.
#include "daemon/incidents/incident_book.h"

#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
#include <cstdint>
#include <string>
#include <utility>

#include "daemon/history/history.h"
#include "daemon/history/history_write.h"
#include "eventually.h"
#include "incident_book_fixture.h"
#include "job_builder.h"

namespace rollcall {
namespace {

TEST_F(IncidentBookTest, AConfirmedHangIsAnnouncedOnceAcrossRestarts) {
  {
    const auto book = Begin();
    Apply(Hang(), book.get());
    EXPECT_TRUE(Sends(1, *book));
    book->Finish(std::chrono::steady_clock::now());
  }
  const auto book = Begin();
  Apply(Hang(), book.get());
  EXPECT_EQ(CountAlerts(*book), 0u);
  ASSERT_EQ(book->reader().All("train").size(), 1u);
  EXPECT_EQ(book->reader().All("train")[0].id(), "train-1");
}

AlertRow SentAlert(int32_t sequence, const std::string& kind) {
  return {"train-1", sequence, kind, 1000, Confirmed(), true, {}};
}

// It took the job while the database was away, and found the hang that the owner had announced.
TEST_F(IncidentBookTest, AnIncidentOfAnUnprovenJobGivesWayToTheStoredOne) {
  ownership_.is_unproven = true;
  const auto book = Begin();
  book->takeover().AvoidNumbersOfOthers(JobKey("train"));
  Apply(Hang(), book.get());
  ASSERT_EQ(book->reader().All("train").size(), 1u);
  EXPECT_NE(book->reader().All("train")[0].id(), "train-1");
  Continuation stored;
  stored.last_number = 1;
  stored.open.push_back(Confirmed());
  stored.alerts.push_back(SentAlert(1, "confirmed"));
  book->takeover().Adopt(JobKey("train"), std::move(stored));
  ownership_.is_unproven = false;
  book->takeover().StoreProven(JobKey("train"));
  Apply(Hang(), book.get());
  ASSERT_EQ(book->reader().All("train").size(), 1u);
  EXPECT_EQ(book->reader().All("train")[0].id(), "train-1");
  EXPECT_EQ(CountAlerts(*book), 0u) << "the owner has announced it";
}

TEST_F(IncidentBookTest, AnIncidentOfAnUnprovenJobStaysIfNoOtherIsStored) {
  ownership_.is_unproven = true;
  const auto book = Begin();
  Apply(Hang(), book.get());
  EXPECT_EQ(LastStored(), 0) << "nobody may hear of it";
  book->takeover().Adopt(JobKey("train"), {});
  ownership_.is_unproven = false;
  book->takeover().StoreProven(JobKey("train"));
  EXPECT_TRUE(Sends(1, *book));
  EXPECT_EQ(LastStored(), 1);
}

// A thread that saw the job go runs when it is back.
TEST_F(IncidentBookTest, ALateReleaseDropsNothingOfAJobThatHasComeBack) {
  const auto book = Begin();
  ownership_.owns = false;
  Continuation stored;
  stored.last_number = 1;
  stored.open.push_back(Confirmed());
  book->takeover().Adopt(JobKey("train"), std::move(stored));
  book->takeover().ReleaseUnowned(JobKey("train"));
  EXPECT_EQ(book->reader().All("train").size(), 1u);
  ownership_.owns = true;
  book->takeover().StoreProven(JobKey("train"));
  book->takeover().ReleaseUnowned(JobKey("train"));
  EXPECT_EQ(book->reader().All("train").size(), 1u);
  ownership_.owns = false;
  book->takeover().ReleaseUnowned(JobKey("train"));
  EXPECT_TRUE(book->reader().All("train").empty());
}

// The daemon was killed after it saved the incident and before it saved the alert.
TEST_F(IncidentBookTest, ARestartedDaemonAnnouncesAHangWhoseAlertIsLost) {
  ASSERT_TRUE(OpenHistory()->Apply(WriteOfIncident(Confirmed())).ok());
  const auto book = Begin();
  Apply({}, book.get());
  EXPECT_EQ(CountAlerts(*book), 0u) << "the hang may be over";
  Apply(Hang(), book.get());
  EXPECT_TRUE(Sends(1, *book));
}

TEST_F(IncidentBookTest, ARestartedDaemonAnnouncesAnEndWhoseAlertIsLost) {
  {
    v1::Incident closed = Confirmed();
    closed.set_state("resolved");
    closed.mutable_closed_at()->set_seconds(1060);
    const auto history = OpenHistory();
    ASSERT_TRUE(history->Apply(WriteOfIncident(closed)).ok());
    ASSERT_TRUE(history->Apply(WriteOfHosts(JobKey("train"), {"node-1"}, 1000)).ok());
    ASSERT_TRUE(history->Apply(WriteOfAlert(SentAlert(1, "confirmed"))).ok());
  }
  {
    const auto book = Begin();
    EXPECT_TRUE(Sends(1, *book));
    book->Finish(std::chrono::steady_clock::now());
  }
  EXPECT_EQ(CountAlerts(*Begin()), 0u);
}

TEST_F(IncidentBookTest, TheHistoryLearnsWhereTheReportIs) {
  report_dir_ = tree_.root() + "/reports";
  const auto book = Begin();
  Apply(Hang(), book.get());
  // A first report waits a little for stacks.
  const bool is_written = Eventually([&] {
    book->Publish();
    return !book->reader().All("train")[0].report_path().empty();
  });
  EXPECT_TRUE(is_written);
  const std::string path = book->reader().All("train")[0].report_path();
  book->Publish();
  book->Finish(std::chrono::steady_clock::now());
  EXPECT_EQ(OpenHistory()->Get("train-1")->report_path(), path);
}

// A launcher has ended the job after one rank died.
JobState DeadJob() {
  JobBuilder job(4);
  job.Finish(24);
  job.Enter({0, 1, 2}, At(10));
  job.Die(3, At(10.5), SIGKILL);
  for (const int rank : {0, 1, 2}) job.Die(rank, At(10.7), SIGTERM);
  job.state.key = JobKey("train");
  job.state.agents.push_back(RunningJob().agents.front());
  return job.state;
}

// A job that EndAbandoned() gave up may live.
TEST_F(IncidentBookTest, TheDeathOfAJobThatReturnsAfterItWasAbandonedIsJudged) {
  for (const bool abandoned : {true, false}) {
    v1::Incident closed = Confirmed();
    closed.set_state("ended");
    closed.set_abandoned(abandoned);
    *closed.mutable_closed_at() = closed.confirmed_at();
    {
      const auto history = OpenHistory();
      ASSERT_TRUE(history->Apply(WriteOfIncident(closed)).ok());
      ASSERT_TRUE(history->Apply(WriteOfHosts(JobKey("train"), {"node-1"}, 1000)).ok());
    }
    const auto book = Begin();
    book->Apply(DeadJob(), {}, At(12));
    const auto incidents = book->reader().All("train");
    EXPECT_EQ(incidents.size(), abandoned ? 1u : 0u);
    book->Finish(std::chrono::steady_clock::now());
  }
}

// Else a page would show a job that hung to its end as one that is over well.
TEST_F(IncidentBookTest, ARestartedDaemonKnowsThatTheJobEndedWhileItHung) {
  v1::Incident closed = Confirmed();
  closed.set_state("ended");
  *closed.mutable_closed_at() = closed.confirmed_at();
  {
    const auto history = OpenHistory();
    ASSERT_TRUE(history->Apply(WriteOfIncident(closed)).ok());
    ASSERT_TRUE(history->Apply(WriteOfHosts(JobKey("train"), {"node-1"}, 1000)).ok());
  }
  const auto book = Begin();
  Apply({}, book.get());
  const JobBrief brief = book->reader().Brief(JobKey("train"));
  ASSERT_TRUE(brief.last.has_value());
  EXPECT_EQ(brief.last->state(), "ended");
  EXPECT_EQ(brief.last->id(), "train-1");
}

// The hosts of the job are silent for too long.
TEST_F(IncidentBookTest, TheLiveIncidentOfAForgottenJobEndsInTheHistory) {
  const auto book = Begin();
  Apply(Hang(), book.get());
  book->Forget(JobKey("train"), timeline_.Now());
  EXPECT_TRUE(book->reader().All("train").empty());
  const auto kept = book->reader().Get("train-1");
  ASSERT_TRUE(kept.ok()) << kept.status();
  EXPECT_EQ(kept->state(), "ended");
  EXPECT_TRUE(kept->abandoned());
  EXPECT_TRUE(Sends(2, *book)) << "the hang and its end";
}

// Otherwise the report would say for ever that the hang lasts, and would never be deleted.
TEST_F(IncidentBookTest, TheReportOfAForgottenJobSaysWhenTheHangEnded) {
  report_dir_ = tree_.root() + "/reports";
  const auto book = Begin();
  Apply(Hang(), book.get());
  ASSERT_TRUE(Eventually([&] {
    book->Publish();
    return !book->reader().All("train")[0].report_path().empty();
  }));
  const std::string report = book->reader().All("train")[0].report_path() + "/incident.json";
  EXPECT_EQ(ReadAll(report).find("closed_at"), std::string::npos);
  book->Forget(JobKey("train"), timeline_.Now());
  book->Publish();
  EXPECT_TRUE(Eventually([&] { return ReadAll(report).find("closed_at") != std::string::npos; }))
      << ReadAll(report);
}

// No stacks will come any more.
TEST_F(IncidentBookTest, AForgottenJobHasAReportAlthoughItWaitedForStacks) {
  report_dir_ = tree_.root() + "/reports";
  const auto book = Begin();
  ASSERT_FALSE(Apply(Hang(), book.get()).empty()) << "it waits for none";
  book->Publish();
  EXPECT_EQ(book->reader().CountDeliveries().reports.written +
                book->reader().CountDeliveries().reports.waiting,
            0u);
  book->Forget(JobKey("train"), timeline_.Now());
  book->Publish();
  EXPECT_TRUE(Eventually([&] { return book->reader().CountDeliveries().reports.written == 1; }));
}

}  // namespace
}  // namespace rollcall
