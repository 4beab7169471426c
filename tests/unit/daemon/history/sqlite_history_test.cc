// SPDX-License-Identifier: Apache-2.0
// What is special about the history in a file of SQLite.
#include "daemon/history/sqlite_history.h"

#include <gtest/gtest.h>
#include <sqlite3.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <map>

#include "daemon/history/history_write.h"
#include "daemon/history/sqlite_database.h"
#include "histories.h"
#include "temporary_tree.h"

namespace rollcall {
namespace {

namespace fs = std::filesystem;

void Execute(sqlite3* db, const char* text) {
  EXPECT_EQ(sqlite3_exec(db, text, nullptr, nullptr, nullptr), SQLITE_OK) << text;
}

class SqliteHistoryTest : public testing::Test {
 protected:
  std::unique_ptr<SqliteHistory> Open(const HistoryLimits& limits = {}) const {
    auto history = SqliteHistory::Open(folder_ / "history.db", limits);
    EXPECT_TRUE(history.ok()) << history.status();
    return history.ok() ? *std::move(history) : nullptr;
  }

  const TemporaryTree tree_;
  const fs::path folder_ = tree_.root();
};

// The statements by which the previous release opens and writes the file.
constexpr const char* kPreviousRelease[] = {
    "CREATE TABLE IF NOT EXISTS incidents (id TEXT PRIMARY KEY, job TEXT NOT NULL, number INTEGER "
    "NOT NULL, cause TEXT NOT NULL, state TEXT NOT NULL, opened_ns INTEGER NOT NULL, closed_ns "
    "INTEGER NOT NULL, summary BLOB NOT NULL, stacks BLOB NOT NULL) WITHOUT ROWID",
    "CREATE TABLE IF NOT EXISTS culprits (incident TEXT NOT NULL, host TEXT NOT NULL, rank INTEGER "
    "NOT NULL, PRIMARY KEY (incident, host, rank)) WITHOUT ROWID",
    "PRAGMA user_version = 1",
    "UPDATE incidents SET state = 'ended', closed_ns = opened_ns WHERE closed_ns = 0",
    "INSERT OR REPLACE INTO incidents VALUES ('train-9', 'train', 9, 'rank_died', 'resolved', 1, "
    "2, '', '')",
};

void RunPreviousRelease(const fs::path& path) {
  sqlite3* db = nullptr;
  ASSERT_EQ(sqlite3_open(path.c_str(), &db), SQLITE_OK);
  SqliteDatabase database(db);
  EXPECT_LE(ReadInteger(&database, "PRAGMA user_version"), 1)
      << "the previous release refuses a later version";
  for (const char* statement : kPreviousRelease) EXPECT_TRUE(Sql(&database, statement).Run().ok());
}

TEST_F(SqliteHistoryTest, OthersHaveNoAccessWhateverTheUmask) {
  const mode_t before = umask(0);
  const auto history = Open();
  const absl::Status added = history->Apply(WriteOfIncident(Incident("train", 1, 1000, "node-1")));
  umask(before);
  EXPECT_TRUE(added.ok()) << added;
  for (const char* part : {"", "-wal", "-shm"}) {
    const fs::path file = (folder_ / "history.db").string() + part;
    ASSERT_TRUE(fs::exists(file)) << file;
    EXPECT_EQ(static_cast<int>(fs::status(file).permissions()), 0640) << file;
  }
}

TEST_F(SqliteHistoryTest, AFileThatCannotBeReadHasNotNoIncident) {
  const auto history = Open();
  ASSERT_TRUE(history->Apply(WriteOfIncident(Incident("train", 7, 1000, "node-1"))).ok());
  EXPECT_TRUE(absl::IsNotFound(history->Get("train-8").status()));
  sqlite3* other = nullptr;
  ASSERT_EQ(sqlite3_open((folder_ / "history.db").c_str(), &other), SQLITE_OK);
  Execute(other, "DROP TABLE culprits");
  EXPECT_FALSE(history->List({}).ok()) << "not a list without repeated culprits";
  Execute(other, "DROP TABLE incidents");
  sqlite3_close(other);
  EXPECT_FALSE(absl::IsNotFound(history->Get("train-7").status()));
}

TEST_F(SqliteHistoryTest, RenamesADamagedFileAndBeginsANewOne) {
  std::ofstream(folder_ / "history.db") << std::string(10'000, 'x');
  const auto history = Open();
  ASSERT_TRUE(history->Apply(WriteOfIncident(Incident("train", 1, 1000, "node-1"))).ok());
  int aside = 0;
  for (const auto& entry : fs::directory_iterator(folder_)) {
    aside += entry.path().string().find(".damaged-") != std::string::npos;
  }
  EXPECT_EQ(aside, 1);
}

TEST_F(SqliteHistoryTest, ErrorsSayWhyAFileIsUnusable) {
  const auto history = SqliteHistory::Open(folder_ / "none" / "history.db", {});
  ASSERT_FALSE(history.ok());
  EXPECT_NE(std::string(history.status().message()).find("--history=FILE"), std::string::npos);
}

TEST_F(SqliteHistoryTest, ThePreviousReleaseCanUseTheFileAndHandItBack) {
  ASSERT_TRUE(Open()->Apply(WriteOfIncident(OpenIncident("train", 1))).ok());
  RunPreviousRelease(folder_ / "history.db");
  const auto history = Open();
  EXPECT_EQ(LastNumber(*history, {"default", "train"}), 9);
  const auto loaded = history->Load();
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  EXPECT_TRUE(loaded->open.empty()) << "the previous release has closed it";
}

// It sends each row whose `sent` is 0, and a kind that it does not know as "confirmed".
TEST_F(SqliteHistoryTest, ThePreviousReleaseFindsNoUnsentAlertThatItDoesNotKnow) {
  const std::map<std::string, int64_t> found = {
      {"confirmed", 1}, {"updated", 1}, {"resolved", 1}, {"annotated", 0}, {"reminder", 0}};
  for (const auto& [kind, unsent] : found) {
    ASSERT_TRUE(Open()->Apply(WriteOfAlert(Alert("train-1", 1, kind))).ok());
    sqlite3* db = nullptr;
    ASSERT_EQ(sqlite3_open((folder_ / "history.db").c_str(), &db), SQLITE_OK);
    SqliteDatabase database(db);
    EXPECT_EQ(ReadInteger(&database, "SELECT count(*) FROM outbox WHERE sent = 0"), unsent) << kind;
  }
}

TEST_F(SqliteHistoryTest, OpensAFileOfThePreviousRelease) {
  RunPreviousRelease(folder_ / "history.db");
  const auto history = Open();
  ASSERT_NE(history, nullptr);
  EXPECT_TRUE(history->Apply(WriteOfAlert(Alert("train-9", 1, "confirmed"))).ok());
  EXPECT_EQ(LastNumber(*history, {"default", "train"}), 9);
}

// A release after this one has written the file, and this one is installed again.
void RunLaterRelease(const fs::path& path, const char* statement) {
  sqlite3* db = nullptr;
  ASSERT_EQ(sqlite3_open(path.c_str(), &db), SQLITE_OK);
  SqliteDatabase database(db);
  ASSERT_TRUE(Sql(&database, statement).Run().ok()) << statement;
}

TEST_F(SqliteHistoryTest, RefusesAFileOfALaterReleaseThatItCannotUseAndKeepsItAsItIs) {
  const fs::path file = folder_ / "history.db";
  ASSERT_TRUE(Open()->Apply(WriteOfIncident(OpenIncident("train", 1))).ok());
  RunLaterRelease(file, "PRAGMA user_version = 2");
  const auto refused = SqliteHistory::Open(file, {});
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(std::string(refused.status().message()).find("written by a later release of Rollcall"),
            std::string::npos)
      << refused.status();
  RunLaterRelease(file, "PRAGMA user_version = 1");  // the later release has it back
  const auto loaded = Open()->Load();
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  EXPECT_EQ(loaded->open.size(), 1u) << "nothing is lost, closed or renamed";
}

TEST_F(SqliteHistoryTest, GoesOnWithAFileOfALaterReleaseThatItCanUse) {
  const fs::path file = folder_ / "history.db";
  ASSERT_TRUE(Open()->Apply(WriteOfIncident(OpenIncident("train", 1))).ok());
  RunLaterRelease(file, "UPDATE meta SET value = 99 WHERE name = 'layout'");
  RunLaterRelease(file, "CREATE TABLE of_a_later_release (x)");
  const auto loaded = Open()->Load();
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  EXPECT_EQ(loaded->open.size(), 1u);
  sqlite3* db = nullptr;
  ASSERT_EQ(sqlite3_open(file.c_str(), &db), SQLITE_OK);
  SqliteDatabase database(db);
  EXPECT_EQ(ReadInteger(&database, "SELECT value FROM meta WHERE name = 'layout'"), 99)
      << "the later release finds its number again";
}

TEST_F(SqliteHistoryTest, GroupsIncidentsThatThePreviousReleaseWrote) {
  ASSERT_TRUE(Open()->Apply(WriteOfIncident(Confirmed(1, 100, "node-17", "aa"))).ok());
  sqlite3* db = nullptr;
  ASSERT_EQ(sqlite3_open((folder_ / "history.db").c_str(), &db), SQLITE_OK);
  Execute(db, "DELETE FROM incident_signatures");
  sqlite3_close(db);
  const auto history = Open();
  ASSERT_EQ(Groups(*history).groups_size(), 1);
  EXPECT_EQ(Groups(*history).groups(0).signature(), "missing_rank/AllReduce//");
}

TEST_F(SqliteHistoryTest, NumbersThatCannotBeReadAreAnErrorAndNotZero) {
  const auto history = Open();
  ASSERT_TRUE(history->Apply(WriteOfIncident(Incident("train", 7, 1000, "node-1"))).ok());
  sqlite3* other = nullptr;
  ASSERT_EQ(sqlite3_open((folder_ / "history.db").c_str(), &other), SQLITE_OK);
  Execute(other, "DROP TABLE incident_keys");
  sqlite3_close(other);
  EXPECT_FALSE(history->LastNumbers().ok());
}

// Each host of an incident's culprits is a row in a table and in an index.
TEST_F(SqliteHistoryTest, CulpritsCountToTheSizeOfTheFile) {
  HistoryLimits limits;
  limits.keep_bytes = 2'000'000;
  auto history = Open(limits);
  for (int i = 1; i <= 20; ++i) {
    v1::Incident incident = Incident("train", i, 20 * 86400 + i, "node-1");
    for (int host = 0; host < 2000; ++host) {
      incident.mutable_verdicts(0)->add_other_culprit_hosts("node-" + std::to_string(host) +
                                                            ".cluster.example");
    }
    ASSERT_TRUE(history->Apply(WriteOfIncident(incident)).ok());
  }
  ASSERT_TRUE(history->Trim(20 * kDay).ok());
  EXPECT_TRUE(history->Get("train-20").ok());
  history.reset();
  EXPECT_LE(fs::file_size(folder_ / "history.db"), 2'000'000u);
}

}  // namespace
}  // namespace rollcall
