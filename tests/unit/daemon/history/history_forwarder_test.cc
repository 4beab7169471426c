// SPDX-License-Identifier: Apache-2.0
// The keeper of a history in PostgreSQL, on a real server that is stopped and comes back.
#include "daemon/history/history_forwarder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sqlite3.h>

#include <atomic>
#include <filesystem>
#include <functional>
#include <iostream>

#include "base/threads.h"
#include "daemon/history/history_keeper.h"
#include "daemon/history/history_write.h"
#include "daemon/history/postgres_history.h"
#include "eventually.h"
#include "histories.h"
#include "postgres_server.h"
#include "temporary_tree.h"

namespace rollcall {
namespace {

using std::chrono::seconds;
using std::chrono::steady_clock;
using testing::HasSubstr;

class HistoryForwarderTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!TestServer()->problem().empty()) GTEST_SKIP() << TestServer()->problem();
  }
  // A test that failed while the server was away must not make the next ones fail.
  void TearDown() override { TestServer()->Restore(); }

  HistoryKeeperOptions Options(const std::string& daemon = "daemon-1") const {
    HistoryKeeperOptions options;
    options.path = tree_.root() + "/" + daemon + ".spool.db";
    options.database = {TestServer()->Url(schema_), daemon, {}, ""};
    options.retry = {20'000'000, 200'000'000, 0.5, 1};
    options.limits.keep_ns = int64_t{1} << 61;  // the incidents are from 1970
    return options;
  }
  std::unique_ptr<PostgresHistory> Database(const std::string& daemon = "daemon-1") const {
    auto history = PostgresHistory::Open({TestServer()->Url(schema_), daemon, {}, ""}, {});
    EXPECT_TRUE(history.ok()) << history.status();
    return *std::move(history);
  }
  static bool HasBrought(const HistoryKeeper& keeper) {
    return keeper.counts().waiting == 0 && keeper.counts().spooled == 0 &&
           keeper.counts().is_connected;
  }
  // Whether the next keeper on this spool may continue from it while the database is away.
  static bool KnowsItsDatabase(const HistoryKeeperOptions& options) {
    sqlite3* db = nullptr;
    int rows = 0;
    if (sqlite3_open_v2(options.path.c_str(), &db, SQLITE_OPEN_READONLY, nullptr) == SQLITE_OK) {
      sqlite3_exec(
          db, "SELECT value FROM meta WHERE name = 'database'",
          [](void* count, int, char**, char**) { return ++*static_cast<int*>(count), 0; }, &rows,
          nullptr);
    }
    sqlite3_close(db);
    return rows == 1;
  }
  static std::vector<std::string> Ids(const HistoryKeeper& keeper, std::string* note) {
    std::vector<std::string> ids;
    const auto list = keeper.List({}, {});
    EXPECT_TRUE(list.ok()) << list.status();
    if (!list.ok()) return ids;
    *note = list->note();
    for (const v1::Incident& incident : list->incidents()) ids.push_back(incident.id());
    return ids;
  }

  const TemporaryTree tree_;
  const std::string schema_ = "t" + absl::StrCat(std::filesystem::hash_value(tree_.root()));
};

TEST_F(HistoryForwarderTest, BringsEverythingToTheDatabaseAndShowsWhatOthersWrote) {
  ASSERT_TRUE(
      Database("daemon-2")->Apply(WriteOfIncident(Incident("other", 4, 500, "node-9"))).ok());
  HistoryKeeper keeper(Options());
  ASSERT_TRUE(keeper.Start().ok());
  EXPECT_EQ(keeper.LastNumber({"default", "other"}), 4);
  keeper.Save(OpenIncident("train", 1));
  keeper.outbox()->Save(Alert("train-1", 1, "confirmed"), nullptr);
  keeper.Apply(WriteOfHosts(JobKey("train"), {"node-1"}, 5));
  ASSERT_TRUE(Eventually([&] { return HasBrought(keeper); }));
  std::string note;
  EXPECT_EQ(Ids(keeper, &note), (std::vector<std::string>{"train-1", "other-4"}));
  EXPECT_EQ(note, "");
  const auto loaded = Database()->Load();
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  EXPECT_EQ(loaded->open.size(), 1u);
  EXPECT_EQ(loaded->alerts.size(), 1u);
  EXPECT_EQ(loaded->hosts.count(JobKey("train")), 1u);
}

TEST_F(HistoryForwarderTest, KeepsWritesOfAnAbsentServerAcrossARestart) {
  {
    HistoryKeeper keeper(Options());
    ASSERT_TRUE(keeper.Start().ok());
    keeper.Save(OpenIncident("train", 1));
    ASSERT_TRUE(Eventually([&] { return HasBrought(keeper) && KnowsItsDatabase(Options()); }));
    TestServer()->Stop();
    keeper.Save(OpenIncident("train", 2, 2000));
    std::atomic<bool> is_saved{false};
    keeper.outbox()->Save(Alert("train-2", 1, "confirmed"), [&is_saved] { is_saved = true; });
    EXPECT_TRUE(Eventually([&] { return keeper.counts().waiting == 0 && is_saved; }))
        << "an alert does not wait for the database";
    std::string note;
    ASSERT_TRUE(Eventually([&] { return !Ids(keeper, &note).empty() && !note.empty(); }));
    EXPECT_EQ(Ids(keeper, &note), (std::vector<std::string>{"train-2", "train-1"}));
    EXPECT_THAT(note, HasSubstr("is away"));
    EXPECT_TRUE(Eventually([&] { return !keeper.counts().is_connected; }))
        << "the writer notices it by itself";
    EXPECT_EQ(keeper.counts().lost, 0u);
  }
  HistoryKeeper next(Options());
  ASSERT_TRUE(next.Start().ok()) << "without the database";
  const auto kept = next.ConsumeContinuation();
  ASSERT_TRUE(kept.has_value()) << "from the spool";
  EXPECT_EQ(kept->open.size(), 2u);
  EXPECT_EQ(kept->alerts.size(), 1u);
  EXPECT_EQ(next.LastNumber({"default", "train"}), 2);
  TestServer()->Start();
  ASSERT_TRUE(Eventually([&] { return HasBrought(next); }));
  EXPECT_EQ(Database()->Load()->open.size(), 2u);
  EXPECT_EQ(Database()->Load()->alerts.size(), 1u);
}

// It must not give old numbers away, or end incidents that it does not know.
TEST_F(HistoryForwarderTest, ANewSpoolWaitsForTheDatabaseToContinue) {
  ASSERT_TRUE(Database()->Apply(WriteOfIncident(OpenIncident("train", 7))).ok());
  TestServer()->Stop();
  HistoryKeeper keeper(Options());
  ASSERT_TRUE(keeper.Start().ok());
  EXPECT_FALSE(keeper.ConsumeContinuation().has_value());
  TestServer()->Start();
  std::optional<Continuation> kept;
  ASSERT_TRUE(Eventually([&] { return (kept = keeper.ConsumeContinuation()).has_value(); }));
  ASSERT_EQ(kept->open.size(), 1u);
  EXPECT_EQ(kept->open[0].id(), "train-7");
  EXPECT_EQ(keeper.LastNumber({"default", "train"}), 7);
}

TEST_F(HistoryForwarderTest, ASlowQuestionHoldsUpNoListAndItsAnswerComesLater) {
  ASSERT_TRUE(Database()->Apply(WriteOfIncident(Confirmed(4, 500, "node-9", "5"))).ok());
  HistoryKeeperOptions options = Options();
  options.database.times.lock = seconds(50);
  HistoryKeeper keeper(options);
  ASSERT_TRUE(keeper.Start().ok());
  ASSERT_TRUE(Eventually([&] { return HasBrought(keeper); }));
  v1::CountIncidentsRequest request;
  request.set_by("host");
  {
    auto other = PostgresDatabase::Connect(TestServer()->Url(schema_), {});
    ASSERT_TRUE(other.ok()) << other.status();
    ASSERT_TRUE(Sql(other->get(), "BEGIN").Run().ok());
    ASSERT_TRUE(Sql(other->get(), "LOCK TABLE incident_facts IN ACCESS EXCLUSIVE MODE").Run().ok());
    EXPECT_TRUE(absl::IsAborted(keeper.Ask(request).status()));
    std::string note;
    EXPECT_EQ(Ids(keeper, &note), (std::vector<std::string>{"train-4"}));
    EXPECT_EQ(note, "");
  }
  absl::StatusOr<v1::CountIncidentsResponse> answer;
  ASSERT_TRUE(Eventually([&] { return (answer = keeper.Ask(request)).ok(); })) << answer.status();
  EXPECT_EQ(answer->note(), "");
  ASSERT_EQ(answer->counts_size(), 1);
  EXPECT_EQ(answer->counts(0).value(), "node-9");
}

TEST_F(HistoryForwarderTest, AServerWithoutRoomForQuestionsStillTakesWritesAndShowsLists) {
  auto database = PostgresDatabase::Connect(TestServer()->Url(schema_), {});
  ASSERT_TRUE(database.ok()) << database.status();
  const std::string role = schema_ + "_few";
  ASSERT_TRUE(Sql(database->get(), "CREATE ROLE " + role + " LOGIN CONNECTION LIMIT 2").Run().ok());
  ASSERT_TRUE(Sql(database->get(), "GRANT CREATE ON DATABASE postgres TO " + role).Run().ok());
  HistoryKeeperOptions options = Options();
  options.database.url.replace(options.database.url.find("rollcall@"), 8, role);
  HistoryKeeper keeper(options);
  ASSERT_TRUE(keeper.Start().ok());
  keeper.Save(OpenIncident("train", 1));
  ASSERT_TRUE(Eventually([&] { return HasBrought(keeper); }));
  std::string note;
  EXPECT_EQ(Ids(keeper, &note), (std::vector<std::string>{"train-1"}));
  EXPECT_EQ(note, "");
  v1::CountIncidentsRequest request;
  request.set_by("host");
  const auto answer = keeper.Ask(request);
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_THAT(answer->note(), HasSubstr("only incidents of this daemon"));
}

// The database can be read and not written.
TEST_F(HistoryForwarderTest, ListsShowTheNewerStateThatTheDatabaseLacks) {
  HistoryKeeper keeper(Options());
  ASSERT_TRUE(keeper.Start().ok());
  keeper.Save(OpenIncident("train", 1));
  ASSERT_TRUE(Eventually([&] { return HasBrought(keeper); }));
  const auto other = PostgresDatabase::Connect(TestServer()->Url(schema_), {});
  ASSERT_TRUE(other.ok()) << other.status();
  SqlTransaction lock(other->get());
  ASSERT_TRUE(Sql(other->get(), "LOCK TABLE incidents IN EXCLUSIVE MODE").Run().ok());
  keeper.Save(Incident("train", 1, 1000, "node-1"));
  keeper.Save(OpenIncident("train", 2, 2000));
  ASSERT_TRUE(Eventually([&] { return keeper.counts().waiting == 0; }));
  EXPECT_GT(keeper.counts().spooled, 0u);
  EXPECT_EQ(keeper.Get("train-1")->state(), "resolved");
  const auto list = keeper.List({}, {});
  ASSERT_TRUE(list.ok()) << list.status();
  ASSERT_EQ(list->total(), 2);
  EXPECT_EQ(list->incidents(0).id(), "train-2");
  EXPECT_EQ(list->incidents(1).state(), "resolved");
  ASSERT_TRUE(lock.End(absl::OkStatus()).ok());
  ASSERT_TRUE(Eventually([&] { return HasBrought(keeper); }));
  EXPECT_EQ(Database()->Get("train-1")->state(), "resolved");
}

TEST_F(HistoryForwarderTest, ManyWritesWaitAndAreBroughtSoon) {
  constexpr int kJobs = 3000, kIncidents = 100;
  HistoryKeeper keeper(Options());
  ASSERT_TRUE(keeper.Start().ok());
  ASSERT_TRUE(Eventually([&] { return HasBrought(keeper); }));
  TestServer()->Stop();
  for (int i = 1; i <= kJobs; ++i)
    keeper.Apply(WriteOfHosts(JobKey(absl::StrCat("job-", i)), {"node-1"}, 5));
  for (int i = 1; i <= kIncidents; ++i) {
    v1::Incident incident = OpenIncident("train", i, 1000 + i);
    incident.mutable_stacks(0)->set_error(std::string(20'000, 'x'));
    keeper.Save(incident);
  }
  ASSERT_TRUE(Eventually([&] { return keeper.counts().waiting == 0; }));
  EXPECT_EQ(keeper.counts().spooled, uint64_t{kJobs + kIncidents});
  EXPECT_GT(keeper.counts().spooled_bytes, uint64_t{kIncidents} * 20'000);
  TestServer()->Start();
  ASSERT_TRUE(Eventually([&] { return keeper.counts().is_connected; }));
  const auto begun = steady_clock::now();
  ASSERT_TRUE(Eventually([&] { return HasBrought(keeper); }));
  const auto took =
      std::chrono::duration_cast<std::chrono::milliseconds>(steady_clock::now() - begun);
  std::cout << kJobs + kIncidents << " writes came to the database in " << took.count() << " ms\n";
  const auto loaded = Database()->Load();
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  EXPECT_EQ(loaded->hosts.size(), size_t{kJobs});
  EXPECT_EQ(loaded->open.size(), size_t{kIncidents});
  EXPECT_EQ(keeper.counts().spooled_bytes, 0u);
  EXPECT_EQ(keeper.counts().lost, 0u);
}

TEST_F(HistoryForwarderTest, ARowThatTheServerRefusesForGoodHoldsBackNoOther) {
  const HistoryKeeperOptions options = Options();
  {
    HistoryKeeper keeper(options);
    ASSERT_TRUE(keeper.Start().ok());
    ASSERT_TRUE(Eventually([&] { return HasBrought(keeper); }));
  }
  sqlite3* db = nullptr;
  ASSERT_EQ(sqlite3_open(options.path.c_str(), &db), SQLITE_OK);
  EXPECT_EQ(sqlite3_exec(db, "INSERT INTO for_database (incident, body) VALUES ('', x'00ff')",
                         nullptr, nullptr, nullptr),
            SQLITE_OK);
  sqlite3_close(db);
  HistoryKeeper keeper(options);
  ASSERT_TRUE(keeper.Start().ok());
  keeper.Save(Incident("train", 1, 1000, "node-1"));
  ASSERT_TRUE(Eventually([&] { return HasBrought(keeper); }));
  EXPECT_EQ(keeper.counts().lost, 1u);
  EXPECT_TRUE(Database()->Get("train-1").ok());
}

// The daemon was cut off, and another one took its job.
TEST_F(HistoryForwarderTest, DropsOnlyTheWritesOfAJobThatMovedAway) {
  std::map<JobId, int64_t> tokens = {{{"default", "lost"}, 5}, {{"default", "kept"}, 6}};
  HistoryKeeperOptions options = Options();
  options.token_of = [&tokens](const JobId& job) { return tokens.at(job); };
  HistoryKeeper keeper(options);
  ASSERT_TRUE(keeper.Start().ok());
  ASSERT_TRUE(Eventually([&] { return HasBrought(keeper); }));
  {
    const auto db = PostgresDatabase::Connect(TestServer()->Url(schema_), {});
    ASSERT_TRUE(db.ok()) << db.status();
    for (const char* text :
         {"INSERT INTO daemons (name, address, page, incarnation, secret, alive_since, expires_at) "
          "VALUES ('daemon-2', 'host:1', '', 'x', '', clock_timestamp(), clock_timestamp())",
          "INSERT INTO owners (tenant, job, daemon, incarnation, token, since) VALUES ('default', "
          "'lost', 'daemon-2', 'x', 7, clock_timestamp())"}) {
      const absl::Status status = Sql(db->get(), text).Run();
      ASSERT_TRUE(status.ok()) << status;
    }
  }
  TestServer()->Stop();
  for (const char* job : {"lost", "kept"}) {
    keeper.Save(OpenIncident(job, 1));
    keeper.outbox()->Save(Alert(absl::StrCat(job, "-1"), 1, "confirmed"), nullptr);
    keeper.outbox()->Mark(absl::StrCat(job, "-1"), 1, "json:1");
    keeper.Apply(WriteOfHosts(JobKey(job), {"node-1"}, 5));
  }
  keeper.Apply(
      WriteOfAttempts({{JobKey("lost"), {}}, {JobKey("kept"), {}}, {JobKey("kept", 1), {}}}, 5));
  keeper.Apply(WriteOfForgottenHosts(JobKey("lost", 3)));
  keeper.Apply(WriteOfAction({5, "me", "acknowledge", "lost-1", "127.0.0.1"}));
  ASSERT_TRUE(Eventually([&] { return keeper.counts().waiting == 0; }));
  tokens.clear();  // a write has the token of when it was made
  TestServer()->Start();
  ASSERT_TRUE(Eventually([&] { return HasBrought(keeper); }));
  EXPECT_EQ(keeper.counts().fenced, 6u) << "incident, alert, mark, hosts twice, attempts";
  EXPECT_EQ(keeper.counts().lost, 0u);
  const auto database = Database();
  const auto kept = database->LoadJob({"default", "kept"}),
             lost = database->LoadJob({"default", "lost"});
  ASSERT_TRUE(kept.ok() && lost.ok()) << kept.status() << lost.status();
  ASSERT_EQ(kept->alerts.size(), 1u);
  EXPECT_EQ(kept->alerts[0].receivers, std::set<std::string>{"json:1"});
  EXPECT_EQ(kept->open.size(), 1u);
  EXPECT_EQ(kept->hosts.size(), 1u);
  EXPECT_EQ(kept->attempts.size(), 2u);
  EXPECT_TRUE(lost->open.empty() && lost->hosts.empty() && lost->attempts.empty());
  EXPECT_TRUE(database->Get("kept-1").ok());
  EXPECT_FALSE(database->Get("lost-1").ok());
}

// Another daemon may have the job: what this one finds out counts if the job proves to be its own.
TEST_F(HistoryForwarderTest, HoldsWritesOfAnUnprovenJobInOrder) {
  bool is_unproven = true;
  HistoryKeeperOptions options = Options();
  options.token_of = [](const JobId&) { return 0; };
  options.is_unproven = [&is_unproven](const JobId& job) {
    return is_unproven && job.job != "own";
  };
  HistoryKeeper keeper(options);
  ASSERT_TRUE(keeper.Start().ok());
  const JobId job = {"default", "ours"};
  std::atomic<bool> is_alert_saved{false};
  keeper.Save(OpenIncident("ours", 1));
  keeper.outbox()->Save(Alert("ours-1", 1, "confirmed"),
                        [&is_alert_saved] { is_alert_saved = true; });
  keeper.Save(OpenIncident("theirs", 1));
  keeper.Save(OpenIncident("own", 1));
  ASSERT_TRUE(Eventually([&] { return HasBrought(keeper); }));
  EXPECT_TRUE(Database()->Get("own-1").ok());
  EXPECT_FALSE(Database()->Get("ours-1").ok());
  EXPECT_FALSE(is_alert_saved) << "nobody may hear of it";
  is_unproven = false;
  keeper.Save(Incident("ours", 1, 1000, "node-1"));  // it ends before those before are released
  keeper.ReleaseHeld(job);
  keeper.DropHeld({"default", "theirs"});
  keeper.ReleaseHeld({"default", "theirs"});
  ASSERT_TRUE(Eventually([&] { return is_alert_saved && HasBrought(keeper); }));
  const auto kept = Database()->Get("ours-1");
  ASSERT_TRUE(kept.ok()) << kept.status();
  EXPECT_TRUE(kept->has_closed_at());
  EXPECT_EQ(Database()->LoadJob(job)->alerts.size(), 1u);
  EXPECT_FALSE(Database()->Get("theirs-1").ok());
}

TEST_F(HistoryForwarderTest, ABarrierIsForTheWritesBeforeItAndWaitsForTheDatabase) {
  HistoryKeeper keeper(Options());
  ASSERT_TRUE(keeper.Start().ok());
  ASSERT_TRUE(Eventually([&] { return HasBrought(keeper); }));
  EXPECT_TRUE(Eventually(keeper.Barrier()));
  TestServer()->Stop();
  keeper.Save(OpenIncident("train", 1));
  const std::function<bool()> before = keeper.Barrier();
  ASSERT_TRUE(Eventually([&] { return keeper.counts().waiting == 0; }));
  EXPECT_FALSE(before()) << "it waits on this disk";
  keeper.Apply(WriteOfHosts(JobKey("train"), {"node-1"}, 5));
  TestServer()->Start();
  ASSERT_TRUE(Eventually(before));
  EXPECT_TRUE(Database()->Get("train-1").ok());
  EXPECT_TRUE(Eventually(keeper.Barrier()));
  EXPECT_EQ(Database()->LoadJob({"default", "train"})->hosts.size(), 1u);
}

TEST_F(HistoryForwarderTest, ADatabaseThatIsNotThereStopsTheFirstStartOnly) {
  HistoryKeeperOptions wrong = Options();
  wrong.database.url = TestServer()->Url(schema_, "no_such");
  HistoryKeeper keeper(wrong);
  const absl::Status refused = keeper.Start();
  EXPECT_THAT(std::string(refused.message()), HasSubstr("createdb"));
}

TEST_F(HistoryForwarderTest, EndsInTimeWhileTheServerSaysNothing) {
  HistoryKeeperOptions options = Options();
  options.database.times.answer = seconds(600);  // what it would wait for
  HistoryKeeper keeper(options);
  ASSERT_TRUE(keeper.Start().ok());
  ASSERT_TRUE(Eventually([&] { return HasBrought(keeper); }));
  TestServer()->Pause();
  keeper.Save(Incident("train", 1, 1000, "node-1"));
  const auto begun = steady_clock::now();
  keeper.Finish(begun + seconds(3));
  EXPECT_LT(steady_clock::now() - begun, kPatience);
  TestServer()->Resume();
  EXPECT_TRUE(Eventually([] { return live_loose_threads == 0; })) << "nothing stays behind";
}

}  // namespace
}  // namespace rollcall
