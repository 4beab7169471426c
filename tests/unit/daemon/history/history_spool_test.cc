// SPDX-License-Identifier: Apache-2.0
// What waits on disk for a database.
#include "daemon/history/history_spool.h"

#include <gtest/gtest.h>

#include "daemon/history/history_write.h"
#include "histories.h"
#include "rollcall/v1/store.pb.h"
#include "temporary_tree.h"

namespace rollcall {
namespace {

class HistorySpoolTest : public testing::Test {
 protected:
  std::unique_ptr<HistorySpool> Open(const SpoolLimits& limits = {}) const {
    auto spool = HistorySpool::Open(tree_.root() + "/spool.db", {}, limits);
    EXPECT_TRUE(spool.ok()) << spool.status();
    return spool.ok() ? *std::move(spool) : nullptr;
  }
  // All that waits, as words.
  static std::vector<std::string> Waiting(const HistorySpool& spool) {
    std::vector<std::string> kinds;
    const auto entries = spool.Next(1000);
    EXPECT_TRUE(entries.ok()) << entries.status();
    for (const HistorySpool::Entry& entry : *entries) {
      v1::HistoryWrite write;
      EXPECT_TRUE(write.ParseFromString(entry.write));
      kinds.push_back(write.has_incident() ? write.incident().id() + " " + write.incident().state()
                      : write.has_alert()  ? "alert of " + write.alert().incident()
                                           : "other");
    }
    return kinds;
  }

  const TemporaryTree tree_;
};

TEST_F(HistorySpoolTest, EveryWriteWaitsInItsOrderAndSurvivesARestart) {
  {
    const auto spool = Open();
    ASSERT_TRUE(spool->Apply(WriteOfIncident(OpenIncident("train", 1))).ok());
    ASSERT_TRUE(spool->Apply(WriteOfAlert(Alert("train-1", 1, "confirmed"))).ok());
    ASSERT_TRUE(spool->Apply(WriteOfAlertMark("train-1", 1, "json:1")).ok());
  }
  const auto spool = Open();
  EXPECT_EQ(Waiting(*spool),
            (std::vector<std::string>{"train-1 confirmed", "alert of train-1", "other"}));
  EXPECT_EQ(spool->waiting().count, 3);
  EXPECT_EQ(spool->Load()->open.size(), 1u) << "it is a history as well";
}

// As above: a daemon of the previous release may bring to the database what this one left.
TEST_F(HistorySpoolTest, ThePreviousReleaseFindsNoUnsentAlertThatItDoesNotKnow) {
  const auto spool = Open();
  for (const char* kind : {"confirmed", "annotated"}) {
    v1::HistoryWrite write = WriteOfAlert(Alert("train-1", 1, kind));
    EXPECT_EQ(write.alert().sent(), kind == std::string("annotated"));
    ASSERT_TRUE(spool->Apply(write).ok());
    EXPECT_FALSE(spool->Load()->alerts.at(0).sent) << kind;
  }
}

TEST_F(HistorySpoolTest, ReplacesAnOlderStateOfAnIncidentByTheNewer) {
  const auto spool = Open();
  ASSERT_TRUE(spool->Apply(WriteOfIncident(OpenIncident("train", 1))).ok());
  const auto older = spool->Next(1);
  ASSERT_EQ(older->size(), 1u);
  ASSERT_TRUE(spool->Apply(WriteOfIncident(Incident("train", 1, 1000, "node-1"))).ok());
  ASSERT_TRUE(spool->Remove(*older).ok()) << "the database has the older one now";
  EXPECT_EQ(Waiting(*spool), std::vector<std::string>{"train-1 resolved"});
  ASSERT_TRUE(spool->Remove(*spool->Next(1)).ok());
  EXPECT_EQ(spool->waiting().count, 0);
  EXPECT_EQ(spool->waiting().bytes, 0);
}

TEST_F(HistorySpoolTest, HoldsAPlaceBackWhileAnEarlierIncidentWaits) {
  const auto spool = Open();
  ASSERT_TRUE(spool->Apply(WriteOfIncident(OpenIncident("train", 1))).ok());
  for (int i = 0; i < 5; ++i)
    ASSERT_TRUE(spool->Apply(WriteOfAlertMark("train-1", i, "json:1")).ok());
  const int64_t place = spool->NewestPlace();
  const auto on_its_way = spool->Next(3);
  ASSERT_TRUE(spool->Apply(WriteOfIncident(Incident("train", 1, 1000, "node-1"))).ok());
  ASSERT_TRUE(spool->Remove(*on_its_way).ok());
  int steps = 0;
  for (; !spool->HasBrought(place); ++steps) {
    ASSERT_LT(steps, 10);
    ASSERT_TRUE(spool->Remove(*spool->Next(1)).ok());
  }
  EXPECT_GT(steps, 0);
  EXPECT_TRUE(spool->WaitingIncidents()->empty());
  ASSERT_TRUE(spool->Apply(WriteOfIncident(OpenIncident("train", 2))).ok());
  EXPECT_TRUE(spool->HasBrought(place));
  EXPECT_FALSE(spool->HasBrought(spool->NewestPlace()));
}

TEST_F(HistorySpoolTest, WhatIsTooMuchLosesItsOldestAndCountsThem) {
  SpoolLimits limits;
  limits.bytes = 200'000;
  const auto spool = Open(limits);
  for (int i = 1; i <= 100; ++i) {
    v1::Incident incident = Incident("train", i, 1000 + i, "node-1");
    incident.mutable_stacks(0)->set_error(std::string(10'000, 'x'));
    ASSERT_TRUE(spool->Apply(WriteOfIncident(incident)).ok());
  }
  const HistorySpool::Waiting waiting = spool->waiting();
  EXPECT_LE(waiting.bytes, limits.bytes);
  EXPECT_EQ(waiting.count + waiting.lost, 100);
  EXPECT_EQ(Waiting(*spool).back(), "train-100 resolved");
}

// What a daemon writes, replayed into another history, makes that history the same.
TEST_F(HistorySpoolTest, AReplayMakesAnotherHistoryTheSame) {
  const auto spool = Open();
  AttemptFacts facts = {8, "SLURM_RESTART_COUNT=1", "1000 node-1:29500", true, {}};
  facts.members = {{{"a", 7, UINT64_MAX}, 0}};
  v1::Silence silence;
  silence.set_id("silence-1");
  silence.set_job("train*");
  ASSERT_TRUE(spool->Apply(WriteOfIncident(OpenIncident("train", 1))).ok());
  ASSERT_TRUE(spool->Apply(WriteOfAlert(Alert("train-1", 1, "confirmed"))).ok());
  ASSERT_TRUE(spool->Apply(WriteOfAlertMark("train-1", 1, "json:1")).ok());
  ASSERT_TRUE(spool->Apply(WriteOfHosts(JobKey("train", 2), {"a", "b"}, 5)).ok());
  ASSERT_TRUE(spool->Apply(WriteOfHosts(JobKey("gone"), {"c"}, 5)).ok());
  ASSERT_TRUE(spool->Apply(WriteOfForgottenHosts(JobKey("gone"))).ok());
  ASSERT_TRUE(
      spool->Apply(WriteOfAttempts({{JobKey("train", 2), facts}, {JobKey("gone"), facts}}, 5))
          .ok());
  ASSERT_TRUE(spool->Apply(WriteOfForgottenAttempt(JobKey("gone"))).ok());
  ASSERT_TRUE(spool->Apply(WriteOfAction({5, "me", "acknowledge", "train-1", "127.0.0.1"})).ok());
  ASSERT_TRUE(spool->Apply(WriteOfSilence(silence)).ok());

  auto other = SqliteHistory::Open("", {});
  ASSERT_TRUE(other.ok());
  const auto entries = spool->Next(100);
  ASSERT_TRUE(entries.ok());
  for (const HistorySpool::Entry& entry : *entries) {
    v1::HistoryWrite write;
    ASSERT_TRUE(write.ParseFromString(entry.write));
    ASSERT_TRUE((*other)->Apply(write).ok());
  }
  const auto kept = (*other)->Load();
  ASSERT_TRUE(kept.ok()) << kept.status();
  ASSERT_EQ(kept->open.size(), 1u);
  EXPECT_EQ(kept->open[0].stacks(0).pid(), 4711);
  ASSERT_EQ(kept->alerts.size(), 1u);
  EXPECT_EQ(kept->alerts[0].made_ns, 2000 * kSecond);
  EXPECT_EQ(kept->alerts[0].receivers, std::set<std::string>{"json:1"});
  EXPECT_EQ(kept->hosts,
            (std::map<JobKey, std::set<std::string>>{{JobKey("train", 2), {"a", "b"}}}));
  ASSERT_EQ(kept->attempts.size(), 1u);
  EXPECT_EQ(kept->attempts.begin()->second.launch, "1000 node-1:29500");
  EXPECT_EQ(kept->attempts.begin()->second.members[0].process.start_time, UINT64_MAX);
  ASSERT_EQ(kept->silences.size(), 1u);
  EXPECT_EQ(kept->silences[0].job(), "train*");
}

TEST_F(HistorySpoolTest, AWriteOfALaterReleaseIsRefusedAndNotGuessed) {
  auto history = SqliteHistory::Open("", {});
  ASSERT_TRUE(history.ok());
  EXPECT_TRUE(absl::IsInvalidArgument((*history)->Apply(v1::HistoryWrite())));
}

}  // namespace
}  // namespace rollcall
