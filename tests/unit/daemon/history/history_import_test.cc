// SPDX-License-Identifier: Apache-2.0
// The history of a daemon alone, copied into a real database.
#include "daemon/history/history_import.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sqlite3.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "daemon/history/history_write.h"
#include "daemon/history/postgres_history.h"
#include "daemon/history/sqlite_database.h"
#include "daemon/history/sqlite_history.h"
#include "histories.h"
#include "postgres_server.h"
#include "temporary_tree.h"

namespace rollcall {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class HistoryImportTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!TestServer()->problem().empty()) GTEST_SKIP() << TestServer()->problem();
    auto file = SqliteHistory::Open(Path(), {});
    ASSERT_TRUE(file.ok()) << file.status();
    from_ = *std::move(file);
    to_ = OpenDatabase("daemon-1");
  }

  std::string Path() const { return tree_.root() + "/history.db"; }
  std::unique_ptr<PostgresHistory> OpenDatabase(const std::string& daemon) const {
    auto history = PostgresHistory::Open({TestServer()->Url(schema_), daemon, {}, ""}, {});
    EXPECT_TRUE(history.ok()) << history.status();
    return history.ok() ? *std::move(history) : nullptr;
  }
  ImportCounts Import() {
    const auto counts = ImportHistory(*from_, to_.get(), {});
    EXPECT_TRUE(counts.ok()) << counts.status();
    return counts.value_or(ImportCounts());
  }
  // An open incident with a note, of which one alert is sent and another is not.
  void FillWithAnOpenIncident() {
    v1::Incident incident = OpenIncident("train", 7);
    incident.add_notes()->set_text("new switch");
    ASSERT_TRUE(from_->Apply(WriteOfIncident(incident)).ok());
    AlertRow sent = Alert("train-7", 1, "confirmed");
    sent.sent = true;
    ASSERT_TRUE(from_->Apply(WriteOfAlert(sent)).ok());
    ASSERT_TRUE(from_->Apply(WriteOfAlert(Alert("train-7", 2, "updated"))).ok());
    ASSERT_TRUE(from_->Apply(WriteOfAlertMark("train-7", 2, "slack")).ok());
    ASSERT_TRUE(from_->Apply(WriteOfHosts(JobKey("train"), {"node-1", "node-2"}, 5)).ok());
    AttemptFacts facts;
    facts.world_size = 8;
    facts.members = {{{"node-1", 4711, 99}, 3}};
    ASSERT_TRUE(from_->Apply(WriteOfAttempts({{JobKey("train"), facts}}, 5)).ok());
  }

  const TemporaryTree tree_;
  const std::string schema_ = "i" + absl::StrCat(std::filesystem::hash_value(tree_.root()));
  std::unique_ptr<SqliteHistory> from_;
  std::unique_ptr<PostgresHistory> to_;
};

TEST_F(HistoryImportTest, CopiesIncidentsOfAllTimesWithTheirStacks) {
  for (int i = 1; i <= 120; ++i) {
    ASSERT_TRUE(from_->Apply(WriteOfIncident(Incident("train", i, i * 43200, "node-1"))).ok());
  }
  const ImportCounts counts = Import();
  EXPECT_EQ(counts.incidents, 120);
  EXPECT_EQ(Ids(*to_), Ids(*from_));
  const auto copied = to_->Get("train-60");
  ASSERT_TRUE(copied.ok()) << copied.status();
  EXPECT_EQ(copied->SerializeAsString(), from_->Get("train-60")->SerializeAsString());
  EXPECT_EQ(LastNumber(*to_, JobId(JobKey("train"))), 120);
}

TEST_F(HistoryImportTest, ADaemonContinuesWhatWasOpen) {
  FillWithAnOpenIncident();
  v1::Silence silence;
  silence.set_id("s-1");
  silence.mutable_until()->set_seconds(4'000'000'000);
  ASSERT_TRUE(from_->Apply(WriteOfSilence(silence)).ok());
  const ImportCounts counts = Import();
  EXPECT_EQ(counts.jobs, 1);
  EXPECT_EQ(counts.silences, 1);

  const auto next = OpenDatabase("daemon-1")->Load();
  ASSERT_TRUE(next.ok()) << next.status();
  ASSERT_EQ(next->open.size(), 1u);
  EXPECT_EQ(next->open[0].notes(0).text(), "new switch");
  ASSERT_EQ(next->alerts.size(), 2u);
  EXPECT_TRUE(next->alerts[0].sent);
  EXPECT_FALSE(next->alerts[1].sent);
  EXPECT_THAT(next->alerts[1].receivers, ElementsAre("slack"));
  EXPECT_THAT(next->hosts.at(JobKey("train")), ElementsAre("node-1", "node-2"));
  EXPECT_EQ(next->attempts.at(JobKey("train")).world_size, 8);
  EXPECT_EQ(next->attempts.at(JobKey("train")).members.size(), 1u);
  EXPECT_EQ(next->silences.size(), 1u);
}

TEST_F(HistoryImportTest, ASecondTimeItChangesNothing) {
  FillWithAnOpenIncident();
  Import();
  // Meanwhile a daemon has sent the alert, and ended the incident and the job.
  ASSERT_TRUE(to_->Apply(WriteOfAlertMark("train-7", 2, "")).ok());
  v1::Incident ended = OpenIncident("train", 7);
  ended.set_state("resolved");
  *ended.mutable_closed_at() = ended.opened_at();
  ASSERT_TRUE(to_->Apply(WriteOfIncident(ended)).ok());
  const ImportCounts again = Import();
  EXPECT_EQ(again.incidents, 0);
  EXPECT_EQ(again.known, 1);
  EXPECT_EQ(again.jobs, 0);
  EXPECT_EQ(to_->Get("train-7")->state(), "resolved");
  for (const AlertRow& alert : to_->LoadJob(JobId(JobKey("train")))->alerts) {
    EXPECT_TRUE(alert.sent);
  }
}

TEST_F(HistoryImportTest, NamesIncidentsWhoseIdAnotherOneHas) {
  ASSERT_TRUE(to_->Apply(WriteOfIncident(Incident("train", 1, 5000, "node-9"))).ok());
  ASSERT_TRUE(from_->Apply(WriteOfIncident(Incident("train", 1, 1000, "node-1"))).ok());
  ASSERT_TRUE(from_->Apply(WriteOfIncident(Incident("train", 2, 2000, "node-1"))).ok());
  const ImportCounts counts = Import();
  EXPECT_EQ(counts.incidents, 1);
  EXPECT_THAT(counts.clashes, ElementsAre("train-1"));
  EXPECT_EQ(to_->Get("train-1")->verdicts(0).culprits(0).host(), "node-9");
}

TEST_F(HistoryImportTest, GoesOnWhereItHasStopped) {
  for (int i = 1; i <= 60; ++i) {
    ASSERT_TRUE(from_->Apply(WriteOfIncident(Incident("train", i, i * 1000, "node-1"))).ok());
  }
  ASSERT_TRUE(to_->Apply(WriteOfIncident(*from_->Get("train-60"))).ok());
  const ImportCounts counts = Import();
  EXPECT_EQ(counts.incidents, 59);
  EXPECT_EQ(counts.known, 1);
}

std::string WhyNot(const std::string& path) {
  return std::string(SqliteHistory::OpenExisting(path).status().message());
}

TEST(OpenExistingTest, RefusesWhatIsNotAHistoryAndLeavesItAsItIs) {
  const TemporaryTree tree;
  const std::string path = tree.root() + "/history.db";
  EXPECT_THAT(WhyNot(path), HasSubstr("unable to open"));
  EXPECT_FALSE(std::filesystem::exists(path));

  std::ofstream(path) << std::string(10'000, 'x');
  EXPECT_THAT(WhyNot(path), HasSubstr("not a database"));
  EXPECT_EQ(std::filesystem::file_size(path), 10'000u);
  std::filesystem::remove(path);

  sqlite3* db = nullptr;
  ASSERT_EQ(sqlite3_open(path.c_str(), &db), SQLITE_OK);
  SqliteDatabase other(db);
  ASSERT_TRUE(Sql(&other, "CREATE TABLE recipes (name TEXT)").Run().ok());
  EXPECT_THAT(WhyNot(path), HasSubstr("not a history of rollcalld"));
  EXPECT_EQ(ReadInteger(&other, "SELECT count(*) FROM sqlite_master"), 1);
}

TEST(OpenExistingTest, RefusesTheHistoryOfALaterRelease) {
  const TemporaryTree tree;
  const std::string path = tree.root() + "/history.db";
  ASSERT_TRUE(SqliteHistory::Open(path, {}).ok());
  EXPECT_EQ(WhyNot(path), "");
  sqlite3* db = nullptr;
  ASSERT_EQ(sqlite3_open(path.c_str(), &db), SQLITE_OK);
  SqliteDatabase later(db);
  ASSERT_TRUE(Sql(&later, "PRAGMA user_version = 1000").Run().ok());
  EXPECT_THAT(WhyNot(path), HasSubstr("later release"));
}

}  // namespace
}  // namespace rollcall
