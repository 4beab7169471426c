// SPDX-License-Identifier: Apache-2.0
// Queries over all history, on a real file of SQLite and on a real server of PostgreSQL.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sqlite3.h>

#include <filesystem>
#include <limits>

#include "absl/strings/str_cat.h"
#include "base/durations.h"
#include "daemon/history/history_week.h"
#include "daemon/history/history_write.h"
#include "daemon/history/postgres_history.h"
#include "daemon/history/sqlite_database.h"
#include "daemon/history/sqlite_history.h"
#include "histories.h"
#include "postgres_server.h"
#include "temporary_tree.h"

namespace rollcall {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::IsEmpty;

enum class Store { kSqlite, kPostgres };

constexpr int64_t kFirstWeek = 2900;  // in 2025
constexpr int64_t kWeekS = kWeekNs / kSecond;
constexpr int64_t kBeginS = (kFirstMondayNs + kFirstWeek * kWeekNs) / kSecond;

class HistoryQuestionsTest : public testing::TestWithParam<Store> {
 protected:
  void SetUp() override {
    if (GetParam() == Store::kSqlite) return;
    if (!TestServer()->problem().empty()) GTEST_SKIP() << TestServer()->problem();
  }
  std::unique_ptr<History> Open(const HistoryLimits& limits = {}) const {
    if (GetParam() == Store::kSqlite) {
      auto history = SqliteHistory::Open(file(), limits);
      EXPECT_TRUE(history.ok()) << history.status();
      return *std::move(history);
    }
    auto history = PostgresHistory::Open({TestServer()->Url(schema()), "daemon-1", {}, ""}, limits);
    EXPECT_TRUE(history.ok()) << history.status();
    return *std::move(history);
  }
  // A connection of somebody else, to the same tables.
  std::unique_ptr<SqlDatabase> Connect() const {
    if (GetParam() == Store::kPostgres) {
      auto db = PostgresDatabase::Connect(TestServer()->Url(schema()), {});
      EXPECT_TRUE(db.ok()) << db.status();
      return *std::move(db);
    }
    sqlite3* db = nullptr;
    EXPECT_EQ(sqlite3_open(file().c_str(), &db), SQLITE_OK);
    return std::make_unique<SqliteDatabase>(db);
  }
  void Run(const std::string& text) const {
    const auto db = Connect();
    const absl::Status status = Sql(db.get(), text).Run();
    EXPECT_TRUE(status.ok()) << text << ": " << status;
  }
  int64_t Read(const std::string& text) const { return ReadInteger(Connect().get(), text); }

  fs::path file() const { return fs::path(tree_.root()) / "history.db"; }
  std::string schema() const { return "t" + absl::StrCat(fs::hash_value(tree_.root())); }

  const TemporaryTree tree_;
};

INSTANTIATE_TEST_SUITE_P(Stores, HistoryQuestionsTest,
                         testing::Values(Store::kSqlite, Store::kPostgres),
                         [](const testing::TestParamInfo<Store>& store) {
                           return store.param == Store::kSqlite ? "Sqlite" : "Postgres";
                         });

v1::Incident Hang(int number, int64_t opened_s, const std::string& host,
                  const std::string& cause = "missing_rank", const std::string& tenant = "") {
  v1::Incident incident = Confirmed(number, opened_s, host, absl::StrCat("c", number));
  incident.set_tenant(tenant);
  incident.set_ranks(8);
  incident.mutable_verdicts(0)->set_cause(cause);
  return incident;
}

v1::CountIncidentsRequest By(const std::string& kind) {
  v1::CountIncidentsRequest request;
  request.set_by(kind);
  return request;
}

// "node-1 2" for each value.
std::vector<std::string> Ask(const History& history, const v1::CountIncidentsRequest& request) {
  std::vector<std::string> lines;
  const auto answer = history.Ask(request);
  EXPECT_TRUE(answer.ok()) << answer.status();
  if (!answer.ok()) return lines;
  for (const v1::IncidentCount& count : answer->counts()) {
    lines.push_back(absl::StrCat(count.value(), " ", count.incidents()));
  }
  return lines;
}

void SaveAll(History* history, const std::vector<v1::Incident>& incidents) {
  for (const v1::Incident& incident : incidents) {
    const absl::Status saved = history->Apply(WriteOfIncident(incident));
    ASSERT_TRUE(saved.ok()) << saved;
  }
}

TEST_P(HistoryQuestionsTest, TellsWhichHostsComeBack) {
  const auto history = Open();
  v1::Incident certain = Hang(3, kBeginS + 30, "node-1");
  certain.mutable_verdicts(0)->set_certainty("certain");
  SaveAll(history.get(),
          {Hang(1, kBeginS + 10, "node-1"), Hang(2, kBeginS + 20, "node-2"), certain});
  const auto answer = history->Ask(By("host"));
  ASSERT_TRUE(answer.ok()) << answer.status();
  ASSERT_EQ(answer->counts_size(), 2);
  EXPECT_EQ(answer->total(), 2);
  const v1::IncidentCount& first = answer->counts(0);
  EXPECT_EQ(first.value(), "node-1");
  EXPECT_EQ(first.incidents(), 2);
  EXPECT_EQ(first.certain_incidents(), 1);
  EXPECT_EQ(first.lost_rank_seconds(), 2 * 8 * 60);
  EXPECT_EQ(first.newest(), "train-3");
  EXPECT_EQ(first.last().seconds(), kBeginS + 30);
}

TEST_P(HistoryQuestionsTest, CountsTheNewestStateOfAnIncidentOnce) {
  const auto history = Open();
  v1::Incident incident = Hang(1, kBeginS, "node-1");
  incident.clear_confirmed_at();
  SaveAll(history.get(), {incident});
  EXPECT_THAT(Ask(*history, By("host")), IsEmpty()) << "nobody has confirmed it";
  SaveAll(history.get(), {Hang(1, kBeginS, "node-1"), Hang(1, kBeginS, "node-2")});
  EXPECT_THAT(Ask(*history, By("host")), ElementsAre("node-2 1"));
}

TEST_P(HistoryQuestionsTest, FiltersByTimeCauseTenantAndJob) {
  const auto history = Open();
  v1::Incident other_job = Hang(5, kBeginS + 50, "node-5");
  other_job.set_job("other");
  SaveAll(history.get(),
          {Hang(1, kBeginS + 10, "node-1"), Hang(2, kBeginS + 20, "node-2", "rank_died"),
           Hang(3, kBeginS + 30, "node-3", "missing_rank", "vision"), other_job});
  v1::CountIncidentsRequest request = By("host");
  request.mutable_from()->set_seconds(kBeginS + 20);
  request.mutable_until()->set_seconds(kBeginS + 50);
  EXPECT_THAT(Ask(*history, request), ElementsAre("node-2 1", "node-3 1")) << "until: not with it";
  request = By("host");
  request.set_cause("rank_died");
  EXPECT_THAT(Ask(*history, request), ElementsAre("node-2 1"));
  request = By("host");
  request.set_tenant("vision");
  EXPECT_THAT(Ask(*history, request), ElementsAre("node-3 1"));
  request.add_tenants("default");
  EXPECT_THAT(Ask(*history, request), IsEmpty())
      << "who sees another tenant sees nothing of this one";
  request = By("host");
  request.set_job("other");
  EXPECT_THAT(Ask(*history, request), ElementsAre("node-5 1"));
  request = By("job");
  request.set_limit(1);
  EXPECT_THAT(Ask(*history, request), ElementsAre("train 3"));
}

// The same answers before and after the weeks were counted, whatever the query selects.
TEST_P(HistoryQuestionsTest, CountedWeeksChangeNoAnswer) {
  const auto history = Open();
  std::vector<v1::Incident> incidents;
  for (int i = 0; i < 60; ++i) {
    incidents.push_back(Hang(i + 1, kBeginS + i * kWeekS / 10, absl::StrCat("node-", i % 7),
                             i % 3 == 0 ? "rank_died" : "missing_rank",
                             i % 4 == 0 ? "vision" : ""));
  }
  SaveAll(history.get(), incidents);
  std::vector<v1::CountIncidentsRequest> requests;
  for (const char* kind : {"host", "cause", "tenant", "job"}) {
    for (const char* cause : {"", "rank_died"}) {
      for (const char* tenant : {"", "vision"}) {
        for (const int64_t shift_s : {int64_t{0}, kWeekS / 3}) {
          v1::CountIncidentsRequest request = By(kind);
          request.set_cause(cause);
          request.set_tenant(tenant);
          request.mutable_from()->set_seconds(kBeginS + kWeekS + shift_s);
          request.mutable_until()->set_seconds(kBeginS + 5 * kWeekS + shift_s);
          requests.push_back(request);
        }
      }
    }
  }
  const auto ask_all = [&] {
    std::vector<std::string> answers;
    for (const v1::CountIncidentsRequest& request : requests) {
      const auto answer = history->Ask(request);
      EXPECT_TRUE(answer.ok()) << answer.status();
      answers.push_back(answer->DebugString());
    }
    return answers;
  };
  const std::vector<std::string> before = ask_all();
  const int64_t now_ns = (kBeginS + 6 * kWeekS) * kSecond + 2 * 3600 * kSecond;
  ASSERT_TRUE(history->Trim(now_ns).ok());
  ASSERT_TRUE(history->Trim(now_ns).ok());  // some weeks at once
  EXPECT_EQ(Read("SELECT count(*) FROM counted_weeks WHERE mark = 1"), 6);
  EXPECT_EQ(ask_all(), before);
  // The answers come from the counts: other counts give another answer.
  Run("UPDATE week_counts SET incidents = incidents + 1000");
  EXPECT_NE(ask_all(), before);
}

TEST_P(HistoryQuestionsTest, AChangeOfAnOldIncidentCountsAtOnce) {
  const auto history = Open();
  SaveAll(history.get(), {Hang(1, kBeginS, "node-1"), Hang(2, kBeginS + 1, "node-1")});
  const int64_t now_ns = (kBeginS + 2 * kWeekS) * kSecond;
  ASSERT_TRUE(history->Trim(now_ns).ok());
  ASSERT_EQ(Read("SELECT count(*) FROM counted_weeks WHERE mark = 1"), 1);
  SaveAll(history.get(), {Hang(2, kBeginS + 1, "node-2")});
  EXPECT_THAT(Ask(*history, By("host")), ElementsAre("node-1 1", "node-2 1"));
  ASSERT_TRUE(history->Trim(now_ns).ok());
  EXPECT_EQ(Read("SELECT count(*) FROM counted_weeks WHERE mark = 1"), 1);
  EXPECT_THAT(Ask(*history, By("host")), ElementsAre("node-1 1", "node-2 1"));
}

TEST_P(HistoryQuestionsTest, TheWeekThatRunsIsNotCounted) {
  const auto history = Open();
  SaveAll(history.get(), {Hang(1, kBeginS, "node-1")});
  ASSERT_TRUE(history->Trim((kBeginS + kWeekS) * kSecond + 60 * kSecond).ok());
  EXPECT_EQ(Read("SELECT count(*) FROM counted_weeks"), 0) << "a daemon's clock may be behind";
}

TEST_P(HistoryQuestionsTest, ForgetsWhatTheHistoryForgets) {
  HistoryLimits limits;
  limits.keep_ns = 3 * kWeekNs;
  const auto history = Open(limits);
  SaveAll(history.get(), {Hang(1, kBeginS, "node-1"), Hang(2, kBeginS + 6 * kWeekS, "node-2")});
  ASSERT_TRUE(history->Trim((kBeginS + 2 * kWeekS) * kSecond).ok());
  ASSERT_EQ(Read("SELECT count(*) FROM counted_weeks WHERE mark = 1"), 1);
  ASSERT_TRUE(history->Trim((kBeginS + 7 * kWeekS) * kSecond).ok());
  EXPECT_THAT(Ask(*history, By("host")), ElementsAre("node-2 1"));
  EXPECT_EQ(Read("SELECT count(*) FROM incident_facts WHERE value = 'node-1'"), 0);
  EXPECT_EQ(Read("SELECT count(*) FROM week_counts WHERE value = 'node-1'"), 0);
}

TEST_P(HistoryQuestionsTest, FillsInTheFactsOfIncidentsThatAnEarlierReleaseSaved) {
  const int64_t now_ns = (kBeginS + 3 * kWeekS) * kSecond;
  {
    const auto history = Open();
    for (int i = 0; i < 30; ++i) {
      SaveAll(history.get(), {Hang(i + 1, kBeginS + i * 1000, absl::StrCat("node-", i % 2))});
    }
    ASSERT_TRUE(history->Trim(now_ns).ok());
    // As the earlier release leaves it.
    Run("DELETE FROM incident_facts");
    Run("DELETE FROM week_counts");
    Run("DELETE FROM counted_weeks");
    Run(absl::StrCat("UPDATE facts_filled SET below_ns = ", std::numeric_limits<int64_t>::max()));
  }
  const auto history = Open();
  EXPECT_THAT(Ask(*history, By("host")), IsEmpty());
  ASSERT_TRUE(history->Trim(now_ns).ok());
  EXPECT_THAT(Ask(*history, By("host")), ElementsAre("node-0 15", "node-1 15"));
  // It wrote once more, beside this release.
  SaveAll(history.get(), {Hang(31, kBeginS + 3 * kWeekS - 5, "node-9")});
  Run("DELETE FROM incident_facts WHERE incident = 'train-31'");
  const auto next = Open();
  ASSERT_TRUE(next->Trim(now_ns).ok());
  EXPECT_THAT(Ask(*next, By("host")), ElementsAre("node-0 15", "node-1 15", "node-9 1"));
}

TEST_P(HistoryQuestionsTest, ManyGapsBetweenTheWeeksAreNotAProblem) {
  const auto history = Open();
  const int64_t now_ns = (kBeginS + 45 * kWeekS) * kSecond;
  for (int week = 0; week < 44; ++week) {
    SaveAll(history.get(), {Hang(week + 1, kBeginS + week * kWeekS, "node-1")});
  }
  HistoryLimits keep;
  keep.keep_ns = 1000 * kWeekNs;
  const auto counting = Open(keep);
  for (int i = 0; i < 12; ++i) ASSERT_TRUE(counting->Trim(now_ns).ok());
  ASSERT_EQ(Read("SELECT count(*) FROM counted_weeks WHERE mark = 1"), 44);
  Run("UPDATE counted_weeks SET mark = 0 WHERE week % 2 = 0");
  EXPECT_THAT(Ask(*counting, By("host")), ElementsAre("node-1 44"));
}

TEST_P(HistoryQuestionsTest, RowsOnlyLeavesOutWhatCostsMuch) {
  const auto history = Open();
  SaveAll(history.get(), {Hang(1, kBeginS, "node-1"), Hang(2, kBeginS + 1, "node-1")});
  v1::ListIncidentsRequest request;
  request.set_rows_only(true);
  const auto list = history->List(request);
  ASSERT_TRUE(list.ok()) << list.status();
  EXPECT_EQ(list->incidents_size(), 2);
  EXPECT_EQ(list->total(), 0);
  EXPECT_EQ(list->repeated_size(), 0);
}

}  // namespace
}  // namespace rollcall
