// SPDX-License-Identifier: Apache-2.0
// The history of incidents in real files.
#include "daemon/store/history.h"

#include <gtest/gtest.h>
#include <sqlite3.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "daemon/store/incident_groups.h"
#include "daemon/store/sql.h"
#include "temporary_tree.h"

namespace rollcall {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kSecond = 1'000'000'000;
constexpr int64_t kDay = 86400 * kSecond;

v1::Incident Incident(const std::string& job, int number, int64_t opened_s, const std::string& host,
                      int rank = 3, const std::string& cause = "missing_rank") {
  v1::Incident incident;
  incident.set_id(absl::StrCat(job, "-", number));
  incident.set_job(job);
  incident.set_state("resolved");
  incident.mutable_opened_at()->set_seconds(opened_s);
  incident.mutable_closed_at()->set_seconds(opened_s + 60);
  v1::Verdict* verdict = incident.add_verdicts();
  verdict->set_cause(cause);
  verdict->set_summary("it hung");
  v1::Culprit* culprit = verdict->add_culprits();
  culprit->set_host(host);
  culprit->set_rank(rank);
  incident.add_stacks()->set_pid(4711);
  incident.mutable_stack_tree()->add_nodes()->set_threads(9);
  return incident;
}

int LastNumber(const History& history, const JobId& job) {
  const auto numbers = history.LastNumbers();
  EXPECT_TRUE(numbers.ok()) << numbers.status();
  const auto at = numbers->find(job);
  return at == numbers->end() ? 0 : at->second;
}

class HistoryTest : public testing::Test {
 protected:
  std::unique_ptr<History> Open(const HistoryLimits& limits = {}) const {
    auto history = History::Open(folder_ / "history.db", limits);
    EXPECT_TRUE(history.ok()) << history.status();
    return history.ok() ? *std::move(history) : nullptr;
  }

  const TemporaryTree tree_;
  const fs::path folder_ = tree_.root();
};

std::vector<std::string> Ids(const History& history, const v1::ListIncidentsRequest& request = {}) {
  std::vector<std::string> ids;
  const auto list = history.List(request);
  EXPECT_TRUE(list.ok()) << list.status();
  for (const v1::Incident& incident : list->incidents()) ids.push_back(incident.id());
  return ids;
}

TEST_F(HistoryTest, OthersHaveNoAccessWhateverTheUmask) {
  const mode_t before = umask(0);
  const auto history = Open();
  const absl::Status added = history->Save(Incident("train", 1, 1000, "node-1"));
  umask(before);
  EXPECT_TRUE(added.ok()) << added;
  for (const char* part : {"", "-wal", "-shm"}) {
    const fs::path file = (folder_ / "history.db").string() + part;
    ASSERT_TRUE(fs::exists(file)) << file;
    EXPECT_EQ(static_cast<int>(fs::status(file).permissions()), 0640) << file;
  }
}

TEST_F(HistoryTest, SurvivesARestart) {
  ASSERT_TRUE(Open()->Save(Incident("train", 7, 1000, "node-1")).ok());
  const auto history = Open();
  const auto kept = history->Get("train-7");
  ASSERT_TRUE(kept.ok()) << kept.status();
  EXPECT_EQ(kept->verdicts(0).summary(), "it hung");
  EXPECT_EQ(kept->stacks(0).pid(), 4711);
  EXPECT_EQ(kept->stack_tree().nodes(0).threads(), 9);
  EXPECT_EQ(LastNumber(*history, {"default", "train"}), 7);
  EXPECT_EQ(LastNumber(*history, {"default", "other"}), 0);
  EXPECT_FALSE(history->Get("train-8").ok());
}

TEST_F(HistoryTest, ReplacesAnOlderState) {
  const auto history = Open();
  v1::Incident incident = Incident("train", 1, 1000, "node-1");
  ASSERT_TRUE(history->Save(incident).ok());
  incident.set_state("confirmed");
  incident.mutable_verdicts(0)->mutable_culprits(0)->set_host("node-2");
  ASSERT_TRUE(history->Save(incident).ok());
  EXPECT_EQ(Ids(*history).size(), 1u);
  v1::ListIncidentsRequest of_first;
  of_first.set_host("node-1");
  EXPECT_TRUE(Ids(*history, of_first).empty());
}

TEST_F(HistoryTest, FiltersAndPages) {
  const auto history = Open();
  for (int i = 0; i < 10; ++i) {
    ASSERT_TRUE(history
                    ->Save(Incident(i % 2 == 0 ? "even" : "odd", i, 1000 * i,
                                    absl::StrCat("node-", i % 3), i,
                                    i == 4 ? "rank_died" : "missing_rank"))
                    .ok());
  }
  v1::ListIncidentsRequest request;
  request.set_job("even");
  EXPECT_EQ(Ids(*history, request),
            (std::vector<std::string>{"even-8", "even-6", "even-4", "even-2", "even-0"}));
  request.set_cause("rank_died");
  EXPECT_EQ(Ids(*history, request), std::vector<std::string>{"even-4"});
  request.Clear();
  request.set_host("node-0");
  request.set_limit(2);
  request.set_offset(1);
  EXPECT_EQ(Ids(*history, request), (std::vector<std::string>{"even-6", "odd-3"}));
  EXPECT_EQ(history->List(request)->total(), 4);
  request.Clear();
  request.mutable_from()->set_seconds(7000);
  request.mutable_until()->set_seconds(8000);
  EXPECT_EQ(Ids(*history, request), (std::vector<std::string>{"even-8", "odd-7"}));
  EXPECT_EQ(history->List(request)->incidents(0).stacks_size(), 0);
}

TEST_F(HistoryTest, DoesNotRunTextAsSql) {
  const auto history = Open();
  ASSERT_TRUE(history->Save(Incident("'; DROP TABLE incidents; --", 1, 1000, "\" OR 1=1")).ok());
  v1::ListIncidentsRequest request;
  request.set_host("\" OR 1=1");
  EXPECT_EQ(Ids(*history, request).size(), 1u);
  request.set_host("' OR '1'='1");
  EXPECT_TRUE(Ids(*history, request).empty());
}

TEST_F(HistoryTest, ReportsRepeatedCulprits) {
  const auto history = Open();
  ASSERT_TRUE(history->Save(Incident("a", 1, 1000, "node-1", 3)).ok());
  ASSERT_TRUE(history->Save(Incident("a", 2, 2000, "node-1", 3)).ok());
  ASSERT_TRUE(history->Save(Incident("b", 1, 3000, "node-1", 5)).ok());
  ASSERT_TRUE(history->Save(Incident("b", 2, 4000, "node-2", 6)).ok());
  const auto list = history->List({});
  ASSERT_EQ(list->repeated_size(), 2);
  EXPECT_EQ(list->repeated(0).host(), "node-1");
  EXPECT_EQ(list->repeated(0).incidents(), 3);
  EXPECT_EQ(list->repeated(1).job(), "a");
  EXPECT_EQ(list->repeated(1).rank(), 3);
  EXPECT_EQ(list->repeated(1).incidents(), 2);
}

TEST_F(HistoryTest, RanksOfTwoTenantsJobsAreNotOneRank) {
  const auto history = Open();
  for (const char* tenant : {"", "team"}) {
    v1::Incident incident = Incident("a", 1, 1000, "");
    incident.set_id(absl::StrCat(tenant, ":a-1"));
    incident.set_tenant(tenant);
    ASSERT_TRUE(history->Save(incident).ok());
  }
  EXPECT_EQ(history->List({})->repeated_size(), 0);
  v1::Incident again = Incident("a", 2, 2000, "");
  again.set_id("team:a-2");
  again.set_tenant("team");
  ASSERT_TRUE(history->Save(again).ok());
  const auto list = history->List({});
  ASSERT_EQ(list->repeated_size(), 1);
  EXPECT_EQ(list->repeated(0).job(), "a");
  EXPECT_EQ(list->repeated(0).tenant(), "team");
}

TEST_F(HistoryTest, AFileThatCannotBeReadHasNotNoIncident) {
  const auto history = Open();
  ASSERT_TRUE(history->Save(Incident("train", 7, 1000, "node-1")).ok());
  EXPECT_TRUE(absl::IsNotFound(history->Get("train-8").status()));
  sqlite3* other = nullptr;
  ASSERT_EQ(sqlite3_open((folder_ / "history.db").c_str(), &other), SQLITE_OK);
  EXPECT_TRUE(Sql(other, "DROP TABLE culprits").Run().ok());
  EXPECT_FALSE(history->List({}).ok()) << "not a list without repeated culprits";
  EXPECT_TRUE(Sql(other, "DROP TABLE incidents").Run().ok());
  sqlite3_close(other);
  EXPECT_FALSE(absl::IsNotFound(history->Get("train-7").status()));
}

TEST_F(HistoryTest, FiltersByTenantAndAttempt) {
  const auto history = Open();
  ASSERT_TRUE(history->Save(Incident("job", 1, 1000, "node-1")).ok());
  v1::Incident other = Incident("job", 2, 2000, "node-1");
  other.set_tenant("lab");
  other.set_attempt(3);
  ASSERT_TRUE(history->Save(other).ok());
  v1::ListIncidentsRequest request;
  request.set_tenant("lab");
  EXPECT_EQ(Ids(*history, request), (std::vector<std::string>{"job-2"}));
  request.set_attempt(0);
  EXPECT_TRUE(Ids(*history, request).empty());
  request.clear_tenant();
  EXPECT_EQ(Ids(*history, request), (std::vector<std::string>{"job-1"}));
  request.set_attempt(3);
  request.set_tenant("default");
  EXPECT_TRUE(Ids(*history, request).empty());
}

TEST_F(HistoryTest, FindsHostsOfCulpritsThatTheIncidentDoesNotList) {
  const auto history = Open();
  for (const int number : {1, 2}) {
    v1::Incident incident = Incident("job", number, 1000 + number, "node-1");
    incident.mutable_verdicts(0)->add_other_culprit_hosts("node-2000");
    ASSERT_TRUE(history->Save(incident).ok());
  }
  v1::ListIncidentsRequest request;
  request.set_host("node-2000");
  EXPECT_EQ(Ids(*history, request).size(), 2u);
  const auto list = history->List({});
  ASSERT_TRUE(list.ok());
  int times = 0;
  for (const v1::Repeated& repeated : list->repeated()) {
    if (repeated.host() == "node-2000") times = repeated.incidents();
  }
  EXPECT_EQ(times, 2);
}

TEST_F(HistoryTest, DeletesOldAndExcessIncidents) {
  HistoryLimits limits;
  limits.keep_ns = 10 * kDay;
  limits.keep_bytes = 400'000;
  const auto history = Open(limits);
  ASSERT_TRUE(history->Save(Incident("old", 1, 0, "node-1")).ok());
  for (int i = 1; i <= 100; ++i) {
    v1::Incident incident = Incident("new", i, 20 * 86400 + i, "node-1");
    incident.mutable_stacks(0)->set_error(std::string(10'000, 'x'));
    ASSERT_TRUE(history->Save(incident).ok());
  }
  ASSERT_TRUE(history->Trim(20 * kDay + 200 * kSecond).ok());
  EXPECT_FALSE(history->Get("old-1").ok());
  EXPECT_FALSE(history->Get("new-1").ok());
  EXPECT_TRUE(history->Get("new-100").ok());
  EXPECT_LT(Ids(*history).size(), 45u);
  EXPECT_GT(Ids(*history).size(), 20u);
}

TEST_F(HistoryTest, OtherTablesLeaveRoomForIncidents) {
  HistoryLimits limits;
  limits.keep_bytes = 2'000'000;
  const auto history = Open(limits);
  const int64_t now_ns = 20 * kDay;
  AttemptFacts facts;
  for (int i = 0; i < 1000; ++i) facts.members.push_back({{"node", i, 1}, i});
  for (int i = 1; i <= 50; ++i) {
    v1::Incident incident = Incident("train", i, 20 * 86400 - 100 + i, "node-1");
    incident.mutable_stacks(0)->set_error(std::string(10'000, 'x'));
    ASSERT_TRUE(history->Save(incident).ok());
    ASSERT_TRUE(history->SaveAction({now_ns - 100 + i, "me", std::string(100'000, 'y'), "", ""}).ok());
    ASSERT_TRUE(history->SaveAttempts({{JobKey("train", i), facts}}, now_ns + i).ok());
  }
  ASSERT_TRUE(history->Trim(now_ns).ok());
  EXPECT_EQ(Ids(*history).size(), 50u);
  const auto kept = history->Load();
  ASSERT_TRUE(kept.ok()) << kept.status();
  EXPECT_GT(kept->attempts.count(JobKey("train", 50)), 0u) << "the newest";
  EXPECT_LT(kept->attempts.size(), 10u);
  EXPECT_LT(fs::file_size(folder_ / "history.db"), 2'000'000u);
}

// Each host of an incident's culprits is a row in a table and in an index.
TEST_F(HistoryTest, CulpritsCountToTheSizeOfTheFile) {
  HistoryLimits limits;
  limits.keep_bytes = 2'000'000;
  auto history = Open(limits);
  for (int i = 1; i <= 20; ++i) {
    v1::Incident incident = Incident("train", i, 20 * 86400 + i, "node-1");
    for (int host = 0; host < 2000; ++host) {
      incident.mutable_verdicts(0)->add_other_culprit_hosts("node-" + std::to_string(host) +
                                                            ".cluster.example");
    }
    ASSERT_TRUE(history->Save(incident).ok());
  }
  ASSERT_TRUE(history->Trim(20 * kDay).ok());
  EXPECT_TRUE(history->Get("train-20").ok());
  history.reset();
  EXPECT_LE(fs::file_size(folder_ / "history.db"), 2'000'000u);
}

TEST_F(HistoryTest, TheAttemptOfALivingJobStaysHoweverManyBeganLater) {
  HistoryLimits limits;
  limits.keep_bytes = 2'000'000;
  const auto history = Open(limits);
  const int64_t now_ns = 20 * kDay;
  AttemptFacts facts;
  for (int i = 0; i < 1000; ++i) facts.members.push_back({{"node", i, 1}, i});
  ASSERT_TRUE(history->SaveAttempts({{JobKey("long"), facts}}, now_ns - 6 * kDay).ok());
  for (int i = 1; i <= 20; ++i) {
    ASSERT_TRUE(history->SaveAttempts({{JobKey("short", i), facts}}, now_ns - i).ok());
  }
  ASSERT_TRUE(history->SaveHosts(JobKey("long"), {"node"}, now_ns).ok());
  ASSERT_TRUE(history->Trim(now_ns).ok());
  const auto kept = history->Load();
  ASSERT_TRUE(kept.ok()) << kept.status();
  ASSERT_EQ(kept->attempts.count(JobKey("long")), 1u);
  EXPECT_EQ(kept->attempts.at(JobKey("long")).members.size(), 1000u);
  EXPECT_EQ(kept->attempts.count(JobKey("short", 20)), 0u) << "the oldest of those that have ended";
}

TEST_F(HistoryTest, RenamesADamagedFileAndBeginsANewOne) {
  std::ofstream(folder_ / "history.db") << std::string(10'000, 'x');
  const auto history = Open();
  ASSERT_TRUE(history->Save(Incident("train", 1, 1000, "node-1")).ok());
  int aside = 0;
  for (const auto& entry : fs::directory_iterator(folder_)) {
    aside += entry.path().string().find(".damaged-") != std::string::npos;
  }
  EXPECT_EQ(aside, 1);
}

TEST_F(HistoryTest, ErrorsSayWhyAFileIsUnusable) {
  const auto history = History::Open(folder_ / "none" / "history.db", {});
  ASSERT_FALSE(history.ok());
  EXPECT_NE(std::string(history.status().message()).find("--history=FILE"), std::string::npos);
}

v1::Incident OpenIncident(const std::string& job, int number, int64_t opened_s = 1000) {
  v1::Incident incident = Incident(job, number, opened_s, "node-1");
  incident.set_state("confirmed");
  *incident.mutable_confirmed_at() = incident.opened_at();
  incident.clear_closed_at();
  return incident;
}

AlertRow Alert(const std::string& incident, int32_t sequence, const std::string& kind) {
  AlertRow alert;
  alert.incident = incident;
  alert.sequence = sequence;
  alert.kind = kind;
  alert.made_ns = 2000 * kSecond;
  alert.body.set_id(incident);
  return alert;
}

TEST_F(HistoryTest, KeepsOpenIncidentsOpenAcrossARestart) {
  ASSERT_TRUE(Open()->Save(OpenIncident("train", 1)).ok());
  const auto history = Open();
  EXPECT_EQ(history->Get("train-1")->state(), "confirmed");
  const auto loaded = history->Load();
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  ASSERT_EQ(loaded->open.size(), 1u);
  EXPECT_EQ(loaded->open[0].id(), "train-1");
  EXPECT_EQ(loaded->open[0].stacks(0).pid(), 4711);
}

TEST_F(HistoryTest, KeepsAlertsAndTheReceiversThatGotThem) {
  {
    const auto history = Open();
    ASSERT_TRUE(history->Save(OpenIncident("train", 1)).ok());
    ASSERT_TRUE(history->Save(Incident("train", 2, 1000, "node-1")).ok());
    ASSERT_TRUE(history->SaveAlert(Alert("train-1", 1, "confirmed")).ok());
    ASSERT_TRUE(history->MarkAlert("train-1", 1, "").ok());
    ASSERT_TRUE(history->SaveAlert(Alert("train-1", 2, "updated")).ok());
    ASSERT_TRUE(history->MarkAlert("train-1", 2, "json:1").ok());
    for (const char* kind : {"confirmed", "resolved"}) {
      const int sequence = kind == std::string("confirmed") ? 1 : 2;
      ASSERT_TRUE(history->SaveAlert(Alert("train-2", sequence, kind)).ok());
      ASSERT_TRUE(history->MarkAlert("train-2", sequence, "").ok());
    }
  }
  const auto loaded = Open()->Load();
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  ASSERT_EQ(loaded->alerts.size(), 2u) << "all alerts of train-2 are sent, and it is closed";
  EXPECT_TRUE(loaded->alerts[0].sent);
  EXPECT_EQ(loaded->alerts[1].kind, "updated");
  EXPECT_FALSE(loaded->alerts[1].sent);
  EXPECT_EQ(loaded->alerts[1].receivers, std::set<std::string>{"json:1"});
  EXPECT_EQ(loaded->alerts[1].body.id(), "train-1");
}

// The daemon ended after it saved the end of the incident and before it saved that alert.
TEST_F(HistoryTest, LoadsTheAlertsOfAClosedIncidentThatLackItsEnd) {
  const auto history = Open();
  ASSERT_TRUE(history->Save(Incident("train", 1, 1000, "node-1")).ok());
  ASSERT_TRUE(history->SaveAlert(Alert("train-1", 1, "confirmed")).ok());
  ASSERT_TRUE(history->MarkAlert("train-1", 1, "").ok());
  const auto loaded = history->Load();
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  ASSERT_EQ(loaded->alerts.size(), 1u);
  EXPECT_EQ(loaded->alerts[0].incident, "train-1");
}

TEST_F(HistoryTest, KeepsTheHostsOfEachAttemptUntilTheyAreForgotten) {
  JobKey second("train", 1);
  second.tenant = "team";
  {
    const auto history = Open();
    ASSERT_TRUE(history->SaveHosts(JobKey("train"), {"a", "b"}, 5).ok());
    ASSERT_TRUE(history->SaveHosts(JobKey("train"), {"b", "c"}, 6).ok());
    ASSERT_TRUE(history->SaveHosts(second, {"d"}, 6).ok());
    ASSERT_TRUE(history->SaveHosts(JobKey("old"), {"e"}, 6).ok());
    ASSERT_TRUE(history->ForgetHosts(JobKey("old")).ok());
  }
  const auto loaded = Open()->Load();
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  EXPECT_EQ(loaded->hosts, (std::map<JobKey, std::set<std::string>>{
                               {JobKey("train"), {"a", "b", "c"}}, {second, {"d"}}}));
}

TEST_F(HistoryTest, LoadsConfirmedIncidentsThatAreClosedOnlyOfJobsThatMayReturn) {
  v1::Incident ended = Incident("train", 1, 1000, "node-1");
  *ended.mutable_confirmed_at() = ended.opened_at();
  v1::Incident other = ended;
  other.set_id("other-1");
  other.set_job("other");
  const auto history = Open();
  ASSERT_TRUE(history->Save(ended).ok());
  ASSERT_TRUE(history->Save(other).ok());
  ASSERT_TRUE(history->Save(Incident("train", 2, 1000, "node-1")).ok());
  ASSERT_TRUE(history->SaveHosts(JobKey("train"), {"a"}, 5).ok());
  const auto loaded = history->Load();
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  ASSERT_EQ(loaded->closed.size(), 1u);
  EXPECT_EQ(loaded->closed[0].id(), "train-1");
}

TEST_F(HistoryTest, NumbersIncidentsOfEachTenantSeparately) {
  v1::Incident incident = Incident("train", 7, 1000, "node-1");
  incident.set_tenant("team");
  const auto history = Open();
  ASSERT_TRUE(history->Save(incident).ok());
  EXPECT_EQ(LastNumber(*history, {"team", "train"}), 7);
  EXPECT_EQ(LastNumber(*history, {"default", "train"}), 0);
}

TEST_F(HistoryTest, DeletesAlertsThatNoDaemonNeeds) {
  const auto history = Open();
  ASSERT_TRUE(history->Save(OpenIncident("open", 1)).ok());
  for (const char* id : {"open-1", "closed-1", "unsent-1"}) {
    ASSERT_TRUE(history->SaveAlert(Alert(id, 1, "confirmed")).ok());
    if (id == std::string("unsent-1")) continue;
    ASSERT_TRUE(history->MarkAlert(id, 1, "").ok());
  }
  ASSERT_TRUE(history->Trim(2000 * kSecond + 2 * 3600 * kSecond).ok());
  const auto loaded = history->Load();
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  std::vector<std::string> left;
  for (const AlertRow& alert : loaded->alerts) left.push_back(alert.incident);
  EXPECT_EQ(left, (std::vector<std::string>{"open-1", "unsent-1"}));
}

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
  const int64_t version = [db] {
    Sql sql(db, "PRAGMA user_version");
    return sql.Next() ? sql.Integer(0) : -1;
  }();
  EXPECT_LE(version, 1) << "the previous release refuses a later version";
  for (const char* statement : kPreviousRelease) EXPECT_TRUE(Sql(db, statement).Run().ok());
  sqlite3_close(db);
}

TEST_F(HistoryTest, ThePreviousReleaseCanUseTheFileAndHandItBack) {
  ASSERT_TRUE(Open()->Save(OpenIncident("train", 1)).ok());
  RunPreviousRelease(folder_ / "history.db");
  const auto history = Open();
  EXPECT_EQ(LastNumber(*history, {"default", "train"}), 9);
  const auto loaded = history->Load();
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  EXPECT_TRUE(loaded->open.empty()) << "the previous release has closed it";
}

TEST_F(HistoryTest, OpensAFileOfThePreviousRelease) {
  RunPreviousRelease(folder_ / "history.db");
  const auto history = Open();
  ASSERT_NE(history, nullptr);
  EXPECT_TRUE(history->SaveAlert(Alert("train-9", 1, "confirmed")).ok());
  EXPECT_EQ(LastNumber(*history, {"default", "train"}), 9);
}

TEST_F(HistoryTest, KeepsAttemptsAndTheirMembersUntilTheyAreForgotten) {
  JobKey second("train", 1);
  second.tenant = "team";
  AttemptFacts facts = {8, "SLURM_RESTART_COUNT=1", "1000 node-1:29500", true, {}};
  facts.members = {{{"a", 7, UINT64_MAX}, 0}};
  {
    const auto history = Open();
    ASSERT_TRUE(history->SaveAttempts({{second, facts}, {JobKey("old"), facts}}, 5).ok());
    facts.members = {{{"b", 8, 2}, 1}};
    ASSERT_TRUE(history->SaveAttempts({{second, facts}}, 6).ok());
    ASSERT_TRUE(history->ForgetAttempt(JobKey("old")).ok());
  }
  const auto loaded = Open()->Load();
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  ASSERT_EQ(loaded->attempts.size(), 1u);
  const auto& [key, kept] = *loaded->attempts.begin();
  EXPECT_EQ(key, second);
  EXPECT_EQ(kept.world_size, 8);
  EXPECT_EQ(kept.restarts, "SLURM_RESTART_COUNT=1");
  EXPECT_EQ(kept.launch, "1000 node-1:29500");
  EXPECT_TRUE(kept.has_twin);
  ASSERT_EQ(kept.members.size(), 2u);
  EXPECT_EQ(kept.members[0].process.start_time, UINT64_MAX);
  EXPECT_EQ(kept.members[1].process.host, "b");
  EXPECT_EQ(kept.members[1].rank, 1);
}

TEST_F(HistoryTest, DeletesAttemptsOfJobsThatNoDaemonHasSeenForAWeek) {
  constexpr int64_t kDay = int64_t{86400} * 1'000'000'000;
  AttemptFacts facts;
  facts.members = {{{"a", 7, 1}, 0}};
  const auto history = Open();
  ASSERT_TRUE(history->SaveAttempts({{JobKey("gone"), facts}, {JobKey("lives"), facts}}, kDay).ok());
  ASSERT_TRUE(history->SaveHosts(JobKey("lives"), {"a"}, 9 * kDay).ok());
  ASSERT_TRUE(history->Trim(9 * kDay).ok());
  const auto loaded = history->Load();
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  ASSERT_EQ(loaded->attempts.size(), 1u);
  EXPECT_EQ(loaded->attempts.begin()->first, JobKey("lives"));
  EXPECT_EQ(loaded->attempts.begin()->second.members.size(), 1u);
}

// An incident that is confirmed, of a call on a communicator of its own.
v1::Incident Confirmed(int number, int64_t opened_s, const std::string& host,
                       const std::string& communicator) {
  v1::Incident incident = Incident("train", number, opened_s, host);
  *incident.mutable_confirmed_at() = incident.opened_at();
  incident.mutable_verdicts(0)->mutable_communicator()->set_id(communicator);
  incident.mutable_verdicts(0)->mutable_call()->set_operation("AllReduce");
  return incident;
}

v1::ListIncidentsResponse Groups(const History& history,
                                 const v1::ListIncidentsRequest& request = {},
                                 const std::string& without = "") {
  const auto groups = history.Groups(request, without);
  EXPECT_TRUE(groups.ok()) << groups.status();
  return groups.ok() ? *groups : v1::ListIncidentsResponse();
}

TEST_F(HistoryTest, GroupsAlikeHangsAndCountsWhatComesBack) {
  const auto history = Open();
  ASSERT_TRUE(history->Save(Confirmed(1, 100, "node-17", "aa")).ok());
  ASSERT_TRUE(history->Save(Confirmed(2, 200, "node-17", "bb")).ok());
  ASSERT_TRUE(history->Save(Confirmed(3, 300, "node-3", "cc")).ok());
  v1::Incident other = Confirmed(4, 400, "node-3", "dd");
  other.mutable_verdicts(0)->set_cause("rank_died");
  ASSERT_TRUE(history->Save(other).ok());
  v1::Incident suspected = Confirmed(5, 500, "node-17", "ee");
  suspected.clear_confirmed_at();
  ASSERT_TRUE(history->Save(suspected).ok());

  const v1::ListIncidentsResponse list = Groups(*history);
  EXPECT_EQ(list.total(), 2);
  ASSERT_EQ(list.groups_size(), 2);
  const v1::IncidentGroup& first = list.groups(0);
  EXPECT_EQ(first.signature(), "missing_rank/AllReduce//");
  EXPECT_EQ(first.hangs(), 3);
  EXPECT_EQ(first.first().seconds(), 100);
  EXPECT_EQ(first.last().seconds(), 300);
  EXPECT_EQ(first.newest(), "train-3");
  ASSERT_EQ(first.hosts_size(), 2);
  EXPECT_EQ(first.hosts(0).name(), "node-17");
  EXPECT_EQ(first.hosts(0).hangs(), 2);
  ASSERT_EQ(first.ranks_size(), 1);
  EXPECT_EQ(first.ranks(0).name(), "3");
  EXPECT_EQ(first.ranks(0).hangs(), 3);
  ASSERT_EQ(first.jobs_size(), 1);
  EXPECT_EQ(first.sentence(), "3 times, 2 times with a culprit on node-17");
}

TEST_F(HistoryTest, CountsOneHangOnceHoweverManyIncidentsItHad) {
  const auto history = Open();
  for (int number = 1; number <= 3; ++number) {
    ASSERT_TRUE(history->Save(Confirmed(number, 100 * number, "node-17", "aa")).ok());
  }
  const v1::ListIncidentsResponse list = Groups(*history);
  ASSERT_EQ(list.groups_size(), 1);
  EXPECT_EQ(list.groups(0).hangs(), 1);
  EXPECT_EQ(list.groups(0).hosts(0).hangs(), 1);
  EXPECT_TRUE(Groups(*history, {}, HangOf(Confirmed(1, 0, "", "aa"))).groups().empty());
}

TEST_F(HistoryTest, GroupsOnlyWhatTheRequestSelects) {
  const auto history = Open();
  ASSERT_TRUE(history->Save(Confirmed(1, 100, "node-17", "aa")).ok());
  ASSERT_TRUE(history->Save(Confirmed(2, 200, "node-3", "bb")).ok());
  v1::Incident secret = Confirmed(3, 300, "node-17", "cc");
  secret.set_tenant("lab");
  ASSERT_TRUE(history->Save(secret).ok());

  v1::ListIncidentsRequest request;
  request.add_tenants("default");
  EXPECT_EQ(Groups(*history, request).groups(0).hangs(), 2);
  request.mutable_from()->set_seconds(150);
  ASSERT_EQ(Groups(*history, request).groups_size(), 1);
  EXPECT_EQ(Groups(*history, request).groups(0).newest(), "train-2");
  request.set_signature("rank_died///");
  EXPECT_TRUE(Groups(*history, request).groups().empty());

  EXPECT_EQ(Groups(*history).groups_size(), 2) << "tenants are not mixed";
  v1::ListIncidentsRequest page;
  page.set_limit(1);
  page.set_offset(1);
  EXPECT_EQ(Groups(*history, page).groups_size(), 1);
  EXPECT_EQ(Groups(*history, page).total(), 2);
}

TEST_F(HistoryTest, FindsTheIncidentsOfASignature) {
  const auto history = Open();
  ASSERT_TRUE(history->Save(Confirmed(1, 100, "node-17", "aa")).ok());
  ASSERT_TRUE(history->Save(Incident("other", 1, 200, "node-17")).ok());
  v1::ListIncidentsRequest request;
  request.set_signature("missing_rank/AllReduce//");
  EXPECT_EQ(Ids(*history, request), std::vector<std::string>{"train-1"});
}

TEST_F(HistoryTest, GroupsIncidentsThatThePreviousReleaseWrote) {
  ASSERT_TRUE(Open()->Save(Confirmed(1, 100, "node-17", "aa")).ok());
  sqlite3* db = nullptr;
  ASSERT_EQ(sqlite3_open((folder_ / "history.db").c_str(), &db), SQLITE_OK);
  EXPECT_TRUE(Sql(db, "DELETE FROM incident_signatures").Run().ok());
  sqlite3_close(db);
  const auto history = Open();
  ASSERT_EQ(Groups(*history).groups_size(), 1);
  EXPECT_EQ(Groups(*history).groups(0).signature(), "missing_rank/AllReduce//");
}

TEST_F(HistoryTest, NumbersThatCannotBeReadAreAnErrorAndNotZero) {
  const auto history = Open();
  ASSERT_TRUE(history->Save(Incident("train", 7, 1000, "node-1")).ok());
  sqlite3* other = nullptr;
  ASSERT_EQ(sqlite3_open((folder_ / "history.db").c_str(), &other), SQLITE_OK);
  EXPECT_TRUE(Sql(other, "DROP TABLE incident_keys").Run().ok());
  sqlite3_close(other);
  EXPECT_FALSE(history->LastNumbers().ok());
}

}  // namespace
}  // namespace rollcall
