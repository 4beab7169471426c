// SPDX-License-Identifier: Apache-2.0
// What a silence or the quota of a job that flaps holds back, and until when.
#include <gtest/gtest.h>
#include <time.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <iterator>
#include <map>
#include <string>

#include "daemon/history/history_write.h"
#include "daemon/incidents/incident_book.h"
#include "eventually.h"
#include "incident_book_fixture.h"

namespace rollcall {
namespace {

TEST_F(IncidentBookTest, AJobThatHangsInManyPlacesIsAnnouncedSixTimes) {
  const auto book = Begin();
  Flap(20, book.get(), /*is_other=*/true);
  EXPECT_TRUE(Sends(6, *book)) << "the ends wait until the job is calm";
  EXPECT_EQ(CountAlerts(*book), 6u);
  EXPECT_EQ(CountDropped(Dropped::kAlerts), 14u);
  const auto incidents = book->reader().All("train");
  ASSERT_EQ(incidents.size(), 20u);
  for (size_t i = 0; i < 20; ++i) EXPECT_EQ(incidents[i].alert_held_back(), i >= 6) << i;
  EXPECT_FALSE(incidents[4].repeat().holds_back());
  EXPECT_TRUE(incidents[5].repeat().holds_back()) << "its message says what becomes of others";
}

TEST_F(IncidentBookTest, OneAlertTellsOfTheHangsThatWereHeldBack) {
  const std::string sent = tree_.root() + "/sent";
  alert_command_ = "cat >> " + sent + "; echo >> " + sent;
  quota_.alerts = 1;
  quota_.lasting_ns = 0;
  const auto book = Begin();
  Flap(3, book.get(), /*is_other=*/true);
  book->Publish();
  EXPECT_TRUE(Sends(1, *book)) << "those that are over wait for the end of the hour";
  Apply(HangOf(next_rank_), book.get());
  book->Publish();
  EXPECT_TRUE(Sends(2, *book));
  const std::string text = ReadAll(sent);
  EXPECT_NE(text.find("flapping: 3 more incidents in the last hour; the newest: rank 3 has not"),
            std::string::npos)
      << text;
  EXPECT_FALSE(book->reader().All("train").back().alert_held_back());
  book->Forget(JobKey("train"), timeline_.Now());
  EXPECT_TRUE(Sends(3, *book)) << "its end";
}

v1::Silence OfAllJobs() {
  v1::Silence silence;
  silence.set_job("*");
  return silence;
}

TEST_F(IncidentBookTest, ASilenceHoldsBackTheAlertUntilItEnds) {
  const auto book = Begin();
  const auto silence = book->actions().AddSilence(OfAllJobs(), 3600, "ada", Tenants::All());
  ASSERT_TRUE(silence.ok()) << silence.status();
  Apply(Hang(), book.get());
  book->Publish();
  EXPECT_EQ(CountAlerts(*book), 0u);
  EXPECT_EQ(book->reader().All("train")[0].silenced().who(), "ada");
  EXPECT_EQ(book->reader().ListSilences(Tenants::All())[0].incidents(), 1);
  EXPECT_EQ(book->reader().CountDeliveries().alerts_silenced, 1u);
  ASSERT_TRUE(book->actions().EndSilence(silence->id(), Tenants::All()).ok());
  book->Publish();
  EXPECT_TRUE(Sends(1, *book));
  EXPECT_FALSE(book->reader().All("train")[0].has_silenced());
  book->Publish();
  EXPECT_EQ(CountAlerts(*book), 1u) << "once";
}

// A book that writes into the same store stands for another daemon.
TEST_F(IncidentBookTest, ASilenceOfAnotherDaemonHoldsBackTheAlertUntilItEnds) {
  const auto book = Begin();
  book->actions().RefreshSilences();
  v1::Silence silence = OfAllJobs();
  silence.set_id("silence-1-other");
  silence.set_who("bob");
  silence.mutable_until()->set_seconds(time(nullptr) + 3600);
  ASSERT_TRUE(OpenHistory()->Apply(WriteOfSilence(silence)).ok());
  book->actions().RefreshSilences();
  ASSERT_EQ(book->reader().ListSilences(Tenants::All()).size(), 1u);
  Apply(Hang(), book.get());
  book->Publish();
  EXPECT_EQ(CountAlerts(*book), 0u);
  EXPECT_EQ(book->reader().All("train")[0].silenced().who(), "bob");
  silence.mutable_until()->set_seconds(time(nullptr) - 1);
  ASSERT_TRUE(book->actions().AddSilence(OfAllJobs(), 3600, "ada", Tenants::All()).ok());
  book->actions().AwaitSaved();  // what it counted on bob's silence, too
  ASSERT_TRUE(OpenHistory()->Apply(WriteOfSilence(silence)).ok());
  book->actions().RefreshSilences();
  ASSERT_EQ(book->reader().ListSilences(Tenants::All()).size(), 1u);
  EXPECT_EQ(book->reader().ListSilences(Tenants::All())[0].who(), "ada");
}

TEST_F(IncidentBookTest, AHangThatIsOverBeforeItsSilenceEndsIsNeverAnnounced) {
  const auto book = Begin();
  const auto silence = book->actions().AddSilence(OfAllJobs(), 3600, "ada", Tenants::All());
  ASSERT_TRUE(silence.ok()) << silence.status();
  Flap(3, book.get());
  ASSERT_TRUE(book->actions().EndSilence(silence->id(), Tenants::All()).ok());
  book->Publish();
  EXPECT_EQ(CountAlerts(*book), 0u);
  EXPECT_TRUE(book->reader().All("train")[0].has_silenced()) << "why nobody was told";
}

TEST_F(IncidentBookTest, TheEndOfAnAnnouncedHangIsReportedDespiteASilence) {
  const auto book = Begin();
  Apply(Hang(), book.get());
  EXPECT_TRUE(Sends(1, *book));
  ASSERT_TRUE(book->actions().AddSilence(OfAllJobs(), 3600, "ada", Tenants::All()).ok());
  EXPECT_TRUE(book->reader().All("train")[0].has_silenced());
  EXPECT_EQ(book->reader().CountDeliveries().alerts_silenced, 0u) << "nothing of it is held back";
  const v1::Silence silence = book->reader().ListSilences(Tenants::All())[0];
  EXPECT_EQ(silence.incidents(), 1);
  EXPECT_EQ(silence.alerted_incidents(), 1) << "people had heard of it";
  book->Forget(JobKey("train"), timeline_.Now());
  EXPECT_TRUE(Sends(2, *book));
}

TEST_F(IncidentBookTest, ASilenceAndWhatItHoldsBackOutliveTheDaemon) {
  {
    const auto book = Begin();
    ASSERT_TRUE(book->actions().AddSilence(OfAllJobs(), 3600, "ada", Tenants::All()).ok());
    Apply(Hang(), book.get());
    book->Publish();
    book->Finish(std::chrono::steady_clock::now());
  }
  const auto book = Begin();
  const auto silences = book->reader().ListSilences(Tenants::All());
  ASSERT_EQ(silences.size(), 1u);
  EXPECT_EQ(silences[0].incidents(), 1);
  Apply(Hang(), book.get());
  book->Publish();
  EXPECT_EQ(CountAlerts(*book), 0u);
  EXPECT_EQ(book->reader().ListSilences(Tenants::All())[0].incidents(), 1) << "counted once";
  ASSERT_TRUE(book->actions().EndSilence(silences[0].id(), Tenants::All()).ok());
  book->Publish();
  EXPECT_TRUE(Sends(1, *book));
}

TEST_F(IncidentBookTest, EachSilenceThatFitsCountsTheIncidentOnce) {
  const auto counts = [](const IncidentBook& book) {
    std::map<std::string, int> counts;
    for (const v1::Silence& one : book.reader().ListSilences(Tenants::All()))
      counts[one.comment()] = one.incidents();
    return counts;
  };
  const auto add = [](const char* comment, const char* job, IncidentBook* book) {
    v1::Silence silence;
    silence.set_job(job);
    silence.set_comment(comment);
    ASSERT_TRUE(book->actions().AddSilence(silence, 3600, "ada", Tenants::All()).ok());
  };
  using Counts = std::map<std::string, int>;
  {
    const auto book = Begin();
    add("all", "*", book.get());
    add("train", "train", book.get());
    add("other", "other", book.get());
    Apply(Hang(), book.get());
    book->Publish();
    EXPECT_EQ(counts(*book), (Counts{{"all", 1}, {"train", 1}, {"other", 0}}));
    add("late", "t*", book.get());
    book->Publish();
    EXPECT_EQ(counts(*book), (Counts{{"all", 1}, {"train", 1}, {"other", 0}, {"late", 1}}));
    EXPECT_EQ(book->reader().CountDeliveries().alerts_silenced, 1u);
    book->Finish(std::chrono::steady_clock::now());
  }
  const auto book = Begin();
  Apply(Hang(), book.get());
  book->Publish();
  EXPECT_EQ(counts(*book), (Counts{{"all", 1}, {"train", 1}, {"other", 0}, {"late", 1}}));
  for (const v1::Silence& one : book->reader().ListSilences(Tenants::All())) {
    ASSERT_TRUE(book->actions().EndSilence(one.id(), Tenants::All()).ok());
  }
  book->Publish();
  EXPECT_TRUE(Sends(1, *book));
  add("after the alert", "*", book.get());
  book->Publish();
  EXPECT_EQ(counts(*book), (Counts{{"after the alert", 1}}));
}

TEST_F(IncidentBookTest, WhatExceedsTheIncidentsOfAnHourIsCountedAndNotStored) {
  quota_.incidents = 5;
  report_dir_ = tree_.root() + "/reports";
  const auto book = Begin();
  Flap(20, book.get());
  EXPECT_EQ(book->reader().All("train").size(), 5u);
  EXPECT_EQ(CountDropped(Dropped::kIncidents), 15u);
  book->BeginStop();
  book->Publish();
  book->Finish(std::chrono::steady_clock::now());
  EXPECT_EQ(LastStored(), 5);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(report_dir_), {}), 5);
}

TEST_F(IncidentBookTest, AHangThatLastsIsStoredWhateverCameBefore) {
  quota_.incidents = 1;
  quota_.lasting_ns = 1'000'000'000;
  alert_command_ = "";
  const auto book = Begin();
  Flap(3, book.get());
  book->Apply(RunningJob(), Hang(), timeline_.Now());
  book->Publish();
  ASSERT_EQ(book->reader().All("train").size(), 2u) << "shown while it lasts";
  EXPECT_NE(book->reader().All("train").back().report_note(), "");
  EXPECT_TRUE(Eventually([&] {
    book->Publish();
    return book->reader().All("train").back().report_note().empty();
  }));
  book->Finish(std::chrono::steady_clock::now());
  EXPECT_EQ(LastStored(), 4);
}

}  // namespace
}  // namespace rollcall
