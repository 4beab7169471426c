// SPDX-License-Identifier: Apache-2.0
// What is special about the history in PostgreSQL, on a real server: layouts, partitions, several
// daemons, plans, and a server that is away.
#include "daemon/history/postgres_history.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <future>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "daemon/history/history_write.h"
#include "daemon/history/postgres_layout.h"
#include "daemon/history/postgres_partitions.h"
#include "daemon/history/sql_reads.h"
#include "eventually.h"
#include "histories.h"
#include "postgres_server.h"
#include "proto/timestamps.h"
#include "temporary_tree.h"

namespace rollcall {
namespace {

using testing::HasSubstr;
using testing::Not;

class PostgresHistoryTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!TestServer()->problem().empty()) GTEST_SKIP() << TestServer()->problem();
  }
  // A test that failed while the server was away must not make the next ones fail.
  void TearDown() override { TestServer()->Restore(); }

  // With times that a busy machine keeps.
  PostgresOptions Options(const std::string& daemon = "daemon-1") const {
    constexpr std::chrono::seconds kLong(60);
    return {TestServer()->Url(schema_), daemon, {kLong, kLong, kLong, kLong}, ""};
  }
  std::unique_ptr<PostgresHistory> Open(const HistoryLimits& limits = {},
                                        const std::string& daemon = "daemon-1") const {
    auto history = PostgresHistory::Open(Options(daemon), limits);
    EXPECT_TRUE(history.ok()) << history.status();
    return history.ok() ? *std::move(history) : nullptr;
  }
  // Another connection, with this test's tables.
  std::unique_ptr<PostgresDatabase> Connect() const {
    auto db = PostgresDatabase::Connect(TestServer()->Url(schema_), {});
    EXPECT_TRUE(db.ok()) << db.status();
    return *std::move(db);
  }
  static void Run(SqlDatabase* db, const std::string& text) {
    const absl::Status status = Sql(db, text).Run();
    EXPECT_TRUE(status.ok()) << text << ": " << status;
  }

  const TemporaryTree tree_;
  const std::string schema_ = "t" + absl::StrCat(std::filesystem::hash_value(tree_.root()));
};

TEST_F(PostgresHistoryTest, DaemonsThatStartAtOnceMakeTheTablesOnce) {
  std::vector<std::future<absl::Status>> starts;
  for (int i = 0; i < 8; ++i) {
    starts.push_back(std::async(std::launch::async, [this, i] {
      auto history = PostgresHistory::Open(Options(absl::StrCat("daemon-", i)), {});
      if (!history.ok()) return history.status();
      // Their first incidents need the same partition.
      return (*history)->Apply(
          WriteOfIncident(Incident(absl::StrCat("job-", i), 1, 1000, "node-1")));
    }));
  }
  for (auto& start : starts) EXPECT_EQ(start.get(), absl::OkStatus());
  const auto db = Connect();
  EXPECT_EQ(ReadInteger(db.get(), "SELECT count(*) FROM layouts"), kPostgresLayout);
  EXPECT_EQ(ReadInteger(db.get(), "SELECT count(*) FROM incidents"), 8);
}

TEST_F(PostgresHistoryTest, RefusesALayoutThatItCannotUseAndSaysWhatToDo) {
  Open();
  Run(Connect().get(), "INSERT INTO layouts (number, usable_from) VALUES (99, 98)");
  const auto refused = PostgresHistory::Open(Options(), {});
  ASSERT_TRUE(absl::IsUnimplemented(refused.status())) << refused.status();
  EXPECT_THAT(std::string(refused.status().message()), HasSubstr("layout 99 of a later release"));
  EXPECT_THAT(std::string(refused.status().message()), HasSubstr("run the later release here too"));
}

TEST_F(PostgresHistoryTest, GoesOnWithALaterLayoutThatItCanUse) {
  Open();
  Run(Connect().get(),
      absl::StrCat("INSERT INTO layouts (number, usable_from) VALUES (99, ", kPostgresLayout, ")"));
  EXPECT_TRUE(Open()->Apply(WriteOfIncident(Incident("train", 1, 1000, "node-1"))).ok());
}

TEST_F(PostgresHistoryTest, WithoutASearchPathTheTablesAreInTheSchemaRollcall) {
  const std::string url = TestServer()->Url("x");
  const auto history =
      PostgresHistory::Open({url.substr(0, url.find("&options")), "daemon-1", {}, ""}, {});
  ASSERT_TRUE(history.ok()) << history.status();
  EXPECT_GT(ReadInteger(Connect().get(),
                        "SELECT count(*) FROM pg_tables WHERE schemaname = "
                        "'rollcall' AND tablename = 'incidents'"),
            0);
}

TEST_F(PostgresHistoryTest, ADaemonContinuesOnlyWhatItWrote) {
  const auto first = Open({}, "daemon-1"), second = Open({}, "daemon-2");
  for (const auto& [history, job] : {std::pair{first.get(), "one"}, {second.get(), "two"}}) {
    ASSERT_TRUE(history->Apply(WriteOfIncident(OpenIncident(job, 1))).ok());
    ASSERT_TRUE(history->Apply(WriteOfAlert(Alert(absl::StrCat(job, "-1"), 1, "confirmed"))).ok());
    ASSERT_TRUE(history->Apply(WriteOfHosts(JobKey(job), {"node-1"}, 5)).ok());
    ASSERT_TRUE(history->Apply(WriteOfAttempts({{JobKey(job), {}}}, 5)).ok());
  }
  EXPECT_EQ(Ids(*first).size(), 2u) << "both show the whole fleet";
  const auto loaded = second->Load();
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  ASSERT_EQ(loaded->open.size(), 1u);
  EXPECT_EQ(loaded->open[0].id(), "two-1");
  ASSERT_EQ(loaded->alerts.size(), 1u);
  EXPECT_EQ(loaded->alerts[0].incident, "two-1");
  EXPECT_EQ(loaded->hosts.count(JobKey("one")), 0u);
  EXPECT_EQ(loaded->attempts.count(JobKey("one")), 0u);
  EXPECT_EQ(LastNumber(*second, {"default", "one"}), 1) << "no id comes twice";
}

TEST_F(PostgresHistoryTest, TheDaemonThatSavesAnIncidentContinuesIt) {
  const auto first = Open({}, "daemon-1"), second = Open({}, "daemon-2");
  ASSERT_TRUE(first->Apply(WriteOfIncident(OpenIncident("train", 1))).ok());
  ASSERT_TRUE(second->Apply(WriteOfIncident(OpenIncident("train", 1))).ok());
  EXPECT_TRUE(first->Load()->open.empty());
  EXPECT_EQ(second->Load()->open.size(), 1u);
  EXPECT_EQ(Ids(*first).size(), 1u);
}

// Says whose a job is, as daemon/fleet/ does.
void SetOwner(SqlDatabase* db, const std::string& job, const std::string& daemon, int64_t token,
              const std::string& incarnation = "first") {
  absl::Status status =
      Sql(db,
          "INSERT INTO daemons (name, address, page, incarnation, secret, alive_since, expires_at) "
          "VALUES (?, 'host:1', '', ?, '', clock_timestamp(), clock_timestamp()) ON CONFLICT DO "
          "NOTHING",
          daemon.empty() ? "none" : daemon, incarnation)
          .Run();
  ASSERT_TRUE(status.ok()) << status;
  status = Sql(db,
               "INSERT INTO owners (tenant, job, daemon, incarnation, token, since) VALUES "
               "('default', ?, nullif(?, ''), ?, ?, clock_timestamp()) ON CONFLICT (tenant, job) "
               "DO UPDATE SET daemon = excluded.daemon, incarnation = excluded.incarnation, token "
               "= excluded.token",
               job, daemon, incarnation, token)
               .Run();
  ASSERT_TRUE(status.ok()) << status;
}

TEST_F(PostgresHistoryTest, ARestartedDaemonContinuesTheJobsThatItOwnsByAnyWriter) {
  const auto first = Open({}, "daemon-1"), second = Open({}, "daemon-2");
  for (const char* job : {"moved", "kept", "free"}) {
    ASSERT_TRUE(first->Apply(WriteOfIncident(OpenIncident(job, 1))).ok());
    ASSERT_TRUE(first->Apply(WriteOfAlert(Alert(absl::StrCat(job, "-1"), 1, "confirmed"))).ok());
    ASSERT_TRUE(first->Apply(WriteOfHosts(JobKey(job), {"node-1"}, 5)).ok());
    ASSERT_TRUE(first
                    ->Apply(WriteOfAttempts(
                        {{JobKey(job), {1, "", "", false, {{{"node-1", 7, 1}, 0}}}}}, 5))
                    .ok());
  }
  const auto db = Connect();
  SetOwner(db.get(), "moved", "daemon-2", 2);
  SetOwner(db.get(), "kept", "daemon-1", 3);
  SetOwner(db.get(), "free", "", 4);
  const auto of_first = first->Load(), of_second = second->Load();
  ASSERT_TRUE(of_first.ok()) << of_first.status();
  ASSERT_TRUE(of_second.ok()) << of_second.status();
  for (const auto& [loaded, jobs] : {std::pair{&*of_first, std::set<std::string>{"kept", "free"}},
                                     std::pair{&*of_second, std::set<std::string>{"moved"}}}) {
    std::set<std::string> open, alerts, hosts, attempts;
    for (const v1::Incident& incident : loaded->open) open.insert(incident.job());
    for (const AlertRow& alert : loaded->alerts) alerts.insert(alert.incident);
    for (const auto& [job, names] : loaded->hosts) hosts.insert(job.job);
    for (const auto& [job, facts] : loaded->attempts) {
      attempts.insert(job.job);
      EXPECT_EQ(facts.members.size(), 1u) << job.job;
    }
    std::set<std::string> ids;
    for (const std::string& job : jobs) ids.insert(job + "-1");
    EXPECT_EQ(open, jobs);
    EXPECT_EQ(alerts, ids);
    EXPECT_EQ(hosts, jobs);
    EXPECT_EQ(attempts, jobs);
  }
}

absl::Status SaveFenced(PostgresHistory* history, int64_t token, const v1::Incident& incident) {
  v1::HistoryWrite write = WriteOfIncident(incident);
  SetFence({"default", incident.job()}, token, &write);
  return history->Apply(write);
}

TEST_F(PostgresHistoryTest, RefusesWhatADaemonWritesAboutAJobThatAnotherHasHadSince) {
  const auto first = Open({}, "daemon-1"), second = Open({}, "daemon-2");
  const auto db = Connect();
  const v1::Incident before = OpenIncident("train", 1),
                     after = Incident("train", 1, 1000, "node-2");
  EXPECT_TRUE(SaveFenced(first.get(), 0, before).ok()) << "nobody has it yet";
  SetOwner(db.get(), "train", "daemon-1", 5);
  EXPECT_TRUE(SaveFenced(first.get(), 5, before).ok());
  EXPECT_TRUE(SaveFenced(first.get(), 0, before).ok()) << "of when it could not ask";
  EXPECT_TRUE(absl::IsAborted(SaveFenced(second.get(), 0, after)));
  SetOwner(db.get(), "train", "daemon-2", 6);
  EXPECT_TRUE(SaveFenced(second.get(), 6, after).ok());
  for (const int64_t token : {5, 0, -1}) {
    const absl::Status refused = SaveFenced(first.get(), token, before);
    EXPECT_TRUE(absl::IsAborted(refused)) << token << ": " << refused;
    EXPECT_THAT(std::string(refused.message()), HasSubstr("job train since: daemon-2"));
  }
  SetOwner(db.get(), "train", "", 6);
  EXPECT_TRUE(absl::IsAborted(SaveFenced(first.get(), 5, before))) << "released since";
  EXPECT_TRUE(SaveFenced(second.get(), 6, after).ok()) << "its last writes";
  SetOwner(db.get(), "train", "daemon-1", 8);
  EXPECT_TRUE(absl::IsAborted(SaveFenced(first.get(), 5, before)))
      << "what another changed in between";
  EXPECT_EQ(first->Get("train-1")->state(), "resolved");
}

TEST_F(PostgresHistoryTest, ABatchLosesOnlyWhatIsOutOfDate) {
  const auto history = Open();
  SetOwner(Connect().get(), "lost", "daemon-2", 6);
  ASSERT_TRUE(history->Begin().ok());
  EXPECT_TRUE(SaveFenced(history.get(), 3, OpenIncident("mine", 1)).ok());
  EXPECT_TRUE(absl::IsAborted(SaveFenced(history.get(), 5, OpenIncident("lost", 1))));
  EXPECT_TRUE(SaveFenced(history.get(), 3, OpenIncident("mine", 2)).ok());
  ASSERT_TRUE(history->End(absl::OkStatus()).ok());
  EXPECT_EQ(Ids(*history), (std::vector<std::string>{"mine-1", "mine-2"}));
}

TEST_F(PostgresHistoryTest, OfTwoDaemonsOfOneNameTheLaterStartCounts) {
  PostgresOptions earlier = Options(), later = Options();
  earlier.incarnation = "earlier";
  later.incarnation = "later";
  const auto first = PostgresHistory::Open(earlier, {});
  const auto second = PostgresHistory::Open(later, {});
  ASSERT_TRUE(first.ok() && second.ok()) << first.status() << second.status();
  const auto db = Connect();
  SetOwner(db.get(), "train", "daemon-1", 5, "earlier");
  EXPECT_TRUE(SaveFenced(second->get(), 5, OpenIncident("train", 1)).ok())
      << "from its spool, before it renews";
  SetOwner(db.get(), "train", "daemon-1", 5, "later");
  EXPECT_TRUE(SaveFenced(second->get(), 5, OpenIncident("train", 1)).ok());
  EXPECT_TRUE(absl::IsAborted(SaveFenced(first->get(), 5, OpenIncident("train", 1))));
}

// The check locks the owner: else another daemon could take the job, and read it, before the write
// is there.
TEST_F(PostgresHistoryTest,
       NobodyTakesAJobInTheMiddleOfAWriteAndADaemonThatStandsStillDoesNotKeepIt) {
  PostgresOptions options = Options();
  options.times.pause = std::chrono::seconds(5);
  auto history = PostgresHistory::Open(options, {});
  ASSERT_TRUE(history.ok()) << history.status();
  const auto db = Connect();
  SetOwner(db.get(), "train", "daemon-1", 5);
  ASSERT_TRUE((*history)->Begin().ok());
  ASSERT_TRUE(SaveFenced(history->get(), 5, OpenIncident("train", 1)).ok());
  PostgresOptions patient = Options();
  patient.times.lock = patient.times.answer = std::chrono::seconds(60);
  const auto other = PostgresDatabase::Connect(patient.url, patient.times);
  ASSERT_TRUE(other.ok()) << other.status();
  auto taken =
      std::async(std::launch::async, [&] { SetOwner(other->get(), "train", "daemon-2", 6); });
  EXPECT_TRUE(Eventually([&] {
    return ReadInteger(db.get(), "SELECT count(*) FROM pg_locks WHERE NOT granted") > 0;
  })) << "it waits for the write";
  taken.get();  // and not for the daemon, which stands still
  EXPECT_FALSE((*history)->End(absl::OkStatus()).ok());
  EXPECT_TRUE(Ids(*Open()).empty());
}

TEST_F(PostgresHistoryTest, AnIdThatWasGivenTwiceKeepsBothIncidents) {
  const auto history = Open();
  ASSERT_TRUE(history->Apply(WriteOfIncident(Incident("train", 1, 1000, "node-1"))).ok());
  ASSERT_TRUE(history->Apply(WriteOfIncident(Incident("train", 1, 5000, "node-2"))).ok());
  EXPECT_EQ(Ids(*history).size(), 2u);
  EXPECT_EQ(history->Get("train-1")->opened_at().seconds(), 5000);
}

TEST_F(PostgresHistoryTest, AnActionThatIsWrittenAgainIsOneRow) {
  const auto history = Open();
  const ActionRow action = {5, "me", "acknowledge", std::string(4096, 'x'), "127.0.0.1"};
  ASSERT_TRUE(history->Apply(WriteOfAction(action)).ok());
  ASSERT_TRUE(history->Apply(WriteOfAction(action)).ok());
  EXPECT_EQ(ReadInteger(Connect().get(), "SELECT count(*) FROM actions"), 1);
}

TEST_F(PostgresHistoryTest, TakesTextsThatThePostgresServerWouldRefuse) {
  const auto history = Open();
  const std::string odd("a\0b\xff", 4);
  ASSERT_TRUE(history->Apply(WriteOfHosts(JobKey(odd), {odd}, 5)).ok());
  EXPECT_EQ(history->Load()->hosts.begin()->second, std::set<std::string>{"a?b?"});
  v1::ListIncidentsRequest request;
  request.set_host(odd);
  EXPECT_TRUE(Ids(*history, request).empty());
}

TEST(PartitionsTest, AWeekBeginsOnMondayAlsoBefore1970) {
  const auto name = [](int64_t day) { return PartitionName("incidents", WeekOf(day * kDay)); };
  EXPECT_EQ(name(0), "incidents_19691229");
  EXPECT_EQ(name(3), "incidents_19691229");
  EXPECT_EQ(name(4), "incidents_19700105");
  EXPECT_EQ(name(-3), "incidents_19691229");
  EXPECT_EQ(name(-4), "incidents_19691222");
  EXPECT_EQ(WeekOf(4 * kDay - 1), WeekOf(0));
}

TEST_F(PostgresHistoryTest, DropsOldWeeksAndCreatesTheNextInTime) {
  HistoryLimits limits;
  limits.keep_ns = 10 * kDay;
  const auto history = Open(limits);
  for (const int day : {0, 30, 55, 60}) {
    ASSERT_TRUE(
        history->Apply(WriteOfIncident(Incident("train", day, day * 86400, "node-1"))).ok());
  }
  ASSERT_TRUE(history->Trim(61 * kDay).ok());
  EXPECT_EQ(Ids(*history), (std::vector<std::string>{"train-60", "train-55"}));
  const auto db = Connect();
  EXPECT_EQ(ReadInteger(db.get(), "SELECT count(*) FROM culprits"), 2);
  const auto left = ListPartitions(db.get(), "incidents");
  ASSERT_TRUE(left.ok()) << left.status();
  EXPECT_EQ(left->front().week, WeekOf(55 * kDay));
  EXPECT_EQ(left->back().week, WeekOf(68 * kDay));
}

TEST_F(PostgresHistoryTest, ATooLargeHistoryLosesItsOldestWeeksAndNeverTheLast) {
  HistoryLimits limits;
  limits.keep_bytes = 1'000'000;
  const auto history = Open(limits);
  for (const int day : {10, 17, 24, 25}) {
    v1::Incident incident = Incident("train", day, day * 86400, "node-1");
    incident.mutable_verdicts(0)->set_summary("x");
    incident.mutable_stacks(0)->set_error("");
    for (int i = 0; i < 20'000; ++i) incident.add_stacks()->set_pid(int32_t(i * 7919 + day));
    ASSERT_TRUE(history->Apply(WriteOfIncident(incident)).ok());
  }
  limits.keep_bytes = 400'000;
  ASSERT_TRUE(Open(limits)->Trim(25 * kDay + 1).ok());
  EXPECT_EQ(Ids(*history).front(), "train-25");
  EXPECT_EQ(history->Get("train-10").status().code(), absl::StatusCode::kNotFound);
}

TEST_F(PostgresHistoryTest, APartitionThatAnotherDaemonDroppedIsMadeAgain) {
  const auto history = Open();
  ASSERT_TRUE(history->Apply(WriteOfIncident(Incident("train", 1, 1000, "node-1"))).ok());
  const auto db = Connect();
  for (const char* table : {"incidents", "culprits"}) {
    ASSERT_TRUE(DropPartition(db.get(), table, WeekOf(1000 * kSecond)).ok());
  }
  EXPECT_TRUE(
      absl::IsUnavailable(history->Apply(WriteOfIncident(Incident("train", 2, 1000, "node-1")))));
  EXPECT_TRUE(history->Apply(WriteOfIncident(Incident("train", 2, 1000, "node-1"))).ok())
      << "the next attempt";
  EXPECT_EQ(Ids(*history).size(), 1u);
}

// The plan of a list with this filter, as the server explains it.
std::string Plan(SqlDatabase* db, const v1::ListIncidentsRequest& request) {
  const HistoryFilter filter(kPostgresDialect, request);
  Sql sql(db, absl::StrCat("EXPLAIN SELECT summary FROM incidents", filter.Where(),
                           " ORDER BY opened_ns DESC, id LIMIT 100"));
  filter.BindTo(&sql);
  std::string plan;
  while (sql.Next()) absl::StrAppend(&plan, sql.Bytes(0), "\n");
  EXPECT_TRUE(sql.status().ok()) << sql.status();
  return plan;
}

TEST_F(PostgresHistoryTest, EveryFilterOfAListUsesAnIndex) {
  ASSERT_TRUE(Open()->Apply(WriteOfIncident(Incident("seed", 1, 1000, "node-1"))).ok());
  const auto db = Connect();
  Run(db.get(),
      "INSERT INTO incidents (id, opened_ns, tenant, job, attempt, number, cause, state, "
      "closed_ns, confirmed, signature, hang, daemon, summary, stacks) SELECT 'job-' || "
      "n, 1000000000000::bigint + n, 'tenant-' || n % 50, 'job-' || n % 1000, 0, n, "
      "'cause-' || n % 100, 'ended', 1, 1, 'signature-' || n % 500, 'hang-' || n, "
      "'daemon-1', repeat('x', 300)::bytea, '' FROM generate_series(1, 50000) AS n");
  Run(db.get(),
      "INSERT INTO culprits SELECT 'job-' || n, 1000000000000::bigint + n, 'host-' || n "
      "% 2000, n % 8 FROM generate_series(1, 50000) AS n");
  Run(db.get(), "ANALYZE incidents");
  Run(db.get(), "ANALYZE culprits");
  v1::ListIncidentsRequest all, job, tenant, cause, host, signature, from;
  job.set_job("job-7");
  tenant.set_tenant("tenant-7");
  cause.set_cause("cause-7");
  host.set_host("host-7");
  signature.set_signature("signature-7");
  *from.mutable_from() = ToTimestamp(1000000000000 + 49'900);
  for (const auto& request : {all, job, tenant, cause, host, signature, from}) {
    const std::string plan = Plan(db.get(), request);
    EXPECT_THAT(plan, HasSubstr("Index")) << request.DebugString();
    EXPECT_THAT(plan, Not(HasSubstr("Seq Scan"))) << request.DebugString() << plan;
  }
}

TEST(PostgresUrlTest, IsShownWithoutItsPasswordAndParameters) {
  const auto shown =
      PostgresUrlInPublic("postgresql://rollcall:s3cret@db-1:6432/fleet?sslmode=require");
  ASSERT_TRUE(shown.ok());
  EXPECT_EQ(*shown, "postgresql://rollcall@db-1:6432/fleet");
  EXPECT_EQ(PasswordOfPostgresUrl("postgresql://rollcall:s3cret@db-1/fleet"), "s3cret");
  EXPECT_EQ(PasswordOfPostgresUrl("postgresql://db-1/fleet?password=s3cret"), "s3cret");
  const auto wrong = PostgresUrlInPublic("postgresql://rollcall:s3cret@db-1/fleet?nonsense=1");
  ASSERT_FALSE(wrong.ok());
  EXPECT_THAT(std::string(wrong.status().message()), Not(HasSubstr("s3cret")));
}

TEST_F(PostgresHistoryTest, ErrorsSayWhatToTypeAndNoPassword) {
  const auto away = PostgresHistory::Open(
      {"postgresql://rollcall:s3cret@127.0.0.1:1/rollcall", "daemon-1", {}, ""}, {});
  ASSERT_TRUE(absl::IsUnavailable(away.status())) << away.status();
  EXPECT_THAT(std::string(away.status().message()), HasSubstr("pg_isready"));
  EXPECT_THAT(std::string(away.status().message()), Not(HasSubstr("s3cret")));
  const auto none =
      PostgresHistory::Open({TestServer()->Url(schema_, "no_such"), "daemon-1", {}, ""}, {});
  ASSERT_TRUE(absl::IsFailedPrecondition(none.status())) << none.status();
  EXPECT_THAT(std::string(none.status().message()), HasSubstr("createdb"));
}

TEST_F(PostgresHistoryTest, AServerThatDoesNotAnswerLosesTheConnectionInTime) {
  PostgresOptions options = Options();
  ASSERT_NE(Open(), nullptr) << "makes the tables, which takes its time on a busy machine";
  options.times.answer = std::chrono::seconds(2);
  options.times.connect = std::chrono::seconds(2);
  auto history = PostgresHistory::Open(options, {});
  ASSERT_TRUE(history.ok()) << history.status();
  TestServer()->Pause();
  const auto begun = std::chrono::steady_clock::now();
  EXPECT_TRUE(absl::IsUnavailable(
      (*history)->Apply(WriteOfIncident(Incident("train", 1, 1000, "node-1")))));
  EXPECT_FALSE((*history)->IsInPlace());
  EXPECT_TRUE(absl::IsUnavailable(PostgresHistory::Open(options, {}).status()));
  EXPECT_LT(std::chrono::steady_clock::now() - begun, kPatience);
  TestServer()->Resume();
  EXPECT_TRUE(Open()->Apply(WriteOfIncident(Incident("train", 1, 1000, "node-1"))).ok());
}

TEST_F(PostgresHistoryTest, AConnectionThatWasCutIsReplacedByOpeningAnother) {
  const auto history = Open();
  Run(Connect().get(),
      "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid != "
      "pg_backend_pid() AND application_name = 'rollcalld'");
  EXPECT_TRUE(
      absl::IsUnavailable(history->Apply(WriteOfIncident(Incident("train", 1, 1000, "node-1")))));
  EXPECT_FALSE(history->IsInPlace());
  EXPECT_TRUE(Open()->Apply(WriteOfIncident(Incident("train", 1, 1000, "node-1"))).ok());
}

}  // namespace
}  // namespace rollcall
