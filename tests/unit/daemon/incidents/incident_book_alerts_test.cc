// SPDX-License-Identifier: Apache-2.0
// When the alerts of the book's incidents go out, and what they say by then.
#include <gtest/gtest.h>

#include <chrono>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "daemon/incidents/incident_actions.h"
#include "daemon/incidents/incident_book.h"
#include "incident_book_fixture.h"

namespace rollcall {
namespace {

using nlohmann::json;

class IncidentAlertsTest : public IncidentBookTest {
 protected:
  IncidentAlertsTest() { alert_command_ = "cat >> " + sent_ + "; echo >> " + sent_; }

  std::vector<json> Sent() const {
    std::vector<json> messages;
    std::istringstream lines(ReadAll(sent_));
    for (std::string line; std::getline(lines, line);) messages.push_back(json::parse(line));
    return messages;
  }
  // The stack of the culprit has come: it is in validate().
  static void AddStack(const std::string& incident, IncidentBook* book) {
    StackResult result;
    result.job = JobKey("train");
    result.incident = incident;
    result.stack.set_host("node-1");
    result.stack.set_pid(7);
    v1::Frame* frame = result.stack.add_threads()->add_frames();
    frame->set_function("validate");
    frame->set_file("/x/train.py");
    frame->set_line(212);
    frame->set_python(true);
    book->AddStack(result);
  }
  static void Take(const std::string& incident, const std::string& who, IncidentBook* book) {
    ASSERT_TRUE(
        book->actions()
            .Change(incident, [&](v1::Incident* changed) { return Acknowledge(who, 1, changed); })
            .ok());
  }

  const std::string sent_ = tree_.root() + "/sent";
};

TEST_F(IncidentAlertsTest, TheFirstAlertWaitsForTheLineOfTheCulprit) {
  alert_waits_ns_ = kAlertWaitsNs;
  const auto book = Begin();
  ASSERT_FALSE(Apply(HangOf(3), book.get()).empty()) << "it asks for stacks";
  book->Publish();
  EXPECT_EQ(CountAlerts(*book), 0u);
  AddStack("train-1", book.get());
  book->Publish();
  EXPECT_EQ(CountAlerts(*book), 0u) << "no verdict rests on the stack yet";
  Apply(HangOf(3), book.get());
  ASSERT_TRUE(Sends(1, *book));
  EXPECT_EQ(Sent()[0]["at"], "/x/train.py:212 in validate");
}

TEST_F(IncidentAlertsTest, TheFirstAlertGoesOutWithoutTheLineAfterAWhile) {
  alert_waits_ns_ = 50'000'000;
  const auto book = Begin();
  Apply(HangOf(3), book.get());
  EXPECT_TRUE(Eventually([&] {
    book->Publish();
    return CountAlerts(*book) == 1;
  }));
}

TEST_F(IncidentAlertsTest, AHangThatIsOverMeanwhileIsReportedWithItsEnd) {
  alert_waits_ns_ = kAlertWaitsNs;
  const auto book = Begin();
  Apply(HangOf(3), book.get());
  book->Forget(JobKey("train"), timeline_.Now());
  EXPECT_TRUE(Sends(2, *book));
}

TEST_F(IncidentAlertsTest, ADaemonThatStopsKeepsNoAlertBack) {
  alert_waits_ns_ = kAlertWaitsNs;
  const auto book = Begin();
  Apply(HangOf(3), book.get());
  book->BeginStop();
  book->Finish(std::chrono::steady_clock::now());
  EXPECT_EQ(Sent().size(), 1u);
}

TEST_F(IncidentAlertsTest, ALineThatComesLaterIsAnUpdate) {
  const auto book = Begin();
  Apply(HangOf(3), book.get());
  ASSERT_TRUE(Sends(1, *book));
  AddStack("train-1", book.get());
  Apply(HangOf(3), book.get());
  EXPECT_EQ(CountAlerts(*book), 2u) << "it waits until 30 s after the first";
  Apply(HangOf(3), book.get());
  EXPECT_EQ(CountAlerts(*book), 2u);
}

TEST_F(IncidentAlertsTest, AnotherFirstAdviceIsAnUpdate) {
  const auto book = Begin();
  Apply(HangOf(3), book.get());
  ASSERT_TRUE(Sends(1, *book));
  std::vector<Verdict> advised = HangOf(3);
  advised[0].advice.push_back({"rank0-only-checkpoint", "Save on all ranks."});
  Apply(advised, book.get());
  EXPECT_EQ(CountAlerts(*book), 2u);
}

TEST_F(IncidentAlertsTest, AJobThatFlapsIsOneRowOfAlerts) {
  const auto book = Begin();
  Flap(20, book.get());
  EXPECT_EQ(CountAlerts(*book), 2u) << "the first, and the newest number";
  EXPECT_EQ(CountDropped(Dropped::kAlerts), 0u);
  const auto incidents = book->reader().All("train");
  ASSERT_EQ(incidents.size(), 20u);
  EXPECT_EQ(incidents[0].repeat().number(), 20);
  EXPECT_EQ(incidents[0].repeat().newest(), "train-20");
  EXPECT_EQ(incidents[19].repeat().first(), "train-1");
  EXPECT_EQ(incidents[19].repeat().sentence().substr(0, 12), "20th time in");
}

TEST_F(IncidentAlertsTest, AnEndIsNotToldWhileTheJobMayHangAgain) {
  const auto book = Begin();
  Flap(1, book.get());
  EXPECT_TRUE(Sends(1, *book));
  book->Publish();
  EXPECT_EQ(CountAlerts(*book), 1u);
}

// The daemon may find out how an attempt ended when the next one has been and gone.
TEST_F(IncidentAlertsTest, ResolvesAHangThatEndedBeforeItWasFound) {
  const auto book = Begin();
  JobState second = RunningJob();
  second.key.attempt = 1;
  second.communicators[0xa91f].members[0].entered = 2;
  book->Apply(second, {}, timeline_.Now());
  second.communicators.clear();
  book->Apply(second, {}, timeline_.Now());
  JobState first = RunningJob();
  first.processes[0].liveness = Liveness::kExited;
  book->Apply(first, HangOf(0), timeline_.Now());
  book->Publish();
  ASSERT_TRUE(Sends(2, *book));
  EXPECT_EQ(Sent()[0]["status"], "firing");
  EXPECT_EQ(Sent()[1]["state"], "resolved");
  EXPECT_EQ(book->reader().All("train")[0].went_on_in(), 1);
}

TEST_F(IncidentAlertsTest, ARestartedDaemonTellsTheEndThatWaited) {
  {
    const auto book = Begin();
    Flap(1, book.get());
    EXPECT_TRUE(Sends(1, *book));
    book->Finish(std::chrono::steady_clock::now());
  }
  const auto book = Begin();
  EXPECT_TRUE(Sends(1, *book));
  EXPECT_EQ(Sent().back()["status"], "resolved");
}

TEST_F(IncidentAlertsTest, ARowGoesOnUnderOneNameAcrossARestart) {
  {
    const auto book = Begin();
    Flap(1, book.get());
    Apply(Hang(), book.get());
    EXPECT_TRUE(Sends(1, *book));
    book->Finish(std::chrono::steady_clock::now());
  }
  const auto book = Begin();
  Apply(Hang(), book.get());
  book->Publish();
  book->Finish(std::chrono::steady_clock::now());
  for (const json& message : Sent()) {
    EXPECT_EQ(message["incident"], "train-1");
    EXPECT_NE(message["status"], "resolved") << "it hangs again";
  }
}

TEST_F(IncidentAlertsTest, AnAcknowledgementIsReportedAndSharedWithTheRow) {
  const auto book = Begin();
  Flap(1, book.get());
  ASSERT_TRUE(Sends(1, *book));
  Take("train-1", "alice", book.get());
  ASSERT_TRUE(Sends(2, *book));
  EXPECT_EQ(Sent()[1]["status"], "acknowledged");
  EXPECT_EQ(Sent()[1]["acknowledged_by"], "alice");
  Apply(Hang(), book.get());
  EXPECT_EQ(book->reader().All("train")[1].acknowledged().who(), "alice");
}

TEST_F(IncidentAlertsTest, RemindsPeopleUntilTheHangIsAcknowledged) {
  remind_every_ns_ = 50'000'000;
  const auto book = Begin();
  Apply(Hang(), book.get());
  ASSERT_TRUE(Eventually([&] {
    book->Publish();
    return Sent().size() >= 3;
  }));
  EXPECT_EQ(Sent()[1]["status"], "reminder");
  Take("train-1", "alice", book.get());
  const uint64_t told = CountAlerts(*book);
  ASSERT_TRUE(Sends(told, *book));
  timeline_.Now();
  for (int i = 0; i < 10; ++i) book->Publish();
  EXPECT_EQ(CountAlerts(*book), told);
}

}  // namespace
}  // namespace rollcall
